/* SPDX-License-Identifier: MIT
 *
 * Several requests on one model at the same time, for a server or a program with many prompts,
 * instead of tern_generate.  All calls come from one thread, except tern_scheduler_cancel.
 *
 *   tern_scheduler_submit(s, &request, &id, &err);      for every request
 *   for (bool is_idle = false; !is_idle;) {
 *       tern_scheduler_step(s, &events, &n_events, &is_idle, &err);
 *       for (size_t i = 0; i < n_events; i++) ...       text, ends
 *   }
 */

/* n_sequences requests run at the same time; the others wait in the order of submission.  A step
 * gives every running answer its next token, or several if drafts were right, and computes some
 * more of a prompt.  A prefix of a prompt that is still in the cache, of a running or an ended
 * request, is not computed again.
 *
 * The results of a request do not depend on the others: its tokens are those of tern_generate with
 * the same parameters in a session of the same n_ctx and cache type. */
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
    uint32_t n_queue;     /* further requests that may wait, 0..4096 */
    uint32_t n_ctx;       /* positions of each, at most the model's context; 0 = that */
    enum tern_kv kv;
    uint32_t n_batch;     /* rows of a step, 1..512; 0 = 128 */
    uint32_t n_checkpoints; /* as in tern_session_params, for all sequences; 0 = n_sequences + 4 */
    bool drop_pages;      /* as in tern_session_params */
    bool no_draft_head;   /* no memory for the draft head of a model: drafts come from texts only */
    /* Called before the cache grows by n_bytes; false ends the request that needs them
     * (TERN_STOP_MEMORY).  NULL: always. */
    bool (*may_grow)(void *arg, uint64_t n_bytes);
    /* Called between layers and inside long loops, on the stepping thread; true ends the step with
     * TERN_INTERRUPTED.  Must be quick.  NULL: never. */
    bool (*should_stop)(void *arg);
    void *arg;
};
/* 4 sequences, 64 waiting, the model's context and cache type. */
void tern_scheduler_params_default(struct tern_scheduler_params *out,
                                   const struct tern_model *model);

/* Allocates the memory of all requests except their prompts and the cache's pages.  params NULL:
 * the defaults.  Model and engine outlive the scheduler.  TERN_USAGE: a parameter out of range;
 * TERN_UNSUPPORTED: a model without a head; TERN_MEMORY. */
tern_status tern_scheduler_create(struct tern_scheduler **out, struct tern_engine *engine,
                                  const struct tern_model *model,
                                  const struct tern_scheduler_params *params,
                                  struct tern_error *err);
/* Requests that have not ended are dropped without an event. */
void tern_scheduler_free(struct tern_scheduler *scheduler);
uint32_t tern_scheduler_n_ctx(const struct tern_scheduler *scheduler);

/* Submit copies everything that the pointers refer to. */
struct tern_request {
    const uint32_t *ids; /* the prompt */
    size_t n_ids;
    struct tern_sampler_params sampler;
    uint32_t max_tokens; /* 0: evaluate the prompt only */
    bool ignore_eos;
    /* Choose among the ids that are likely to fit a gap, after the sampler's chain: an id that ends
     * the text if those are likely, or if no other id is; among ids of which one's text begins
     * another's text, the most likely.  llama.cpp calls this "infill".  The model has a tokenizer;
     * without effect under a grammar. */
    bool fits_gap;
    const uint32_t *end_ids; /* end the answer like the model's stop ids */
    size_t n_end_ids;
    const char *const *stop_strings; /* no empty ones */
    size_t n_stop_strings;
    /* Entries per token, at most TERN_MAX_LOGPROBS: the id itself, then the n_logprobs - 1 largest
     * of all ids, largest first.  0: none. */
    uint32_t n_logprobs;
    /* Report TERN_EVENT_PROMPT for every id of the prompt, with max(1, n_logprobs) entries.  Then
     * the whole prompt is computed. */
    bool prompt_logprobs;
    /* Ids that may be drafted ahead, at most TERN_MAX_DRAFT; 0: none.  As in tern_generate_params;
     * only while other answers leave rows free. */
    uint32_t n_draft;
    /* End of the system text and of the last user message in `ids`; as in tern_generate_params. */
    uint32_t n_system, n_turn;
    /* The grammar of the answer (tern/grammar.h): it ends when the text is complete.  Borrowed
     * until the END; the model has a tokenizer.  Logits of ids that the grammar does not allow are
     * usually not computed, but log-probabilities are over all ids; nothing is drafted.  NULL: no
     * restriction. */
    const struct tern_grammar *grammar;
    /* Called before each choice, before penalties, with a copy of all logits; may add to them and
     * set them to -INFINITY; if no possible id keeps a finite one, the request ends with
     * TERN_USAGE. The caller knows the last chosen id from earlier events: nothing is drafted
     * then. NULL: never. */
    void (*adjust)(void *arg, float *logits, uint32_t n_vocab);
    void *arg; /* passed back in events */
};

