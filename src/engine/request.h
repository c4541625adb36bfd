/* SPDX-License-Identifier: MIT
 *
 * A request from its submission to its last event: what was asked for, and how far it is.
 */
#ifndef TN_REQUEST_H
#define TN_REQUEST_H

#include "engine/draft.h"
#include "engine/generation.h"
#include "tern/scheduler.h"

/* Rows of a prompt whose logits exist at the same time. */
#define TN_PROMPT_LOGPROB_ROWS 8u

struct tn_token_list;

struct tn_request {
    uint64_t id;
    struct tern_request asked; /* its pointers lead to `memory`, or are borrowed */
    void *memory;
    struct tn_generation generation;
    struct tn_drafter drafter;
    struct tern_generate_result result;
    /* [n][n_logprobs, at least 1]: for the ids chosen in a step, or for the id behind the prompt
     * and then those in it; NULL when nobody asks */
    struct tern_token_logprob *logprobs;
    uint64_t start_ns, first_ns; /* it began to run; its prompt was there */
    struct tn_request *next;     /* in the queue */
};

/* Takes memory for the text and for drafts; `asked` and the sampler of `generation` are there, and
 * of a drafter with drafts all that its caller sets. TERN_MEMORY. */
tern_status tn_request_init(struct tn_request *r, const struct tern_model *model, uint32_t n_ctx,
                            struct tern_error *err);
void tn_request_fini(struct tn_request *r);

/* Binds a request to its grammar, if it has one. *tokens are the model's, made here where they are
 * NULL. TERN_LIMIT, TERN_MEMORY as tn_constraint_create. */
tern_status tn_request_bind(struct tn_request *request, const struct tern_model *model,
                            struct tn_token_list **tokens, struct tern_error *err);

/* Copies a request that tn_request_check has found good. TERN_MEMORY. */
tern_status tn_request_create(struct tn_request **out, const struct tern_request *asked,
                              const struct tern_model *model, uint32_t n_ctx,
                              struct tern_error *err);
void tn_request_free(struct tn_request *request);

/* Errors of tern_scheduler_submit but for TERN_BUSY and TERN_MEMORY. */
tern_status tn_request_check(const struct tern_request *asked, const struct tern_model *model,
                             uint32_t n_ctx, struct tern_error *err);

/* Entries for each id that has log-probabilities. */
static inline uint32_t tn_request_n_logprobs(const struct tn_request *r)
{
    return r->asked.n_logprobs ? r->asked.n_logprobs : 1;
}

#endif
