/* SPDX-License-Identifier: MIT
 *
 * Running a model: engine (threads, kernels), model (a mapped file), session
 * (one conversation's key/value cache).
 *
 *   struct tern_sysinfo machine;  tern_sysinfo_read(&machine);
 *   struct tern_engine *engine;   tern_engine_create(&engine, &machine, NULL, &err);
 *   struct tern_model *model;     tern_model_open(&model, "demo.tern", &err);
 *   struct tern_session *session; tern_session_create(&session, engine, model, NULL, &err);
 *   tern_generate(session, ids, n_ids, &params, &result, &err);
 *
 * Free in the opposite order.  An engine serves one thread at a time; a model
 * is read-only and may be shared by engines.  Different threads may create and
 * use different engines at the same time.
 */
#ifndef TERN_TERN_H
#define TERN_TERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/chat.h"
#include "tern/model_format.h"
#include "tern/sampler.h"
#include "tern/status.h"
#include "tern/sysinfo.h"
#include "tern/tokenizer.h"
#include "tern/version.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- engine ---- */

struct tern_engine;
struct tern_model;

/* The precision in which ternary products take inputs that training did not round
 * (tern_model_config.rounds_inputs is false).  Matrices of floats always take f32. */
enum tern_inputs_as {
    TERN_INPUTS_AS_MODEL = 0, /* int8 per token if training rounded them so; else 16 bits, or 8 for
                               * block types of GGUF files (of a head always 16) */
    TERN_INPUTS_AS_F32 = 1,   /* not rounded: the reference for the others, several times slower */
    TERN_INPUTS_AS_16 = 2,    /* 16 bits, with a factor for every 128 columns */
    TERN_INPUTS_AS_8 = 3,     /* 8 bits, with a factor for every 32 columns: faster, but logits move
                               * by about 0.1 (16 bits: by less than 0.001) */
};

struct tern_engine_params {
    /* At most TERN_PLAN_MAX_THREADS. */
    uint32_t n_threads;         /* decode; 0 = as many as help on this machine (tern/plan.h) */
    uint32_t n_threads_prefill; /* 0 = the same as n_threads, or by the same rule */
    /* OS numbers of CPUs to bind the threads to, the calling thread first; at least as many as
     * threads.  NULL: the scheduler decides.  Freeing the engine restores the calling thread's
     * affinity. */
    const uint32_t *cpus;
    const char *cpu_level; /* highest kernel level allowed, NULL = the best */
    /* A model that rounds its inputs is refused with any value but TERN_INPUTS_AS_MODEL when a
     * session, a scheduler or an embedder is created for it: TERN_USAGE. */
    enum tern_inputs_as inputs;
};

/* `machine` describes this machine: read it once and pass it to every engine; it is copied.  Any
 * thread may call this at any time: it reads and changes no shared state.  params may be NULL.
 * TERN_USAGE: no machine, too many threads, or an unknown level (err lists the known ones);
 * TERN_UNSUPPORTED: a level that this CPU lacks; TERN_MEMORY. */
tern_status tern_engine_create(struct tern_engine **out, const struct tern_sysinfo *machine,
                               const struct tern_engine_params *params, struct tern_error *err);
void tern_engine_free(struct tern_engine *engine);
/* The number of threads that decode. */
uint32_t tern_engine_n_threads(const struct tern_engine *engine);
/* The level in use: "avx2". */
const char *tern_engine_cpu_level(const struct tern_engine *engine);
/* The precision in which this engine computes the model's products: "int8" per token, "16" or "8"
 * bits, or "f32". */
const char *tern_engine_inputs(const struct tern_engine *engine, const struct tern_model *model);
/* Sets other thread counts from the next evaluation on, at most those at creation. */
void tern_engine_set_threads(struct tern_engine *engine, uint32_t n_decode, uint32_t n_prefill);

/* ---- model ---- */

/* Maps and checks a file (not its data: `tern verify` does).  Takes milliseconds and no memory in
 * proportion to the model.  TERN_INPUT: missing, unreadable, damaged, not a .tern file;
 * TERN_UNSUPPORTED: another version of the format, or a feature that tern does not implement;
 * TERN_MEMORY.  Truncating a file while it is open ends the process with SIGBUS (Windows: an
 * exception) when the missing pages are read. */
