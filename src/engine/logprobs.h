/* SPDX-License-Identifier: MIT
 *
 * Log-probabilities of ids, for the events of the scheduler.
 *
 * Called by tokens.c and prompt_rows.c for requests that want them.
 */
#ifndef TN_LOGPROBS_H
#define TN_LOGPROBS_H

#include "tern/scheduler.h"

/* Writes the log softmax of `id`, then of the n - 1 largest logits: largest first, lower ids first
 * among equals.  logits [n_vocab].  Returns the number of entries, less than n for a smaller
 * vocabulary. */
uint32_t tn_logprobs(struct tern_token_logprob *out, uint32_t n, const float *logits,
                     uint32_t n_vocab, uint32_t id);

#endif
