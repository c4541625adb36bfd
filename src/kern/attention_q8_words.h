/* SPDX-License-Identifier: MIT
 *
 * Attention over a q8 cache for the levels that widen its bytes to 16-bit words.  Private to
 * attention_q8_{avx2,neon}.c; each compiles its own copy and, before the include, defines LANES
 * (32-bit lanes of a vector) and
 *
 *   struct factors  up to TN_KV_BLOCK words of up to 4 heads, columns of a query or weights, with
 *                   `float scale[4]`
 *
 * and, after it, the functions declared here.  Keys and values are stored in tiles (kern.h): groups
 * of four bytes for each of 32 lanes, which are positions in q . k and columns in p . v.  The four
 * bytes of a lane are multiplied by four factors.
 */
#ifndef TN_ATTENTION_Q8_WORDS_H
#define TN_ATTENTION_Q8_WORDS_H

#include "kern/attention_q8_heads.h"

/* ---- supplied by each level ---- */

/* dots[h] = n_groups groups of LANES lanes times the factors of head h.  n_q is at most 4, a
 * constant after inlining. */
static TN_ALWAYS_INLINE void dot_lanes(ivec dots[4], const uint8_t *lanes, uint32_t group_bytes,
                                       uint32_t n_groups, const struct factors *f, uint32_t n_q);
/* Loads n <= 64 columns (a multiple of 16) of the query of head h. */
static void take_query(struct factors *f, uint32_t h, const int8_t *q, uint16_t scale, uint32_t n);
/* i16 of the weights of n_q heads times the scales of n_pos positions, followed by zeros as far as
 * dot_lanes reads. */
static void round_weights(struct factors *dst, const float *p, size_t p_stride, uint32_t n_q,
                          const uint16_t *scales, uint32_t n_pos);

/* ---- q . k ---- */

/* Scores of LANES positions from t on, of which n_pos exist; n_q is a constant after inlining. */
static TN_ALWAYS_INLINE void qk_lanes(float *s, size_t s_stride, const struct factors *q,
                                      uint32_t n_q, const struct keys *k, uint32_t t,
                                      uint32_t n_pos, float factor)
{
    const uint8_t *lanes = k->tiles + tn_kv_q8_key_at(t, 0, k->dim);
    fvec score[4];
    for (uint32_t h = 0; h < n_q; h++)
        score[h] = (fvec){0};
    for (uint32_t d = 0, b = 0; d < k->dim; d += BLOCK, b++) {
        ivec dots[4];
        dot_lanes(dots, lanes + (size_t)d * TN_KV_LANES, TN_KV_GROUP_BYTES,
                  TN_MIN(BLOCK, k->dim - d) / 4, &q[b], n_q);
        fvec k_scale = f32_of_f16(k->scales + (size_t)b * TN_KV_BLOCK + t);
        for (uint32_t h = 0; h < n_q; h++)
            score[h] += to_f32(dots[h]) * k_scale * q[b].scale[h];
    }
    for (uint32_t h = 0; h < n_q; h++)
        store_first_lanes(s + h * s_stride + t, score[h] * factor, n_pos - t);
}

static TN_ALWAYS_INLINE void qk_heads(float *s, size_t s_stride, const int8_t *q,
                                      const uint16_t *q_scales, uint32_t n_q, const struct keys *k,
                                      uint32_t n_pos, float factor)
{
    struct factors queries[MAX_BLOCKS]; /* one per block of 64 columns */
    for (uint32_t h = 0; h < n_q; h++)
        for (uint32_t d = 0; d < k->dim; d += BLOCK)
            take_query(&queries[d / BLOCK], h, q + (size_t)h * k->dim + d, *q_scales++,
                       TN_MIN(BLOCK, k->dim - d));
    for (uint32_t t = 0; t < n_pos; t += LANES)
        qk_lanes(s, s_stride, queries, n_q, k, t, n_pos, factor);
}

/* ---- p . v ---- */

static TN_ALWAYS_INLINE void pv_heads(float *o, const float *p, size_t p_stride, uint32_t n_q,
                                      const uint8_t *v, const uint16_t *v_scales, uint32_t n_pos,
                                      uint32_t dim, const uint8_t *next)
{
    (void)next;
    struct factors rounded;
    for (uint32_t c = 0; c < dim; c += LANES) {
        if (c % BLOCK == 0)
            round_weights(&rounded, p, p_stride, n_q, v_scales + c / BLOCK * TN_KV_BLOCK, n_pos);
        ivec dots[4];
        dot_lanes(dots, v + tn_kv_q8_value_at(0, c, dim), tn_kv_q8_value_group_bytes(c, dim),
                  (n_pos + 3) / 4, &rounded, n_q);
        for (uint32_t h = 0; h < n_q; h++)
            store_first_lanes(o + (size_t)h * dim + c, to_f32(dots[h]) * rounded.scale[h], LANES);
    }
}

#endif
