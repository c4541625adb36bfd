/* SPDX-License-Identifier: MIT
 *
 * Attention over cached keys and values, called by the attention mixer (mixers/attention.c): the
 * scratch memory that it needs, and the pass over all rows of a batch.
 */
#ifndef TN_ATTN_H
#define TN_ATTN_H

#include "model/forward.h"

/* Attention processes at least this many query rows together if a batch has them. */
#define TN_ATTN_QUERIES 16u

/* Query rows in the cache's precision: for a q8 cache rounded like its keys (kern.h). */
struct tn_queries {
    void *rows;       /* [n][dim] f32, q8 cache: int8 */
    uint16_t *scales; /* [n][tn_kv_q8_scales(dim)], q8 cache only */
};

/* Partial attention of a group of query rows over some positions: see attn.c. */
struct tn_attn_state {
    float *max; /* [n] largest score */
    float *sum; /* [n] sum of exp(score - max) */
    float *out; /* [n][dim] sum of exp(score - max) * v */
};

/* Scratch memory of a thread; `queries` is tn_attn_group. */
struct tn_attn_thread {
    float *kv_row;                /* [2][dim] one rotated key and one value */
    struct tn_queries queries;    /* [queries], room for any type */
    uint32_t *n_valid, *n_before; /* [queries] the visible positions of a block: attn.c */
    uint8_t *is_first;            /* [queries] */
    float *score;                 /* [queries][TN_KV_BLOCK] */
    struct tn_attn_state part;    /* [queries], one block */
    struct tn_attn_state total;   /* [queries], the blocks so far */
};

/* Scratch memory of attention layers, large enough for the largest of them; n_batch rows unless
 * stated otherwise.  dim is that of kvcache.h. */
struct tn_attn_scratch {
    float *q;     /* [n_head * head_dim] */
    float *k;     /* [n_kv_head * head_dim] */
    float *v;     /* [n_kv_head * head_dim] */
    float *q_rot; /* [n_head][dim] rotated, padded with zeros; q itself without padding */
    struct tn_queries queries; /* [n_head]; q_rot itself except with a q8 cache */
    float *att;                /* [n_head * head_dim] */
    float *gate;               /* [n_head * head_dim] if a layer has TERN_ROLE_Q_GATE */
    struct tn_attn_state blocks; /* [n_blocks][n_head], of one row */
    struct tn_attn_thread threads[]; /* [n_threads] */
};

/* Query rows per attention item, which share a key head. */
uint32_t tn_attn_group(const struct tn_layer_dims *dims);

/* Takes q, k and v of layer i_layer, not yet rotated, from scratch memory: norms and rotates heads,
 * stores keys and values in the cache, and writes softmax(score_scale * q.k^T) . v to att. */
void tn_attention(struct tn_forward *f, uint32_t i_layer);

/* Stores a rotated key and a value, [dim] each, in the blocks or the ring of a span's sequence, at
 * a position for which there is room; i_layer mixes by attention. */
void tn_kv_store_row(struct tn_forward *f, const struct tn_span *span, uint32_t i_layer,
                     uint32_t i_kv_head, uint32_t position, const float *key, const float *value);

#endif
