/* SPDX-License-Identifier: MIT
 *
 * Log-probabilities of ids, for the scheduler's events.
 */
#ifndef TN_LOGPROBS_H
#define TN_LOGPROBS_H

#include "tern/scheduler.h"

/* log softmax(logits) of `id`, then of the n - 1 largest logits, largest first and lower ids first
 * among equals; logits [n_vocab], sums in double.  Result: how many entries there are, less than n
 * where the vocabulary has fewer ids. */
uint32_t tn_logprobs(struct tern_token_logprob *out, uint32_t n, const float *logits,
                     uint32_t n_vocab, uint32_t id);

#endif
