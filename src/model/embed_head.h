/* SPDX-License-Identifier: MIT
 *
 * The two ends of the model.
 */
#ifndef TN_EMBED_HEAD_H
#define TN_EMBED_HEAD_H

#include "model/forward.h"

/* s.h [n][hidden] = embedding_scale * rows `ids` of the embedding. */
void tn_embed(struct tn_forward *f, const uint32_t *ids);
/* From s.h: what the batch leaves behind, states behind the final norm and logits. */
void tn_output(struct tn_forward *f);

#endif
