/* SPDX-License-Identifier: MIT
 *
 * Running a model: engine (threads, kernels), model (a mapped file), session
 * (one conversation's key/value cache).
 *
 *   struct tern_engine *engine;   tern_engine_create(&engine, NULL, &err);
 *   struct tern_model *model;     tern_model_open(&model, "demo.tern", &err);
 *   struct tern_session *session; tern_session_create(&session, engine, model, NULL, &err);
 *   tern_generate(session, ids, n_ids, &params, &result, &err);
 *
 * Free in the opposite order.  An engine serves one thread at a time; a model
 * is read-only and may be shared by engines.
 */
#ifndef TERN_TERN_H
#define TERN_TERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/model_format.h"
#include "tern/sampler.h"
#include "tern/status.h"
#include "tern/tokenizer.h"
#include "tern/version.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- engine ---- */

struct tern_engine;

struct tern_engine_params {
    /* At most TERN_PLAN_MAX_THREADS. */
    uint32_t n_threads;         /* decode; 0 = as many as help on this machine (tern/plan.h) */
    uint32_t n_threads_prefill; /* 0 = the same as n_threads, or the same rule */
    /* OS numbers of CPUs to bind the threads to, the calling thread first; at least as many as
     * threads. NULL: the scheduler decides. The calling thread gets its CPUs back when it frees the
     * engine. */
    const uint32_t *cpus;
    const char *cpu_level; /* highest kernel level allowed, NULL = the best */
};

/* params may be NULL. Reads the machine, which takes some milliseconds and asks something of other
 * threads: see tern_sysinfo_read. TERN_USAGE: too many threads, or an unknown level (the known ones
 * are listed); TERN_UNSUPPORTED: a level that this CPU lacks; TERN_MEMORY. */
tern_status tern_engine_create(struct tern_engine **out, const struct tern_engine_params *params,
                               struct tern_error *err);
void tern_engine_free(struct tern_engine *engine);
/* Those that decode. */
uint32_t tern_engine_n_threads(const struct tern_engine *engine);
/* The level in use: "avx2". */
const char *tern_engine_cpu_level(const struct tern_engine *engine);
/* Other thread counts from the next evaluation on, at most those at creation. */
void tern_engine_set_threads(struct tern_engine *engine, uint32_t n_decode, uint32_t n_prefill);

/* ---- model ---- */

struct tern_model;

/* Maps and checks a file (not its data: `tern verify` does). Takes milliseconds and no memory in
 * proportion to the model. TERN_INPUT: missing, unreadable, damaged, not a .tern file;
 * TERN_UNSUPPORTED: another version of the format, or something in it that tern does not have;
 * TERN_MEMORY. A file that is truncated while it is open ends the process with SIGBUS (Windows: an
 * exception) when it is read there. */
tern_status tern_model_open(struct tern_model **out, const char *path, struct tern_error *err);
void tern_model_free(struct tern_model *model);
/* The file's configuration block, valid as long as the model. */
const struct tern_file_config *tern_model_config(const struct tern_model *model);
const char *tern_model_path(const struct tern_model *model);
/* NULL for a file without one. */
const struct tern_tokenizer *tern_model_tokenizer(const struct tern_model *model);
/* NULL when the model has no template or an unknown one. */
const struct tern_chat_template *tern_model_chat_template(const struct tern_model *model);
bool tern_model_is_stop_id(const struct tern_model *model, uint32_t id);
/* TERN_MAPPED_IO when somebody has written to the file since it was opened: what was checked then
 * no longer holds. For programs that wait between two uses; tern_generate asks by itself. */
tern_status tern_model_check_unchanged(const struct tern_model *model, struct tern_error *err);

/* Touches every page of the file in order, so that the first tokens do not wait for the disk at
 * random places: 10 ms where the file is in the page cache, else as long as reading takes. Not
 * where the file is larger than the free memory. on_progress (bytes) returns false to stop:
 * TERN_INTERRUPTED. May be NULL. */
