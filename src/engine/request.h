/* SPDX-License-Identifier: MIT
 *
 * A request from submission to its last event: its parameters and its progress.
 *
 * Created by the scheduler or by tern_generate; runs in a lane (steps.h).
 */
#ifndef TN_REQUEST_H
#define TN_REQUEST_H

#include "engine/draft.h"
#include "engine/generation.h"
#include "tern/scheduler.h"

/* Rows of a prompt whose logits are held at the same time. */
#define TN_PROMPT_LOGPROB_ROWS 8u

struct tn_token_list;

struct tn_request {
    uint64_t id;
    struct tern_request asked; /* pointers lead into `memory`, or are borrowed */
    void *memory;
    struct tn_generation generation;
    struct tn_drafter drafter;
    struct tern_generate_result result;
    /* [n][n_logprobs, at least 1]: for the ids chosen in a step, or for the id after the prompt and
     * then those in it; NULL: not requested */
    struct tern_token_logprob *logprobs;
    uint64_t start_ns, first_ns; /* start of the run; end of the prompt */
    struct tn_request *next;     /* in the queue */
};

/* Allocates memory for the text and for drafts.  The caller sets these first: `asked`, the sampler
 * of `generation`, and for drafts its own members of the drafter.  TERN_MEMORY. */
tern_status tn_request_init(struct tn_request *r, const struct tern_model *model, uint32_t n_ctx,
                            struct tern_error *err);
void tn_request_fini(struct tn_request *r);

/* Attaches the grammar of a request, if any.  *tokens: the model's sorted vocabulary, created if
 * NULL.  TERN_LIMIT, TERN_MEMORY as tn_constraint_create. */
tern_status tn_request_bind(struct tn_request *request, const struct tern_model *model,
                            struct tn_token_list **tokens, struct tern_error *err);

/* Copies a request that passed tn_request_check.  TERN_MEMORY. */
tern_status tn_request_create(struct tn_request **out, const struct tern_request *asked,
                              const struct tern_model *model, uint32_t n_ctx,
                              struct tern_error *err);
void tn_request_free(struct tn_request *request);

/* Everything but the sampler.  TERN_USAGE, TERN_LIMIT: as tern_scheduler_submit. */
tern_status tn_request_check(const struct tern_request *asked, const struct tern_model *model,
                             uint32_t n_ctx, struct tern_error *err);

/* Entries per id that has log-probabilities. */
static inline uint32_t tn_request_n_logprobs(const struct tn_request *r)
{
    return r->asked.n_logprobs ? r->asked.n_logprobs : 1;
}

#endif
