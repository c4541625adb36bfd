/* SPDX-License-Identifier: MIT
 *
 * The first and the last step of the forward pass: token ids to hidden states, and hidden states to
 * logits.  forward.c calls them.
 */
#ifndef TN_EMBED_HEAD_H
#define TN_EMBED_HEAD_H

#include "model/forward.h"

/* s.h [n][hidden] = embedding_scale * rows `ids` of the embedding. */
void tn_embed(struct tn_forward *f, const uint32_t *ids);
/* Computes the outputs of the batch from s.h: normed states and logits. */
void tn_output(struct tn_forward *f);

#endif
