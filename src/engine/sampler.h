/* SPDX-License-Identifier: MIT
 *
 * What an answer (generation.h) asks of a sampler: which logits its choice can depend on,
 * and which vocabulary it was made for.
 */
#ifndef TN_SAMPLER_H
#define TN_SAMPLER_H

#include <stdbool.h>

#include "tern/sampler.h"

/* As tern_sampler_create was told. */
uint32_t tn_sampler_n_vocab(const struct tern_sampler *sampler);
/* The choice depends on this many of the largest logits (and those equal to the last of them), and
 * on the penalised ids; 0: on all. */
uint32_t tn_sampler_n_best(const struct tern_sampler *sampler);
/* The distinct ids whose logits a penalty changes, ascending, at most `capacity` of them.  False
 * when there are more. */
bool tn_sampler_penalised(struct tern_sampler *sampler, uint32_t *ids, uint32_t capacity,
                          uint32_t *n);

/* Ids that may be chosen from now on: bits [n_vocab], borrowed; NULL: all. */
void tn_sampler_set_bits(struct tern_sampler *sampler, const uint64_t *bits);

/* TERN_USAGE names a parameter out of range. */
tern_status tn_sampler_check(const struct tern_sampler_params *params, struct tern_error *err);
/* Other parameters, which tn_sampler_check has found good, an empty history and a new random
 * sequence, in the memory that is there. At most as many ids of penalty_last count
 * as the sampler was created for. */
void tn_sampler_configure(struct tern_sampler *sampler, const struct tern_sampler_params *params);

#endif
