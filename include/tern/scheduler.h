/* SPDX-License-Identifier: MIT
 *
 * Several requests on one model at once: what a server, or a program with many
 * prompts, runs instead of tern_generate.
 *
 *   tern_scheduler_submit(s, &request, &id, &err);      as many as there are
 *   for (bool is_idle = false; !is_idle;) {
 *       tern_scheduler_step(s, &events, &n_events, &is_idle, &err);
 *       for (size_t i = 0; i < n_events; i++) ...       text, ends
 *   }
 *
 * n_sequences requests run at the same time, the others wait in the order in which they came.
 * A step gives every answer that is being written its next token, or several where drafts were
 * right, and takes a prompt further.  Where the beginning of a prompt is still in the cache, of a
 * request that runs or of one that has ended, it is not computed again.
 *
 * What a request gets does not depend on the others: its tokens are those of tern_generate with the
 * same parameters in a session of the same n_ctx and cache type.
 *
 * All calls come from one thread, but for tern_scheduler_cancel.
 */
#ifndef TERN_SCHEDULER_H
#define TERN_SCHEDULER_H

#include "tern/grammar.h"
#include "tern/tern.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tern_scheduler;

#define TERN_SCHEDULER_MAX_SEQUENCES 64
#define TERN_SCHEDULER_MAX_QUEUE 4096
#define TERN_MAX_LOGPROBS 256

struct tern_scheduler_params {
    uint32_t n_sequences; /* requests that run at the same time, 1..64 */
    uint32_t n_queue;     /* requests that may wait beside them, 0..4096 */
    uint32_t n_ctx;       /* positions of each, at most the model's context; 0 = that */
    enum tern_kv kv;
    uint32_t n_batch;     /* rows of a step, 1..512; 0 = 128 */
    uint32_t n_checkpoints; /* as tern_session_params, for all sequences; 0 = n_sequences + 4 */
    bool drop_pages;      /* as tern_session_params */
    /* Asked before the cache grows by n_bytes; false ends the request that needed them
     * (TERN_STOP_MEMORY). NULL: always. */
    bool (*may_grow)(void *arg, uint64_t n_bytes);
    /* Asked between layers and inside long loops, on the thread that steps; true stops the step
     * with TERN_INTERRUPTED. Must be quick. NULL: never. */
    bool (*should_stop)(void *arg);
    void *arg;
};
/* 4 sequences, 64 waiting, the model's context and cache type. */
void tern_scheduler_params_default(struct tern_scheduler_params *out,
                                   const struct tern_model *model);

/* Takes what all requests will need beside their prompts and the cache's pages. params NULL: the
 * defaults. Model and engine outlive the scheduler. TERN_USAGE: a parameter out of range;
 * TERN_UNSUPPORTED: a model without a head; TERN_MEMORY. */
tern_status tern_scheduler_create(struct tern_scheduler **out, struct tern_engine *engine,
                                  const struct tern_model *model,
                                  const struct tern_scheduler_params *params,
                                  struct tern_error *err);
/* Requests that have not ended are dropped without an event. */
void tern_scheduler_free(struct tern_scheduler *scheduler);
uint32_t tern_scheduler_n_ctx(const struct tern_scheduler *scheduler);

/* Everything that pointers lead to is copied at submit. */
struct tern_request {
    const uint32_t *ids; /* the prompt */
    size_t n_ids;
    struct tern_sampler_params sampler;
    uint32_t max_tokens; /* 0: only the prompt */
    bool ignore_eos;
    const char *const *stop_strings; /* none empty */
    size_t n_stop_strings;
    /* Entries per token, at most TERN_MAX_LOGPROBS: that of the id itself, then the n_logprobs - 1
     * largest of all ids, largest first. 0: none. */
    uint32_t n_logprobs;
    /* TERN_EVENT_PROMPT for every id of the prompt, with max(1, n_logprobs) entries. The whole
     * prompt is computed then. */
    bool prompt_logprobs;
    /* Ids that may be drafted ahead, at most TERN_MAX_DRAFT; 0: none. As in tern_generate_params;
     * where other answers leave rows free for them. */
    uint32_t n_draft;
    /* Where the system text and the last message of the user end in `ids`; as in
     * tern_generate_params. */
    uint32_t n_system, n_turn;
    /* What the answer must be (tern/grammar.h): it ends when it is that. Borrowed until the END;
     * the model has a tokenizer. Logits of ids that the grammar does not allow are not computed as
     * a rule, but log-probabilities are of all ids; nothing is drafted. NULL: anything. */
    const struct tern_grammar *grammar;
    /* Called before each choice, before penalties, with a copy of all logits; may add to them and
     * set them to -INFINITY. The last id chosen is known from the events before: nothing is drafted
     * then. NULL: never. */
    void (*adjust)(void *arg, float *logits, uint32_t n_vocab);
    void *arg; /* handed back in events */
};

