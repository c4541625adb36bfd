/* SPDX-License-Identifier: MIT
 *
 * Attention: what mixes positions.
 */
#ifndef TN_ATTN_H
#define TN_ATTN_H

#include "model/forward.h"

/* From s.q [n][n_head * head_dim], s.k and s.v [n][n_kv_head * head_dim] of layer number `layer`,
 * not yet rotated: norms and rotates heads, stores keys and values in the cache, and leaves
 * softmax(score_scale * q.k^T) . v in s.att [n][n_head * head_dim]. */
void tn_attention(struct tn_forward *f, uint32_t layer);

/* Puts a rotated key and a value, [dim] each (kvcache.h), into the cache that `blocks` are, at a
 * position that they have room for. */
void tn_kv_store_row(const struct tn_forward *f, unsigned char *const *blocks, uint32_t layer,
                     uint32_t i_kv_head, uint32_t position, const float *key, const float *value);

#endif