tern_status tern_model_open(struct tern_model **out, const char *path, struct tern_error *err);
void tern_model_free(struct tern_model *model);

/* Type of the keys and values in a session's cache.  Files store the same numbers. */
enum tern_kv { TERN_KV_F32 = 0, TERN_KV_F16 = 1, TERN_KV_Q8 = 2 };
const char *tern_kv_text(enum tern_kv kv); /* "f32", "f16", "q8" */

/* The configuration of a model; valid as long as the model. */
struct tern_model_config {
    uint32_t n_layer;
    uint32_t hidden;
    uint32_t ffn;
    uint32_t n_head;
    uint32_t n_kv_head; /* heads of keys and values */
    uint32_t head_dim;
    uint32_t vocab;     /* ids are smaller; the tokenizer may have fewer */
    uint32_t context;   /* positions that the model was trained for */
    uint64_t n_params;
    uint32_t bos_id;          /* TERN_NO_ID: none */
    const uint32_t *stop_ids; /* [n_stop_ids] */
    uint32_t n_stop_ids;
    bool has_head; /* false: an embedding model, which computes states but no logits */
    bool is_tied;  /* the embedding is also the head */
    bool rounds_inputs; /* inputs of ternary products are int8, as in training */
    /* The precision in which most products take inputs by default: "int8" per token, as in
     * training; "16", "8" (tern_inputs_as); "f32" for matrices of floats, which take no other. */
    const char *inputs;
    enum tern_pooling pooling; /* for an embedding model */
    /* The cache type of answers: TERN_KV_Q8, or TERN_KV_F16 if the file says so, because the error
     * of q8 was measured at conversion and was too large.  Memory never decides it. */
    enum tern_kv kv;
};
const struct tern_model_config *tern_model_config(const struct tern_model *model);
const char *tern_model_path(const struct tern_model *model);
/* A hash of the file's contents: files with equal hashes contain the same model.  (It covers
 * configuration, tokenizer and template, and the data through its checksums.) */
uint64_t tern_model_hash(const struct tern_model *model);
/* Memory of an open model in addition to the mapped file. */
uint64_t tern_model_bytes(const struct tern_model *model);
/* NULL if the file has none. */
const struct tern_tokenizer *tern_model_tokenizer(const struct tern_model *model);
/* *out is NULL if the model has no template (TERN_OK), or one that tern cannot parse: the status is
 * then that of tern_chat_template_parse.  Owned by the model. */
tern_status tern_model_chat_template(const struct tern_chat_template **out,
                                     const struct tern_model *model, struct tern_error *err);
/* The texts of the model's tokens for a template: NULL for a built-in one, which has defaults; the
 * generation prompt is on, there is no date.  Valid as long as the model. */
void tern_model_chat_params(const struct tern_model *model, const struct tern_chat_template *t,
                            struct tern_chat_params *out);
/* Adds the special tokens with which a template ends turns to the model's stop ids, as `tern
 * convert` does for the template of the model.  For a template that the user chose, before the
 * first session, scheduler or embedder of the model is created.  Without a tokenizer: no effect. */
void tern_model_end_turns(struct tern_model *model, const struct tern_chat_template *t);
/* True if layers keep a state that cannot be rolled back to every position: recurrent layers, and
 * in long contexts rings of windows. */
bool tern_model_has_state(const struct tern_model *model);
bool tern_model_is_stop_id(const struct tern_model *model, uint32_t id);
/* TERN_MAPPED_IO if the file was written to since it was opened: its contents may differ from those
 * that were checked.  For programs that wait between two uses; tern_generate calls it. */
tern_status tern_model_check_unchanged(const struct tern_model *model, struct tern_error *err);

/* For a mixture of experts whose file does not stay in memory: from now on only the experts that
 * tokens choose are read, each with one request.  Do not call while a session of the model
 * evaluates.  No effect on models without experts. */
void tern_model_page_experts(struct tern_model *model);
/* Touches every page of the file in order, so that the first tokens do not wait for random disk
 * reads: 10 ms if the file is in the page cache, else as long as reading takes.  Do not call if the
 * file is larger than the free memory.  on_progress (bytes) returns false to stop:
 * TERN_INTERRUPTED.  May be NULL. */
