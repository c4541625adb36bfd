/* SPDX-License-Identifier: MIT
 *
 * A request of the scheduler from its submission to its last event: a copy of
 * what was asked for, and how far it is.
 */
#ifndef TN_REQUEST_H
#define TN_REQUEST_H

#include "run/generation.h"
#include "tern/scheduler.h"

/* Rows of a prompt whose logits exist at the same time. */
#define TN_PROMPT_LOGPROB_ROWS 8u

struct tn_request {
    uint64_t id;
    struct tern_request asked; /* its pointers lead to `memory` */
    void *memory;
    struct tn_generation generation; /* the sampler is that of the lane */
    struct tern_generate_result result;
    /* [1 + TN_PROMPT_LOGPROB_ROWS, or 1][n_logprobs, at least 1], that of the chosen token first;
     * NULL when nobody asks */
    struct tern_token_logprob *logprobs;
    uint64_t start_ns, first_ns; /* it began to run; its prompt was there */
    struct tn_request *next;     /* in the queue */
};

/* Copies a request that tn_request_check has found good. TERN_MEMORY. */
tern_status tn_request_create(struct tn_request **out, const struct tern_request *asked,
                              const struct tern_model *model, struct tern_error *err);
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