tern_status tern_model_prefetch(const struct tern_model *model,
                                bool (*on_progress)(void *arg, uint64_t n_done, uint64_t n_total),
                                void *arg, struct tern_error *err);

struct tern_model_info {
    const char *name; /* NUL-terminated, valid as long as the model */
    const char *architecture;
    const char *layout; /* family of the ternary tensors: "t2" */
    const char *head;   /* "q8", "q6", "q4", "f16", "bf16" */
    const char *template_name; /* NULL: none or unknown */
    bool has_template;         /* the file carries a template source */
    uint64_t file_bytes;
    uint64_t ternary_bytes;
    uint64_t head_bytes;
    uint64_t bytes_per_token; /* every byte of the model that one decoded token reads, once */
    uint64_t n_ternary;
    uint64_t n_zero;
    uint64_t kv_bytes_per_token[3]; /* enum tern_kv */
};
void tern_model_get_info(const struct tern_model *model, struct tern_model_info *out);

/* The tensor table as text for people and programs; name buffer of at least 48 bytes. */
uint32_t tern_model_n_tensors(const struct tern_model *model);
const struct tern_file_tensor *tern_model_tensor(const struct tern_model *model, uint32_t i,
                                                 char name[48]);
const char *tern_layout_text(uint32_t layout); /* "t2"; "?" if unknown */

/* ---- session ---- */

struct tern_session;

enum tern_kv { TERN_KV_F32 = 0, TERN_KV_F16 = 1, TERN_KV_Q8 = 2 };
const char *tern_kv_text(enum tern_kv kv); /* "f32", "f16", "q8" */

struct tern_session_params {
    uint32_t n_ctx;   /* positions, at most the model's context; 0 = that */
    enum tern_kv kv;
    uint32_t n_batch; /* prefill batch, 1..512; 0 = 128 */
    bool drop_pages;  /* give pages of the file back after use: slow, for little memory */
    /* Asked before the cache grows by n_bytes; false stops the evaluation with TERN_MEMORY. NULL:
     * always. */
    bool (*may_grow)(void *arg, uint64_t n_bytes);
    /* Asked between layers; true stops with TERN_INTERRUPTED. Must be quick. NULL: never. */
    bool (*should_stop)(void *arg);
    void *arg;
};
void tern_session_params_default(struct tern_session_params *out); /* f16 */

/* Reserves everything that the session will ever need except the cache's pages, which are
 * committed 256 positions at a time. params may be NULL. TERN_USAGE: a parameter out of range;
 * TERN_MEMORY, with numbers: no address space, or, where nobody is asked through may_grow, less
 * available than tern_session_bytes_full. */
tern_status tern_session_create(struct tern_session **out, struct tern_engine *engine,
                                const struct tern_model *model,
                                const struct tern_session_params *params, struct tern_error *err);
void tern_session_free(struct tern_session *session);
uint32_t tern_session_n_ctx(const struct tern_session *session);
/* Positions that are filled. */
uint32_t tern_session_n_past(const struct tern_session *session);
/* Forgets everything from position n_keep on; never fails. */
void tern_session_truncate(struct tern_session *session, uint32_t n_keep);
/* Ids at positions [0, n_past). */
const uint32_t *tern_session_ids(const struct tern_session *session);
/* Anonymous memory that this session holds now, and will hold with n_ctx filled. */
uint64_t tern_session_bytes(const struct tern_session *session);
uint64_t tern_session_bytes_full(const struct tern_session *session);

/* Appends n ids.  Logits of the last one are then in tern_session_logits.  all_logits, if not
 * NULL, receives [n][vocab] f32.  TERN_USAGE: an id beyond the vocabulary; TERN_LIMIT: no room in
 * the context; TERN_MEMORY: the cache may not grow (ids before it stay evaluated, see n_past);
 * TERN_INTERRUPTED. The result does not depend on how ids are split over calls. */
tern_status tern_session_eval(struct tern_session *session, const uint32_t *ids, size_t n,
                              float *all_logits, struct tern_error *err);