tern_status tern_model_prefetch(const struct tern_model *model,
                                bool (*on_progress)(void *arg, uint64_t n_done, uint64_t n_total),
                                void *arg, struct tern_error *err);

struct tern_model_info {
    const char *name; /* NUL-terminated, valid as long as the model */
    const char *architecture; /* the family: "bitnet" */
    const char *layout; /* family of the ternary tensors: "t2" */
    const char *head;   /* "q8", "q6", "q4", "f16", "bf16"; "none" */
    const char *template_name; /* NULL: none or unknown */
    bool has_template;         /* the file contains a template source */
    uint64_t file_bytes;
    uint64_t ternary_bytes;
    uint64_t head_bytes;
    uint64_t bytes_per_token; /* bytes of the model that one decoded token reads, each counted
                               * once */
    uint64_t n_ternary;
    uint64_t n_zero;
    /* With the model's whole context, by enum tern_kv: additional bytes per position, and per
     * sequence for any length (recurrent states, rings of windows). */
    uint64_t kv_bytes_per_token[3], state_bytes[3];
    /* For a mixture of experts; else 0. */
    uint32_t n_experts;      /* in each layer that has any */
    uint32_t n_experts_used; /* there, for each token */
    uint64_t expert_bytes;   /* of file_bytes; a token reads n_experts_used / n_experts of these */
    uint32_t n_rotated;      /* matrices whose weights are rotated, and */
    uint32_t rotation_block; /* the size of the Hadamard matrices that rotate their inputs; or 0 */
    uint64_t draft_bytes;    /* of the draft head; 0: the model has none */
};
void tern_model_get_info(const struct tern_model *model, struct tern_model_info *out);

/* A tensor, for display and for programs. */
struct tern_tensor_info {
    char name[48]; /* "layers.3.up" */
    const char *layout; /* "t2" */
    uint32_t rows, cols;
    uint64_t n_bytes; /* with scales */
    uint64_t n_zero;  /* zero weights of a ternary tensor */
    uint32_t n_stacked; /* matrices of this shape, one per expert; 0: a single one */
};
uint32_t tern_model_n_tensors(const struct tern_model *model);
/* i below tern_model_n_tensors, in the order of the file. */
void tern_model_get_tensor(const struct tern_model *model, uint32_t i,
                           struct tern_tensor_info *out);

/* ---- session ---- */

struct tern_session;

#define TERN_MAX_DRAFT 7u

struct tern_session_params {
    uint32_t n_ctx;   /* positions, at most the model's context; 0 = that */
    enum tern_kv kv;
    uint32_t n_batch; /* prefill batch, 1..512; 0 = 128 */
    uint32_t n_draft; /* ids that tern_generate may draft ahead, 0..TERN_MAX_DRAFT: determines the
                       * memory for their logits and for a draft head */
    /* Copies of states that cannot be rolled back to every position (tern_session_has_state):
     * 1..64, made on demand, so that little has to be recomputed.  0 = 8.  Other sessions have
     * none. */
    uint32_t n_checkpoints;
    bool drop_pages;  /* release pages of the file after use: slow, for little memory */
    /* Called before the cache grows by n_bytes; false stops the evaluation with TERN_MEMORY.  NULL:
     * always. */
    bool (*may_grow)(void *arg, uint64_t n_bytes);
    /* Called between layers and, in long batches, every few milliseconds inside them, on the
     * evaluating thread; true stops with TERN_INTERRUPTED.  Must be quick.  NULL: never. */
    bool (*should_stop)(void *arg);
    void *arg;
};
/* The model's context and cache type (tern_model_config.kv).  Zeroed parameters mean an f32 cache
 * instead. */
void tern_session_params_default(struct tern_session_params *out, const struct tern_model *model);

/* Reserves all memory of the session except the cache's pages, which are committed 256 positions at
 * a time.  params NULL: the defaults.  TERN_USAGE: a parameter out of range; TERN_MEMORY, with
 * numbers: no address space, or, without may_grow, less available than tern_session_bytes_full. */
