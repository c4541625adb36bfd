/* SPDX-License-Identifier: MIT
 *
 * The feed-forward half of a layer.
 */
#ifndef TN_FFN_H
#define TN_FFN_H

#include "model/forward.h"

/* h += residual_scale * post_norm(down(sub_norm(act(gate(x)) * up(x)))), x = ffn_norm(h). */
void tn_ffn(struct tn_forward *f, const struct tn_layer *layer);

#endif
