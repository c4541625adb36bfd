/* SPDX-License-Identifier: MIT
 *
 * A mixer with a state that can be taken back only to multiples of 32: what recurrent layers are
 * like, without their arithmetic.
 *
 *   sum <- 0.75 * sum + h[0..16)      for every row, so any row too much or too few shows
 *   h[16..32) += 0.5 * sum
 *
 * Besides the sum at its own position it has those at the last two multiples of 32.
 */
#ifndef COARSE_MIXER_H
#define COARSE_MIXER_H

#include "model/mixer.h"
#include "tern/tern.h"

#define COARSE_STEP 32u

extern const struct tn_mixer coarse_mixer;

/* Every second layer of an open model, the last one included, becomes coarse.  Before sessions of
 * it are made. */
void coarse_layers(struct tern_model *model);

#endif