tern_status tern_session_create(struct tern_session **out, struct tern_engine *engine,
                                const struct tern_model *model,
                                const struct tern_session_params *params, struct tern_error *err);
void tern_session_free(struct tern_session *session);
uint32_t tern_session_n_ctx(const struct tern_session *session);
/* The number of filled positions. */
uint32_t tern_session_n_past(const struct tern_session *session);
/* Rolls back to position n_keep.  Returns the number of positions then filled: less than n_keep if
 * the model cannot be rolled back to exactly that position; the ids between have to be evaluated
 * again. */
uint32_t tern_session_truncate(struct tern_session *session, uint32_t n_keep);
/* Ids at positions [0, n_past). */
const uint32_t *tern_session_ids(const struct tern_session *session);
/* Writes the keys and values of all positions with their ids to a file that only its owner may
 * read: complete, or not at all.  TERN_USAGE: there are none; TERN_OUTPUT, TERN_MEMORY. */
tern_status tern_session_save_cache(struct tern_session *session, const char *path,
                                    struct tern_error *err);
/* Fills a session from such a file instead of evaluating its ids.  TERN_INPUT: missing, damaged, of
 * another model (tern_model_hash), cache type or precision of inputs, more than n_ctx positions;
 * TERN_MEMORY: the cache may not grow.  After an error the session is empty. */
tern_status tern_session_load_cache(struct tern_session *session, const char *path,
                                    struct tern_error *err);
/* As tern_model_has_state, but rings count only if the session's context is long enough for
 * them. */
bool tern_session_has_state(const struct tern_session *session);
/* Anonymous memory of this session now, and with n_ctx filled. */
uint64_t tern_session_bytes(const struct tern_session *session);
uint64_t tern_session_bytes_full(const struct tern_session *session);

/* Appends n ids.  Logits of the last one are then in tern_session_logits.  all_logits, if not
 * NULL, receives [n][vocab] f32.  TERN_USAGE: an id outside the vocabulary; TERN_LIMIT: no room in
 * the context; TERN_MEMORY: the cache may not grow (ids before it stay evaluated, see n_past);
 * TERN_INTERRUPTED; TERN_MAPPED_IO as tern_model_check_unchanged, and the evaluation is discarded.
 * The result does not depend on how ids are split over calls. */
tern_status tern_session_eval(struct tern_session *session, const uint32_t *ids, size_t n,
                              float *all_logits, struct tern_error *err);
/* Appends n ids and returns the states after the final norm, states [n][hidden] f32, instead of
 * logits, for embeddings.  Errors as for tern_session_eval, which returns TERN_UNSUPPORTED for an
 * embedding model. */
tern_status tern_session_eval_states(struct tern_session *session, const uint32_t *ids, size_t n,
                                     float *states, struct tern_error *err);
/* [vocab] f32 of the last evaluated position; NULL before the first evaluation, after a rollback,
 * and after an interrupted evaluation.  After tern_generate only the logits that the choice needed
 * are guaranteed, the rest may be minus infinity: evaluate the last id again for all of them. */
const float *tern_session_logits(const struct tern_session *session);

#define TERN_N_REGIONS 7 /* parts of a token's time; tern_counter_region has their names */

/* Costs and savings of evaluations since tern_session_create or _reset_counters. */
struct tern_counters {
    uint64_t n_decoded;          /* tokens evaluated one at a time */
    uint64_t n_prefilled;
    uint64_t decode_weight_bytes; /* bytes of weights that decoding read */
    double up_density;            /* share of up rows computed, 1 if dense */
    double down_density;          /* share of down columns added, 1 if dense */
    double head_density;          /* share of head rows computed exactly, 1 without a search */
    double decode_s[TERN_N_REGIONS];
    double prefill_s[TERN_N_REGIONS];
    uint64_t n_experts_read; /* while decoding, over all layers; 0: the model has no experts */
};
const char *tern_counter_region(uint32_t i); /* "qkv", "attention", ...; NULL beyond the last */
void tern_session_get_counters(const struct tern_session *session, struct tern_counters *out);
void tern_session_reset_counters(struct tern_session *session);

/* ---- generate ---- */