/* Appends a request to those that wait; *id is never 0 and never used again. TERN_USAGE: no ids, an
 * id beyond the vocabulary, an empty stop string, sampler parameters out of range, too many
 * log-probabilities; TERN_LIMIT: the prompt does not fit the context (both numbers); TERN_BUSY:
 * n_sequences + n_queue requests have not ended; TERN_MEMORY. */
tern_status tern_scheduler_submit(struct tern_scheduler *scheduler,
                                  const struct tern_request *request, uint64_t *id,
                                  struct tern_error *err);

/* The request ends at the next step, or inside the one that runs when that computes nothing for
 * others; its END says TERN_STOP_INTERRUPT. Any thread; an id that has ended is ignored. */
void tern_scheduler_cancel(struct tern_scheduler *scheduler, uint64_t request);

enum tern_event_kind {
    TERN_EVENT_PREFILL, /* a part of the prompt is computed: n_done of n_total */
    TERN_EVENT_PROMPT,  /* an id of the prompt with its log-probabilities, in order */
    TERN_EVENT_TOKEN,   /* an id was chosen, with the text that it decides, which may be empty */
    TERN_EVENT_END      /* the last one of a request, with the text that was held back */
};

/* ln of the probability that softmax gives an id, from the logits of the model as they are: before
 * adjust, penalties and temperature, over all ids of the vocabulary. */
struct tern_token_logprob {
    uint32_t id;
    float logprob;
};

struct tern_event {
    enum tern_event_kind kind;
    uint64_t request;
    void *arg;           /* of the request */
    uint32_t id;         /* TOKEN, PROMPT */
    const char *text;    /* TOKEN, END: [n_text] whole characters, no part of a stop string */
    size_t n_text;
    const struct tern_token_logprob *logprobs; /* TOKEN, PROMPT: [n_logprobs]; the first id of a */
    uint32_t n_logprobs;                       /* prompt has none */
    uint32_t n_done, n_total; /* PREFILL: ids of the prompt, without those that were cached */
    /* END: counts and why it ended. prompt_s and decode_s count from when it began to run, and
     * contain the time of the others. */
    struct tern_generate_result result;
    /* END: TERN_OK, or what kept the request from an answer or from going on with it: TERN_MEMORY
     * for a prompt; TERN_INTERNAL: no logit is finite; with a grammar TERN_LIMIT: the text has too
     * many readings, TERN_UNSUPPORTED: no token continues it. */
    tern_status status;
    struct tern_error error;
};

/* One step of all requests that run.  The events and what they point to are valid until the next
 * step; *is_idle: no request is left.  TERN_INTERRUPTED: should_stop; what was computed is dropped,
 * and the next step goes on.  TERN_MAPPED_IO as tern_model_check_unchanged. After an error
 * the events are those of what was done before it. */
tern_status tern_scheduler_step(struct tern_scheduler *scheduler, const struct tern_event **events,
                                size_t *n_events, bool *is_idle, struct tern_error *err);

/* What a scheduler does and holds, for those who watch it. */
struct tern_scheduler_state {
    uint32_t n_running;
    uint32_t n_waiting;
    uint64_t bytes;      /* anonymous memory that it holds now, but for requests */
    uint64_t bytes_full; /* with all sequences filled */
};
void tern_scheduler_get_state(const struct tern_scheduler *scheduler,
                              struct tern_scheduler_state *out);

#ifdef __cplusplus
}
#endif
#endif
