/* SPDX-License-Identifier: MIT
 *
 * Attention over a q8 cache for the levels whose dot-product instruction adds four products to
 * every 32-bit lane.  Private to attention_q8_{avxvnni,avx512,dotprod}.c; each compiles its own
 * copy and defines LANES (32-bit lanes of a vector), VECS (vectors handled together: LANES * VECS
 * is 16 or 32), PV_HEADS (heads whose sums p . v stay in registers: 2 or 4) and VEC_REGISTER (the
 * letter of a vector register in inline assembly) before the include, and the functions declared
 * here after it.
 *
 * Keys and values are stored in tiles (kern.h), four bytes for each of 32 lanes.  Both products
 * multiply lanes of bytes by a broadcast factor: in q . k lanes are positions and the sum runs over
 * the columns of a block of 64; in p . v lanes are columns and the sum runs over positions.
 * Accumulators start at minus the excess.  Sums are exact in int32, q . k at most 64 * 128 * 128 =
 * 2^20, p . v at most 256 * 128 * 32639 < 2^30; before the last group they may wrap around.
 */
#ifndef TN_ATTENTION_Q8_DOT_H
#define TN_ATTENTION_Q8_DOT_H

#include <string.h>

#include "base/bits.h"
#include "base/half.h"
#include "kern/attention_q8_heads.h"

#define PART (LANES * VECS) /* lanes handled together */

/* ---- supplied by each level ---- */

/* 4 * LANES bytes of the cache, in the representation that `dot` takes. */
static TN_ALWAYS_INLINE ivec load_bytes(const uint8_t *p);
/* Adds the four byte products of each lane to sum. */
static TN_ALWAYS_INLINE ivec dot(ivec sum, ivec bytes, ivec factors);
/* The excess of a sum of products with n <= 64 factors (n a multiple of 16): 128 times the sum of
 * the factors where `dot` takes the cached bytes unchanged, which are 128 too large; 0 where
 * load_bytes makes them signed. */
static TN_ALWAYS_INLINE int32_t excess_of(const int8_t *factors, uint32_t n);

/* Weights of up to 4 heads in groups of four positions: their high bytes, then their low ones. */
struct weights {
    int8_t bytes[4][2 * TN_KV_BLOCK];
    int32_t start[4]; /* minus their excess */
    float scale[4];
};

/* i16 of the weights of n_q heads times the scales of n_pos positions, zeros up to a multiple of 4.
 * May prefetch the lines from `ahead` on meanwhile. */
static TN_ALWAYS_INLINE void round_weights(struct weights *dst, const float *p, size_t p_stride,
                                           uint32_t n_q, const uint16_t *scales, uint32_t n_pos,
                                           const uint8_t *ahead);

/* ---- shared by all levels ---- */

/* Keeps a sum in its register: gcc otherwise moves sums between registers, which takes as long as
 * the products. */
#define STAY(sum) __asm__("" : "+" VEC_REGISTER(sum))

static TN_ALWAYS_INLINE ivec all_lanes(int32_t v)
{
    return v + (ivec){0};
}

static TN_ALWAYS_INLINE ivec four_bytes(const int8_t *p)
{
    return all_lanes((int32_t)tn_load_u32(p));
}

/* Bytes read together. */
#define TOGETHER (4 * PART)

/* ---- q . k ---- */

/* Up to 4 queries. */
struct queries {
    const int8_t *bytes[4];
    int32_t start[MAX_BLOCKS][4]; /* minus the excess of each block of 64 columns */
    float scale[MAX_BLOCKS][4];
};

static TN_ALWAYS_INLINE void take_queries(struct queries *dst, const int8_t *q,
                                          const uint16_t *scales, uint32_t n_q, uint32_t dim)
{
    for (uint32_t h = 0; h < n_q; h++, q += dim) {
        dst->bytes[h] = q;
        for (uint32_t d = 0, b = 0; d < dim; d += BLOCK, b++) {
            dst->start[b][h] = -excess_of(q + d, TN_MIN(BLOCK, dim - d));
            dst->scale[b][h] = tn_f16_to_f32(*scales++);
        }
    }
}

