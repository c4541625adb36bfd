/* SPDX-License-Identifier: MIT
 *
 * The norms of hidden states between the halves of layers: the kinds of enum tern_norm.  RMSNorms
 * of single projections, heads and branches are elsewhere.
 */
#ifndef TN_NORM_H
#define TN_NORM_H

#include "model/forward.h"

/* dst [hidden] = norm of x, of the kind that the configuration names; a copy if there is no norm.
 * dst may be x. */
void tn_norm_state(const struct tn_forward *f, float *dst, const float *x,
                   const struct tn_norm *norm);
/* The same for all rows of h, in parallel; dst may be f->s.h. */
void tn_norm_states(struct tn_forward *f, float *dst, const struct tn_norm *norm);

#endif