/* [vocab] f32 of the last evaluated position; NULL before the first, after a shortening, and after
 * an evaluation that stopped on its way. Behind tern_generate only what the choice needed is sure
 * to be there, the rest may be minus infinity: evaluate the last id again for all of it. */
const float *tern_session_logits(const struct tern_session *session);

#define TERN_N_REGIONS 7 /* where a token's time goes; their names: tern_counter_region */

/* What evaluations cost and saved, since tern_session_create or _reset_counters. */
struct tern_counters {
    uint64_t n_decoded;          /* tokens evaluated one at a time */
    uint64_t n_prefilled;
    uint64_t decode_weight_bytes; /* bytes of weights that decoding needed */
    double up_density;            /* share of up rows computed, 1 when dense */
    double down_density;          /* share of down columns added, 1 when dense */
    double head_density;          /* share of head rows computed exactly, 1 without a search */
    double decode_s[TERN_N_REGIONS];
    double prefill_s[TERN_N_REGIONS];
};
const char *tern_counter_region(uint32_t i); /* "qkv", "attention", ...; NULL beyond the last */
void tern_session_get_counters(const struct tern_session *session, struct tern_counters *out);
void tern_session_reset_counters(struct tern_session *session);

/* ---- generate ---- */

enum tern_stop {
    TERN_STOP_EOS,       /* a stop id of the model */
    TERN_STOP_STRING,    /* a stop string */
    TERN_STOP_LENGTH,    /* max_tokens */
    TERN_STOP_CONTEXT,   /* the context is full */
    TERN_STOP_MEMORY,    /* the cache may not grow */
    TERN_STOP_INTERRUPT, /* should_stop, or a callback returned false */
};
const char *tern_stop_text(enum tern_stop stop); /* "eos" "stop" "length" "context" ... */

struct tern_steering; /* tern/plan.h */

struct tern_generate_params {
    struct tern_sampler *sampler; /* not NULL; made for the model's vocabulary */
    struct tern_steering *steering; /* adapts thread counts while running; may be NULL */
    uint32_t max_tokens;
    bool ignore_eos;
    const char *const *stop_strings; /* n_stop_strings texts, none empty */
    size_t n_stop_strings;
    /* Called with text that is decided (whole characters; no part of a stop string). Return false
     * to stop: it is not called again. May be NULL. */
    bool (*on_text)(void *arg, const char *text, size_t n_bytes);
    /* Called with every new id, also stop ids. May be NULL. */
    void (*on_token)(void *arg, uint32_t id);
    /* Called between prefill batches with positions done and to do. May be NULL. */
    void (*on_prefill)(void *arg, size_t n_done, size_t n_total);
    void *arg;
};

struct tern_generate_result {
    enum tern_stop stop;
    uint32_t n_prompt;       /* ids of the prompt */
    uint32_t n_prompt_evaluated; /* of these, not already in the cache */
    uint32_t n_new;          /* tokens sampled, the stop id included */
    double prompt_s;
    double decode_s;
};

/* Brings the session to `ids` (positions that agree with the cache are kept, the rest is
 * evaluated), then samples.  The last sampled id is not evaluated.  A model without a tokenizer
 * generates ids only.  The sampler's history becomes `ids` and what is sampled, and from then on it
 * borrows the model's list of control tokens (tern_sampler_set_exempt).
 * What ends the sampling is no error: result->stop says it.  TERN_USAGE: no ids, or one beyond the
 * vocabulary; TERN_LIMIT: the prompt does not fit the context (both numbers); TERN_MEMORY,
 * TERN_INTERRUPTED: before the first token; TERN_INTERNAL: no logit is finite. */
tern_status tern_generate(struct tern_session *session, const uint32_t *ids, size_t n_ids,
                          const struct tern_generate_params *params,
                          struct tern_generate_result *result, struct tern_error *err);

#ifdef __cplusplus
}
#endif
#endif