/* Sums of block b over n_groups groups; n_q is a constant after inlining. */
static TN_ALWAYS_INLINE void dot_keys(ivec dots[4][VECS], const uint8_t *groups, uint32_t n_groups,
                                      const struct queries *q, uint32_t n_q, uint32_t b)
{
    /* Unrolled this early so that all sums become registers. */
#pragma GCC unroll 4
    for (uint32_t h = 0; h < n_q; h++)
        for (uint32_t i = 0; i < VECS; i++)
            dots[h][i] = all_lanes(q->start[b][h]);
#pragma GCC unroll 1
    for (uint32_t g = 0; g < n_groups; g++, groups += TN_KV_GROUP_BYTES) {
        ivec bytes[VECS];
        for (uint32_t i = 0; i < VECS; i++)
            bytes[i] = load_bytes(groups + 4 * LANES * i);
        for (uint32_t i = 0; i < TOGETHER; i += 64)
            tn_request(groups + i, TN_PREFETCH_OF(KEYS));
#pragma GCC unroll 4
        for (uint32_t h = 0; h < n_q; h++) {
            ivec factors = four_bytes(q->bytes[h] + BLOCK * b + 4 * g);
            for (uint32_t i = 0; i < VECS; i++) {
                dots[h][i] = dot(dots[h][i], bytes[i], factors);
                STAY(dots[h][i]);
            }
        }
    }
}

/* Scores of PART positions from t on, of which n_pos exist; n_q is a constant after inlining. */
static TN_ALWAYS_INLINE void qk_part(float *s, size_t s_stride, const struct queries *q,
                                     uint32_t n_q, const struct keys *k, uint32_t t,
                                     uint32_t n_pos, float factor)
{
    const uint8_t *part = k->tiles + tn_kv_q8_key_at(t, 0, k->dim);
    fvec score[4][VECS];
    for (uint32_t h = 0; h < n_q; h++)
        for (uint32_t i = 0; i < VECS; i++)
            score[h][i] = (fvec){0};
    for (uint32_t d = 0, b = 0; d < k->dim; d += BLOCK, b++) {
        ivec dots[4][VECS];
        dot_keys(dots, part + (size_t)d * TN_KV_LANES, TN_MIN(BLOCK, k->dim - d) / 4, q, n_q, b);
        for (uint32_t i = 0; i < VECS; i++) {
            fvec k_scale = f32_of_f16(k->scales + (size_t)b * TN_KV_BLOCK + t + LANES * i);
            for (uint32_t h = 0; h < n_q; h++)
                score[h][i] += to_f32(dots[h][i]) * k_scale * q->scale[b][h];
        }
    }
    for (uint32_t i = 0; i < VECS && t + LANES * i < n_pos; i++)
        for (uint32_t h = 0; h < n_q; h++)
            store_first_lanes(s + h * s_stride + t + LANES * i, score[h][i] * factor,
                              n_pos - t - LANES * i);
}

static TN_ALWAYS_INLINE void qk_heads(float *s, size_t s_stride, const int8_t *q,
                                      const uint16_t *q_scales, uint32_t n_q, const struct keys *k,
                                      uint32_t n_pos, float factor)
{
    struct queries queries;
    take_queries(&queries, q, q_scales, n_q, k->dim);
    for (uint32_t t = 0; t < n_pos; t += PART)
        qk_part(s, s_stride, &queries, n_q, k, t, n_pos, factor);
}

/* ---- p . v ---- */

/* The sums for one head. */
struct lanes {
    ivec high[VECS], low[VECS];
};

static TN_ALWAYS_INLINE void add_group(struct lanes *sum, const ivec bytes[VECS],
                                       const int8_t *weights)
{
    ivec high = four_bytes(weights), low = four_bytes(weights + 4);
    for (uint32_t i = 0; i < VECS; i++) {
        sum->high[i] = dot(sum->high[i], bytes[i], high);
        sum->low[i] = dot(sum->low[i], bytes[i], low);
        STAY(sum->high[i]);
        STAY(sum->low[i]);
    }
}

/* dots[h][i] = vector i of n_groups groups times the weights of head first + h.  Where a group ends
 * before PART lanes, its last vector is used again.  Prefetches from `ahead` on.  n_q is a constant
 * after inlining. */