/* Appends a request to the queue; *id is never 0 and never reused.  TERN_USAGE: no ids, an id
 * outside the vocabulary, an empty stop string, sampler parameters out of range, too many
 * log-probabilities; TERN_LIMIT: the prompt does not fit the context (both numbers); TERN_BUSY:
 * n_sequences + n_queue requests have not ended; TERN_MEMORY. */
tern_status tern_scheduler_submit(struct tern_scheduler *scheduler,
                                  const struct tern_request *request, uint64_t *id,
                                  struct tern_error *err);

/* The request ends at the next step, or inside the current one if that computes nothing for others;
 * its END has TERN_STOP_INTERRUPT.  May be called from any thread; an ended request is ignored. */
void tern_scheduler_cancel(struct tern_scheduler *scheduler, uint64_t request);

enum tern_event_kind {
    TERN_EVENT_PREFILL, /* some of the prompt is computed: n_done of n_total */
    TERN_EVENT_PROMPT,  /* an id of the prompt with its log-probabilities, in order */
    TERN_EVENT_TOKEN,   /* an id was chosen, with the text that it completes, which may be empty */
    TERN_EVENT_END      /* the last event of a request, with the text held back so far */
};

/* ln of the probability that softmax gives an id, from the unmodified logits of the model: before
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
    uint32_t n_done, n_total; /* PREFILL: ids of the prompt, without cached ones */
    /* END: counts and the reason.  prompt_s and decode_s count from the start of the request,
     * including the time of other requests. */
    struct tern_generate_result result;
    /* END: TERN_OK, or the error that ended the request: TERN_MEMORY for a prompt; TERN_INTERNAL:
     * no logit is finite; with a grammar TERN_LIMIT: the text has too many readings,
     * TERN_UNSUPPORTED: no token continues it. */
    tern_status status;
    struct tern_error error;
};

/* One step of all running requests.  The events and their pointers are valid until the next step;
 * *is_idle: no request is left.  TERN_INTERRUPTED: should_stop; the partial step is dropped, and
 * the next one continues.  TERN_MAPPED_IO as tern_model_check_unchanged.  After an error the events
 * are those that precede it. */
tern_status tern_scheduler_step(struct tern_scheduler *scheduler, const struct tern_event **events,
                                size_t *n_events, bool *is_idle, struct tern_error *err);

/* The state of a scheduler, for monitoring. */
struct tern_scheduler_state {
    uint32_t n_running;
    uint32_t n_waiting;
    uint64_t bytes;      /* current anonymous memory, without that of requests */
    uint64_t bytes_full; /* the same with all sequences filled */
};
void tern_scheduler_get_state(const struct tern_scheduler *scheduler,
                              struct tern_scheduler_state *out);

#ifdef __cplusplus
}
#endif
#endif
