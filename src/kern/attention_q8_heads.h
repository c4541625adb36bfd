/* SPDX-License-Identifier: MIT
 *
 * attn_qk_q8 and attn_pv_q8 of every level except the portable one: splits the query heads into
 * groups of four, two and one.  Private to attention_q8_*.c; each compiles its own copy, defines
 * LANES (32-bit lanes of a vector) before the include and the functions declared here after it.
 * qk_heads and pv_heads are in attention_q8_dot.h and attention_q8_words.h.
 */
#ifndef TN_ATTENTION_Q8_HEADS_H
#define TN_ATTENTION_Q8_HEADS_H

#include "kern/kern.h"
#include "kern/prefetch.h"

#define BLOCK TN_KV_SCALE_VALUES
#define MAX_BLOCKS 8u /* per row in attn_qk; longer rows, which no model has, are left to ref */

typedef int32_t ivec __attribute__((vector_size(4 * LANES)));
typedef uint32_t uvec __attribute__((vector_size(4 * LANES)));
typedef float fvec __attribute__((vector_size(4 * LANES)));

static TN_ALWAYS_INLINE fvec to_f32(ivec v)
{
    return __builtin_convertvector(v, fvec);
}

/* Loads LANES f16 values. */
static TN_ALWAYS_INLINE fvec f32_of_f16(const uint16_t *p);
/* Stores the first n lanes; all of them if n >= LANES. */
static TN_ALWAYS_INLINE void store_first_lanes(float *p, fvec v, uint32_t n);

/* The cached keys of one key head. */
struct keys {
    const uint8_t *tiles;
    const uint16_t *scales;
    uint32_t dim; /* at most MAX_BLOCKS * BLOCK */
};

/* n_q is 1, 2 or 4, a constant after inlining; the other parameters are described in kern.h. */
static TN_ALWAYS_INLINE void qk_heads(float *s, size_t s_stride, const int8_t *q,
                                      const uint16_t *q_scales, uint32_t n_q, const struct keys *k,
                                      uint32_t n_pos, float factor);
static TN_ALWAYS_INLINE void pv_heads(float *o, const float *p, size_t p_stride, uint32_t n_q,
                                      const uint8_t *v, const uint16_t *v_scales, uint32_t n_pos,
                                      uint32_t dim, const uint8_t *next);

static TN_ALWAYS_INLINE uint32_t heads_together(uint32_t n_left)
{
    return n_left >= 4 ? 4 : n_left >= 2 ? 2 : 1;
}

static TN_ALWAYS_INLINE void attn_qk_q8(float *s, size_t s_stride, const int8_t *q,
                                        const uint16_t *q_scales, uint32_t n_q, const void *k,
                                        const uint16_t *k_scales, uint32_t n_pos, uint32_t dim,
                                        float factor)
{
    if (dim > MAX_BLOCKS * BLOCK) {
        tn_attn_qk_q8_ref(s, s_stride, q, q_scales, n_q, k, k_scales, n_pos, dim, factor);
        return;
    }
    const struct keys keys = {k, k_scales, dim};
    for (uint32_t h = 0, n; h < n_q; h += n) {
        n = heads_together(n_q - h);
        if (n == 4)
            qk_heads(s, s_stride, q, q_scales, 4, &keys, n_pos, factor);
        else if (n == 2)
            qk_heads(s, s_stride, q, q_scales, 2, &keys, n_pos, factor);
        else
            qk_heads(s, s_stride, q, q_scales, 1, &keys, n_pos, factor);
        s += n * s_stride;
        q += (size_t)n * dim;
        q_scales += n * tn_kv_q8_scales(dim);
    }
}

static TN_ALWAYS_INLINE void attn_pv_q8(float *o, const float *p, size_t p_stride, uint32_t n_q,
                                        const void *v, const uint16_t *v_scales, uint32_t n_pos,
                                        uint32_t dim, const void *next)
{
    for (uint32_t h = 0, n; h < n_q; h += n) {
        n = heads_together(n_q - h);
        if (n == 4)
            pv_heads(o, p, p_stride, 4, v, v_scales, n_pos, dim, next);
        else if (n == 2)
            pv_heads(o, p, p_stride, 2, v, v_scales, n_pos, dim, next);
        else
            pv_heads(o, p, p_stride, 1, v, v_scales, n_pos, dim, next);
        o += (size_t)n * dim;
        p += n * p_stride;
    }
}

#define ATTENTION_Q8_DEFINE(isa)                                                                   \
    void tn_attn_qk_q8_##isa(float *s, size_t s_stride, const int8_t *q, const uint16_t *q_scales, \
                             uint32_t n_q, const void *k, const uint16_t *k_scales,                \
                             uint32_t n_pos, uint32_t dim, float factor)                           \
    {                                                                                              \
        attn_qk_q8(s, s_stride, q, q_scales, n_q, k, k_scales, n_pos, dim, factor);                \
    }                                                                                              \
    void tn_attn_pv_q8_##isa(float *o, const float *p, size_t p_stride, uint32_t n_q,              \
                             const void *v, const uint16_t *v_scales, uint32_t n_pos,              \
                             uint32_t dim, const void *next)                                       \
    {                                                                                              \
        attn_pv_q8(o, p, p_stride, n_q, v, v_scales, n_pos, dim, next);                            \
    }

#endif