static TN_ALWAYS_INLINE void dot_values(ivec dots[PV_HEADS][VECS], const uint8_t *groups,
                                        uint32_t group_bytes, uint32_t n_groups,
                                        const struct weights *w, uint32_t first,
                                        const uint8_t *ahead, uint32_t n_q)
{
    struct lanes sum[PV_HEADS];
    /* Unrolled this early so that all sums become registers. */
#pragma GCC unroll 4
    for (uint32_t h = 0; h < n_q; h++)
        for (uint32_t i = 0; i < VECS; i++) {
            sum[h].high[i] = (ivec){0};
            sum[h].low[i] = all_lanes(w->start[first + h]);
        }
    for (uint32_t g = 0; g < n_groups; g++, groups += group_bytes, ahead += group_bytes) {
        ivec bytes[VECS];
        for (uint32_t i = 0; i < VECS; i++)
            bytes[i] = load_bytes(groups + TN_MIN(4 * LANES * i, group_bytes - 4 * LANES));
        for (uint32_t i = 0; i < TOGETHER; i += 64)
            tn_request_at(ahead + i, TN_PREFETCH_OF(VALUES));
#pragma GCC unroll 4
        for (uint32_t h = 0; h < n_q; h++)
            add_group(&sum[h], bytes, w->bytes[first + h] + 8 * g);
    }
#pragma GCC unroll 4
    for (uint32_t h = 0; h < n_q; h++)
        for (uint32_t i = 0; i < VECS; i++)
            dots[h][i] = (ivec)(((uvec)sum[h].high[i] << 8) + (uvec)sum[h].low[i]);
}

/* Not inlined: the caller has too few free registers. */
typedef void dot_values_fn(ivec dots[PV_HEADS][VECS], const uint8_t *groups, uint32_t group_bytes,
                           uint32_t n_groups, const struct weights *w, uint32_t first,
                           const uint8_t *ahead);
#define DOT_VALUES(n_q)                                                                            \
    static TN_NOINLINE void dot_values_##n_q(ivec dots[PV_HEADS][VECS], const uint8_t *groups,     \
                                             uint32_t group_bytes, uint32_t n_groups,              \
                                             const struct weights *w, uint32_t first,              \
                                             const uint8_t *ahead)                                 \
    {                                                                                              \
        dot_values(dots, groups, group_bytes, n_groups, w, first, ahead, n_q);                     \
    }
DOT_VALUES(1)
DOT_VALUES(2)
#if PV_HEADS == 4
DOT_VALUES(4)
#else
#define dot_values_4 NULL
#endif

/* The address `at` bytes into v; past n_bytes it continues in `next`, or near v where that is
 * NULL. */
static const uint8_t *read_later(const uint8_t *v, size_t at, size_t n_bytes, const uint8_t *next)
{
    return at < n_bytes || !next ? v + at % n_bytes : next + (at - n_bytes);
}

static TN_ALWAYS_INLINE void pv_heads(float *o, const float *p, size_t p_stride, uint32_t n_q,
                                      const uint8_t *v, const uint16_t *v_scales, uint32_t n_pos,
                                      uint32_t dim, const uint8_t *next)
{
    const uint32_t n = TN_MIN(n_q, PV_HEADS);
    dot_values_fn *const dot_heads = n == 4 ? dot_values_4 : n == 2 ? dot_values_2 : dot_values_1;
    const uint32_t distance = tn_request_distance(TN_PREFETCH_OF(VALUES));
    struct weights rounded;
    for (uint32_t c = 0; c < dim; c += PART) {
        const size_t at = tn_kv_q8_value_at(0, c, dim);
        const uint8_t *ahead = read_later(v, at + distance, (size_t)TN_KV_BLOCK * dim, next);
        if (c % BLOCK == 0)
            round_weights(&rounded, p, p_stride, n_q, v_scales + c / BLOCK * TN_KV_BLOCK, n_pos,
                          ahead);
        for (uint32_t first = 0; first < n_q; first += n) {
            ivec dots[PV_HEADS][VECS];
            dot_heads(dots, v + at, tn_kv_q8_value_group_bytes(c, dim), (n_pos + 3) / 4, &rounded,
                      first, ahead);
            for (uint32_t h = 0; h < n; h++) {
                float *to = o + (size_t)(first + h) * dim + c;
                for (uint32_t i = 0; i < VECS && c + LANES * i < dim; i++)
                    store_first_lanes(to + LANES * i,
                                      to_f32(dots[h][i]) * rounded.scale[first + h], LANES);
            }
        }
    }
}

#endif
