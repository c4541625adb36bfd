/* SPDX-License-Identifier: MIT
 *
 * Attention: what mixes positions.
 */
#ifndef TN_ATTN_H
#define TN_ATTN_H

#include "model/forward.h"

/* Attention handles at least this many query rows together where a batch has them. */
#define TN_ATTN_QUERIES 16u

/* Query rows as they meet the cache: for a q8 cache rounded as its keys are (kern.h). */
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

/* A thread's memory; `queries` is tn_attn_group. */
struct tn_attn_thread {
    float *kv_row;                /* [2][dim] one rotated key and one value */
    struct tn_queries queries;    /* [queries], room for any type */
    uint32_t *n_valid, *n_before; /* [queries] what they see of a block: attn.c */
    uint8_t *is_first;            /* [queries] */
    float *score;                 /* [queries][TN_KV_BLOCK] */
    struct tn_attn_state part;    /* [queries], one block */
    struct tn_attn_state total;   /* [queries], the blocks so far */
};

/* What layers of attention compute with, with room for the largest of them; n_batch rows unless
 * said otherwise.  dim is that of kvcache.h. */
struct tn_attn_scratch {
    float *q;     /* [n_head * head_dim] */
    float *k;     /* [n_kv_head * head_dim] */
    float *v;     /* [n_kv_head * head_dim] */
    float *q_rot; /* [n_head][dim] rotated, padded with zeros; q itself without padding */
    struct tn_queries queries; /* [n_head]; q_rot itself but for a q8 cache */
    float *att;                /* [n_head * head_dim] */
    float *gate;               /* [n_head * head_dim] where a layer has TERN_ROLE_Q_GATE */
    struct tn_attn_state blocks; /* [n_blocks][n_head], of one row */
    struct tn_attn_thread threads[]; /* [n_threads] */
};

/* Query rows that share a key head in one attention item. */
uint32_t tn_attn_group(const struct tn_layer_dims *dims);

/* From q, k and v of the scratch memory, of layer i_layer, not yet rotated: norms and rotates
 * heads, stores keys and values in the cache, and leaves softmax(score_scale * q.k^T) . v in its
 * att. */
void tn_attention(struct tn_forward *f, uint32_t i_layer);

/* Puts a rotated key and a value, [dim] each, into the blocks or the ring of a span's sequence, at
 * a position for which there is room; i_layer mixes by attention. */
void tn_kv_store_row(struct tn_forward *f, const struct tn_span *span, uint32_t i_layer,
                     uint32_t i_kv_head, uint32_t position, const float *key, const float *value);

#endif
