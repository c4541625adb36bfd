/* SPDX-License-Identifier: MIT
 *
 * A mixer whose state can be rolled back to multiples of 32 only, like recurrent layers but with
 * trivial arithmetic.
 *
 *   sum <- 0.75 * sum + h[0..16)      for every row, so a missing or repeated row shows
 *   h[16..32) += 0.5 * sum
 *
 * Besides the current sum it keeps those at the last two multiples of 32.
 */
#ifndef COARSE_MIXER_H
#define COARSE_MIXER_H

#include "model/mixer.h"
#include "tern/tern.h"

#define COARSE_STEP 32u

extern const struct tn_mixer coarse_mixer;

/* Makes every second layer of an open model coarse, including the last.  Call before creating
 * sessions. */
void coarse_layers(struct tern_model *model);

#endif
