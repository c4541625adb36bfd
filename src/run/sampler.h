/* SPDX-License-Identifier: MIT
 *
 * What generate.c asks of a sampler: which logits its choice can depend on.
 */
#ifndef TN_SAMPLER_H
#define TN_SAMPLER_H

#include <stdbool.h>

#include "tern/sampler.h"

/* The choice depends on this many of the largest logits (and those equal to the last of them), and
 * on the penalised ids; 0: on all. */
uint32_t tn_sampler_n_best(const struct tern_sampler *sampler);
/* The distinct ids whose logits a penalty changes, ascending, at most `capacity` of them.  False
 * when there are more. */
bool tn_sampler_penalised(struct tern_sampler *sampler, uint32_t *ids, uint32_t capacity,
                          uint32_t *n);

#endif
