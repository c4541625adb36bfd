/* SPDX-License-Identifier: MIT
 *
 * Chooses ids for texts that fill a gap: rather none than unlikely ones (struct tern_request).
 */
#ifndef TN_FILL_CHOICE_H
#define TN_FILL_CHOICE_H

#include "engine/generation.h"

/* Chooses as tern_sampler_sample from what this filter leaves of its distribution.  Draws one
 * random number.  Errors as tern_sampler_sample. */
tern_status tn_fill_choose(struct tn_generation *g, const float *logits, uint32_t *id,
                           struct tern_error *err);

#endif