enum tern_stop {
    TERN_STOP_EOS,       /* a stop id of the model, or the grammar allows no continuation */
    TERN_STOP_STRING,    /* a stop string */
    TERN_STOP_LENGTH,    /* max_tokens */
    TERN_STOP_CONTEXT,   /* the context is full */
    TERN_STOP_MEMORY,    /* the cache may not grow */
    TERN_STOP_INTERRUPT, /* should_stop, or a callback returned false */
};
const char *tern_stop_text(enum tern_stop stop); /* "eos" "stop" "length" "context" ... */

struct tern_steering; /* of tern/plan.h */

struct tern_grammar;

struct tern_generate_params {
    struct tern_sampler *sampler; /* not NULL; made for the model's vocabulary */
    struct tern_steering *steering; /* adapts thread counts while running; may be NULL */
    uint32_t max_tokens;
    bool ignore_eos;
    /* Ids that may be drafted ahead, at most the session's n_draft; 0: none.  Drafts come from the
     * text so far, or from the draft head of a model that has one; several are verified by one
     * evaluation if that was measured to be faster.  The resulting ids do not depend on it. */
    uint32_t n_draft;
    const char *const *stop_strings; /* n_stop_strings texts, none empty */
    size_t n_stop_strings;
    /* The grammar of the text (tern/grammar.h): generation ends when it is complete, and nothing is
     * drafted.  Borrowed; without a tokenizer TERN_USAGE.  NULL: any text. */
    const struct tern_grammar *grammar;
    /* Called with final text (whole characters; no part of a stop string).  Return false to stop:
     * it is not called again.  May be NULL. */
    bool (*on_text)(void *arg, const char *text, size_t n_bytes);
    /* Called with every new id, including stop ids.  May be NULL. */
    void (*on_token)(void *arg, uint32_t id);
    /* Called between prefill batches with the number of positions done and the total.  May be
     * NULL. */
    void (*on_prefill)(void *arg, size_t n_done, size_t n_total);
    /* Drafts instead of those from the text, for measurements: writes at most n_max ids, below the
     * vocabulary, that may follow those so far, and returns how many.  A draft head runs all the
     * same, so that its time is measured.  May be NULL. */
    uint32_t (*on_draft)(void *arg, uint32_t *ids, uint32_t n_max);
    bool verify_all; /* verify all drafts, even where that is slower */
    /* The ends of the system text and of the last user message in `ids`, from which later prompts
     * probably continue: a model with recurrent layers keeps its state there.  0: unknown. */
    uint32_t n_system, n_turn;
    void *arg;
};

struct tern_generate_result {
    enum tern_stop stop;
    uint32_t n_prompt;       /* ids of the prompt */
    uint32_t n_prompt_evaluated; /* of these, those not in the cache before */
    uint32_t n_new;          /* tokens sampled, including the stop id */
    uint32_t n_steps;        /* evaluations after the prompt */
    uint32_t n_drafted;      /* drafted ids in these evaluations */
    uint32_t n_accepted;     /* drafted ids that were chosen */
    uint32_t i_stop_string;  /* TERN_STOP_STRING: its index; the first one among those that begin
                              * earliest */
    double prompt_s;
    double decode_s;
};

/* Brings the session to `ids` (keeps the common prefix with the cache, evaluates the rest), then
 * samples. The last sampled id is not evaluated.  Without a tokenizer it generates only ids.  The
 * sampler's history becomes `ids` and the sampled ids, and from then on it borrows the model's list
 * of control tokens (tern_sampler_set_exempt).
 *
 * The end of sampling is not an error: result->stop has the reason.  TERN_USAGE: no ids, or one
 * outside the vocabulary, a sampler for another vocabulary, an empty stop string, more drafts than
 * the session has memory for; TERN_LIMIT: the prompt does not fit the context (both numbers);
 * TERN_MEMORY, TERN_INTERRUPTED: before the first token; TERN_INTERNAL: no logit is finite. */
tern_status tern_generate(struct tern_session *session, const uint32_t *ids, size_t n_ids,
                          const struct tern_generate_params *params,
                          struct tern_generate_result *result, struct tern_error *err);

#ifdef __cplusplus
}
#endif
#endif
