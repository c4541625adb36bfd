/* SPDX-License-Identifier: MIT
 *
 * Internal functions of the sampler, for generation.h and the scheduler: which logits its next
 * choice depends on, and reconfiguration without allocation.
 */
#ifndef TN_SAMPLER_H
#define TN_SAMPLER_H

#include <stdbool.h>

#include "tern/sampler.h"

/* The size passed to tern_sampler_create. */
uint32_t tn_sampler_n_vocab(const struct tern_sampler *sampler);
/* The choice depends on this many of the largest logits (and on those equal to the last) and on the
 * penalised ids; 0: on all logits. */
uint32_t tn_sampler_n_best(const struct tern_sampler *sampler);
/* The distinct ids whose logits a penalty changes, ascending.  false: more than `capacity`. */
bool tn_sampler_penalised(struct tern_sampler *sampler, uint32_t *ids, uint32_t capacity,
                          uint32_t *n);

/* Restricts choices to a set of ids: bits [n_vocab], borrowed; NULL: all. */
void tn_sampler_set_bits(struct tern_sampler *sampler, const uint64_t *bits);

/* The first entries of tern_sampler_distribution, at most `max`, with their probabilities among all
 * of them. */
tern_status tn_sampler_first(struct tern_sampler *sampler, const float *logits, uint32_t n,
                             uint32_t n_allowed, uint32_t max, uint32_t *ids, float *probabilities,
                             uint32_t *n_out, struct tern_error *err);
/* The next random number in [0, 1). */
float tn_sampler_random(struct tern_sampler *sampler);

/* TERN_USAGE: names the parameter that is out of range. */
tern_status tn_sampler_check(const struct tern_sampler_params *params, struct tern_error *err);
/* Resets the sampler in place: new parameters (checked by tn_sampler_check), an empty history, a
 * new random sequence.  penalty_last is limited to the value at creation. */
void tn_sampler_configure(struct tern_sampler *sampler, const struct tern_sampler_params *params);

#endif
