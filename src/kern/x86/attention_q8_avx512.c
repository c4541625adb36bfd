/* SPDX-License-Identifier: MIT
 *
 * Attention over a q8 cache, AVX-512 with VNNI.
 *
 * Keys and values lie in tiles (kern.h): two registers of 64 bytes hold four bytes for each of 32
 * lanes, and both products are the same thing, lanes of bytes times a broadcast factor:
 *
 *   q . k   lanes are positions, what is summed over are the columns of a block of 64
 *   p . v   lanes are columns, what is summed over are positions
 *
 * Four bytes of a lane take one `vpdpbusd`, 64 multiply-adds, for each byte of the factor: one of
 * a query, two of a weight.  32 lanes x up to 4 query heads are 8 accumulators for each byte; 128
 * bytes of the cache cost 2 loads and for each head and byte a broadcast and 2 dot products, and
 * are read in the order in which they lie.  The bytes of the cache are 128 too large: the
 * accumulators start at -128 times the sum of the factors.
 *
 * Sums are exact in int32: q . k at most 64 * 128 * 128 = 2^20, p . v at most 256 * 128 * 32639 <
 * 2^30; before the last group they may wrap around.
 */
#include <string.h>

#include "kern/kern.h"
#include "kern/x86/lanes_avx512.h"

#define BLOCK 64u     /* values that share a scale */
#define MAX_BLOCKS 8u /* of a row in attn_qk; longer ones, which no model has, are left to ref */
#define F16_MAX 65504.0f
/* Ahead of what is read, about the bytes that memory delivers while one line is on its way. */
#define PREFETCH_BYTES 8192u

/* max(so_far, |v|) and min(v, limit); the instructions return their second operand where the first
 * is NaN. */
static inline __m512 max_abs(__m512 so_far, __m512 v)
{
    return _mm512_max_ps(_mm512_abs_ps(v), so_far);
}

static inline __m512 at_most(__m512 v, float limit)
{
    return _mm512_min_ps(v, _mm512_set1_ps(limit));
}

static TN_ALWAYS_INLINE __m512i broadcast_four(const int8_t *p)
{
    int32_t four;
    memcpy(&four, p, sizeof four);
    return _mm512_set1_epi32(four);
}

/* ---- q . k ---- */

/* The cached keys of one key head. */
struct keys {
    const uint8_t *tiles;
    const uint16_t *scales;
    uint32_t dim;
};

/* Up to 4 queries. */
struct queries {
    const int8_t *bytes[4];
    int32_t start[MAX_BLOCKS][4]; /* -128 times the sums of blocks of 64 columns */
    float scale[MAX_BLOCKS][4];
};

static TN_ALWAYS_INLINE void take_queries(struct queries *dst, const int8_t *q,
                                          const uint16_t *scales, uint32_t n_q, uint32_t dim)
{
    const __m512i excess = _mm512_set1_epi8((char)128); /* as an unsigned byte */
    for (uint32_t h = 0; h < n_q; h++, q += dim) {
        dst->bytes[h] = q;
        for (uint32_t d = 0, b = 0; d < dim; d += BLOCK, b++) {
            __mmask64 present = dim - d >= BLOCK ? ~(__mmask64)0 : ((__mmask64)1 << (dim - d)) - 1;
            __m512i block = _mm512_maskz_loadu_epi8(present, q + d);
            block = _mm512_dpbusd_epi32(_mm512_setzero_si512(), excess, block);
            dst->start[b][h] = -_mm512_reduce_add_epi32(block);
            dst->scale[b][h] = _cvtsh_ss(*scales++);
        }
    }
}

/* Sums of block b of 64 columns, n_groups groups; n_q is a constant where this is inlined. */
static TN_ALWAYS_INLINE void dot_keys(__m512i dots[4][2], const uint8_t *groups, uint32_t n_groups,
                                      const struct queries *q, uint32_t n_q, uint32_t b)
{
    /* Unrolled so early that all sums become registers. */
#pragma GCC unroll 4
    for (uint32_t h = 0; h < n_q; h++)
        dots[h][0] = dots[h][1] = _mm512_set1_epi32(q->start[b][h]);
    for (uint32_t g = 0; g < n_groups; g++, groups += TN_KV_GROUP_BYTES) {
        __m512i bytes[2] = {_mm512_loadu_si512(groups), _mm512_loadu_si512(groups + 64)};
        TN_PREFETCH(groups + PREFETCH_BYTES);
        TN_PREFETCH(groups + PREFETCH_BYTES + 64);
#pragma GCC unroll 4
        for (uint32_t h = 0; h < n_q; h++) {
            __m512i factors = broadcast_four(q->bytes[h] + BLOCK * b + 4 * g);
            dots[h][0] = _mm512_dpbusd_epi32(dots[h][0], bytes[0], factors);
            dots[h][1] = _mm512_dpbusd_epi32(dots[h][1], bytes[1], factors);
            /* In place: see add_group. */
            __asm__("" : "+v"(dots[h][0]), "+v"(dots[h][1]));
        }
    }
}

/* Scores of the tile of 32 positions from t on, of which n_pos exist; n_q is a constant where this
 * is inlined. */
static TN_ALWAYS_INLINE void qk_tile(float *s, size_t s_stride, const struct queries *q,
                                     uint32_t n_q, const struct keys *k, uint32_t t,
                                     uint32_t n_pos, float factor)
{
    const uint8_t *tile = k->tiles + (size_t)t * k->dim;
    __m512 score[4][2];
    for (uint32_t h = 0; h < n_q; h++)
        score[h][0] = score[h][1] = _mm512_setzero_ps();
    for (uint32_t d = 0, b = 0; d < k->dim; d += BLOCK, b++) {
        __m512i dots[4][2];
        dot_keys(dots, tile + (size_t)d * TN_KV_LANES, TN_MIN(BLOCK, k->dim - d) / 4, q, n_q, b);
        for (uint32_t i = 0; i < 2; i++) {
            const uint16_t *scales = k->scales + (size_t)b * TN_KV_BLOCK + t + 16 * i;
            __m512 k_scale = _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)scales));
            for (uint32_t h = 0; h < n_q; h++) {
                __m512 term = _mm512_mul_ps(_mm512_cvtepi32_ps(dots[h][i]), k_scale);
                term = _mm512_mul_ps(term, _mm512_set1_ps(q->scale[b][h]));
                score[h][i] = _mm512_add_ps(score[h][i], term);
            }
        }
    }
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t left = n_pos - TN_MIN(n_pos, t + 16 * i);
        __mmask16 mask = left >= 16 ? 0xFFFF : tail_mask(left);
        for (uint32_t h = 0; h < n_q; h++)
            _mm512_mask_storeu_ps(s + h * s_stride + t + 16 * i, mask,
                                  _mm512_mul_ps(score[h][i], _mm512_set1_ps(factor)));
    }
}

static TN_ALWAYS_INLINE void qk_heads(float *s, size_t s_stride, const int8_t *q,
                                      const uint16_t *q_scales, uint32_t n_q, const struct keys *k,
                                      uint32_t n_pos, float factor)
{
    struct queries queries;
    take_queries(&queries, q, q_scales, n_q, k->dim);
    for (uint32_t t = 0; t < n_pos; t += TN_KV_LANES)
        qk_tile(s, s_stride, &queries, n_q, k, t, n_pos, factor);
}

void tn_attn_qk_q8_avx512(float *s, size_t s_stride, const int8_t *q, const uint16_t *q_scales,
                          uint32_t n_q, const void *k, const uint16_t *k_scales, uint32_t n_pos,
                          uint32_t dim, float factor)
{
    const uint32_t n_blocks = (dim + BLOCK - 1) / BLOCK;
    if (n_blocks > MAX_BLOCKS) {
        tn_attn_qk_q8_ref(s, s_stride, q, q_scales, n_q, k, k_scales, n_pos, dim, factor);
        return;
    }
    struct keys keys = {k, k_scales, dim};
    for (uint32_t h = 0; h < n_q;) {
        const uint32_t left = n_q - h, n = left >= 4 ? 4 : left >= 2 ? 2 : 1;
        float *to = s + h * s_stride;
        const int8_t *from = q + (size_t)h * dim;
        const uint16_t *scales = q_scales + (size_t)h * n_blocks;
        if (n == 4)
            qk_heads(to, s_stride, from, scales, 4, &keys, n_pos, factor);
        else if (n == 2)
            qk_heads(to, s_stride, from, scales, 2, &keys, n_pos, factor);
        else
            qk_heads(to, s_stride, from, scales, 1, &keys, n_pos, factor);
        h += n;
    }
}

/* ---- p . v ---- */

/* Weights of up to 4 heads in groups of four: their high bytes, then their low ones. */
struct weights {
    int8_t bytes[4][2 * TN_KV_BLOCK];
    int32_t start[4]; /* -128 times their sums */
    float scale[4];
};

/* Adding this rounds |v| < 2^21 to an integer q and leaves q + 128 in the low 16 bits: one byte is
 * then the high one, and the other 128 more than the low one, which is a bit turned over. */
#define ROUND_TO_BYTES (12582912.0f + 128.0f)
#define ROUND_TO_BYTES_BITS 0x4B400080u

/* Bytes of 2 x 16 sums: for each four sums their second bytes, then their first ones. */
static inline __m512i split_bytes(__m512i a, __m512i b)
{
    const __m512i order = _mm512_set_epi64(0x7C7874707D797571, 0x6C6864606D696561,
                                           0x5C5854505D595551, 0x4C4844404D494541,
                                           0x3C3834303D393531, 0x2C2824202D292521,
                                           0x1C1814101D191511, 0x0C0804000D090501);
    return _mm512_xor_si512(_mm512_permutex2var_epi8(a, order, b),
                            _mm512_set1_epi64((int64_t)0x8080808000000000));
}

/* i16 of n <= TN_KV_BLOCK values for each head, a multiple of 32; max holds their largest
 * magnitudes and 1e-30.  A zero stays one: 0 * (32639 / a) is never NaN.  No product is below
 * -32639, and one above is NaN.  While this computes, memory sends the lines from `ahead` on. */
static TN_ALWAYS_INLINE void round_i16(struct weights *dst, float x[4][TN_KV_BLOCK], uint32_t n_q,
                                       uint32_t n, const __m512 max[4], const uint8_t *ahead)
{
    const float limit = (float)TN_I16_MAX;
    const __m512 magic = _mm512_set1_ps(ROUND_TO_BYTES);
    __m512 s[4];
    __m512i sum[4];
    for (uint32_t h = 0; h < n_q; h++) {
        float a = _mm512_reduce_max_ps(max[h]);
        s[h] = _mm512_set1_ps(limit / a);
        sum[h] = _mm512_set1_epi32((int32_t)(0u - n / 16 * ROUND_TO_BYTES_BITS));
        dst->scale[h] = a / limit;
    }
    for (uint32_t k = 0; k < n; k += 32) {
        for (uint32_t h = 0; h < n_q; h++) {
            __m512 a = _mm512_mul_ps(_mm512_loadu_ps(x[h] + k), s[h]);
            __m512 b = _mm512_mul_ps(_mm512_loadu_ps(x[h] + k + 16), s[h]);
            __m512i a_bits = _mm512_castps_si512(_mm512_add_ps(at_most(a, limit), magic));
            __m512i b_bits = _mm512_castps_si512(_mm512_add_ps(at_most(b, limit), magic));
            sum[h] = _mm512_add_epi32(sum[h], _mm512_add_epi32(a_bits, b_bits));
            _mm512_storeu_si512(dst->bytes[h] + 2 * k, split_bytes(a_bits, b_bits));
            TN_PREFETCH(ahead + (k / 32 * n_q + h) * 64);
        }
    }
    for (uint32_t h = 0; h < n_q; h++)
        dst->start[h] = -128 * _mm512_reduce_add_epi32(sum[h]);
}

static TN_ALWAYS_INLINE void round_weights(struct weights *dst, const float *p, size_t p_stride,
                                           uint32_t n_q, const uint16_t *scales, uint32_t n_pos,
                                           const uint8_t *ahead)
{
    const uint32_t n = (n_pos + 31) / 32 * 32;
    float w[4][TN_KV_BLOCK];
    __m512 max[4];
    for (uint32_t h = 0; h < n_q; h++)
        max[h] = _mm512_set1_ps(1e-30f);
    for (uint32_t t = 0; t < n; t += 16) {
        const uint32_t left = n_pos - TN_MIN(n_pos, t);
        const __mmask16 mask = left >= 16 ? 0xFFFF : tail_mask(left);
        __m512 scale = _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(scales + t)));
        for (uint32_t h = 0; h < n_q; h++) {
            __m512 weight = _mm512_maskz_loadu_ps(mask, p + h * p_stride + t);
            weight = _mm512_maskz_mul_ps(mask, weight, scale);
            _mm512_storeu_ps(w[h] + t, weight);
            max[h] = max_abs(max[h], weight);
        }
    }
    round_i16(dst, w, n_q, n, max, ahead);
}

/* The sums of 2 x 16 lanes under one head. */
struct lanes {
    __m512i high[2], low[2];
};

static TN_ALWAYS_INLINE void add_group(struct lanes *sum, const __m512i bytes[2],
                                       const int8_t *factors)
{
    __m512i high = broadcast_four(factors), low = broadcast_four(factors + 4);
    sum->high[0] = _mm512_dpbusd_epi32(sum->high[0], bytes[0], high);
    sum->low[0] = _mm512_dpbusd_epi32(sum->low[0], bytes[0], low);
    sum->high[1] = _mm512_dpbusd_epi32(sum->high[1], bytes[1], high);
    sum->low[1] = _mm512_dpbusd_epi32(sum->low[1], bytes[1], low);
    /* In place: gcc moves sums from register to register otherwise, which takes as long as the
     * products. */
    __asm__("" : "+v"(sum->high[0]), "+v"(sum->low[0]), "+v"(sum->high[1]), "+v"(sum->low[1]));
}

/* dots[h][i] = lanes 16 i to 16 i + 15 of n_groups groups times the weights of head h.  Groups of
 * 64 bytes have no second half: the first is taken twice.  n_q is a constant where this is inlined:
 * 1, 2 or 4. */
static TN_ALWAYS_INLINE void dot_values(__m512i dots[][2], const uint8_t *groups,
                                        uint32_t group_bytes, uint32_t n_groups,
                                        const struct weights *w, uint32_t n_q)
{
    struct lanes sum[4];
    /* Unrolled so early that all sums become registers. */
#pragma GCC unroll 4
    for (uint32_t h = 0; h < n_q; h++) {
        sum[h].high[0] = sum[h].high[1] = _mm512_setzero_si512();
        sum[h].low[0] = sum[h].low[1] = _mm512_set1_epi32(w->start[h]);
    }
    for (uint32_t g = 0; g < n_groups; g++, groups += group_bytes) {
        __m512i bytes[2] = {_mm512_loadu_si512(groups),
                            _mm512_loadu_si512(groups + group_bytes - 64)};
        TN_PREFETCH(groups + PREFETCH_BYTES);
        TN_PREFETCH(groups + PREFETCH_BYTES + 64);
#pragma GCC unroll 4
        for (uint32_t h = 0; h < n_q; h++)
            add_group(&sum[h], bytes, w->bytes[h] + 8 * g);
    }
#pragma GCC unroll 4
    for (uint32_t h = 0; h < n_q; h++)
        for (uint32_t i = 0; i < 2; i++)
            dots[h][i] = _mm512_add_epi32(_mm512_slli_epi32(sum[h].high[i], 8), sum[h].low[i]);
}

/* Not inlined: where they are used there are not enough registers. */
#define DOT_VALUES(n_q)                                                                             \
    static TN_NOINLINE void dot_values_##n_q(__m512i dots[][2], const uint8_t *groups,              \
                                            uint32_t group_bytes, uint32_t n_groups,               \
                                            const struct weights *w)                               \
    {                                                                                              \
        dot_values(dots, groups, group_bytes, n_groups, w, n_q);                                    \
    }
DOT_VALUES(1)
DOT_VALUES(2)
DOT_VALUES(4)

typedef void dot_values_fn(__m512i dots[][2], const uint8_t *groups, uint32_t group_bytes,
                          uint32_t n_groups, const struct weights *w);

static inline dot_values_fn *dot_values_of(uint32_t n_q)
{
    return n_q == 4 ? dot_values_4 : n_q == 2 ? dot_values_2 : dot_values_1;
}

static TN_ALWAYS_INLINE void pv_heads(float *o, const float *p, size_t p_stride, uint32_t n_q,
                                      const uint8_t *v, const uint16_t *v_scales, uint32_t n_pos,
                                      uint32_t dim)
{
    struct weights rounded;
    for (uint32_t c = 0; c < dim; c += TN_KV_LANES) {
        const uint8_t *tile = v + (size_t)c * TN_KV_BLOCK;
        if (c % BLOCK == 0)
            round_weights(&rounded, p, p_stride, n_q, v_scales + c / BLOCK * TN_KV_BLOCK, n_pos,
                          tile + PREFETCH_BYTES);
        __m512i dots[4][2];
        dot_values_of(n_q)(dots, tile, tn_kv_q8_value_group_bytes(c, dim), (n_pos + 3) / 4,
                          &rounded);
        for (uint32_t h = 0; h < n_q; h++)
            for (uint32_t i = 0; i < 2 && c + 16 * i < dim; i++)
                _mm512_storeu_ps(o + (size_t)h * dim + c + 16 * i,
                                 _mm512_mul_ps(_mm512_cvtepi32_ps(dots[h][i]),
                                               _mm512_set1_ps(rounded.scale[h])));
    }
}

void tn_attn_pv_q8_avx512(float *o, const float *p, size_t p_stride, uint32_t n_q, const void *v,
                          const uint16_t *v_scales, uint32_t n_pos, uint32_t dim)
{
    uint32_t h = 0;
    for (; h + 4 <= n_q; h += 4)
        pv_heads(o + (size_t)h * dim, p + h * p_stride, p_stride, 4, v, v_scales, n_pos, dim);
    if (h + 2 <= n_q) {
        pv_heads(o + (size_t)h * dim, p + h * p_stride, p_stride, 2, v, v_scales, n_pos, dim);
        h += 2;
    }
    if (h < n_q)
        pv_heads(o + (size_t)h * dim, p + h * p_stride, p_stride, 1, v, v_scales, n_pos, dim);
}

void tn_kv_store_q8_avx512(void *dst, uint16_t *scales, const float *x, uint32_t dim)
{
    int8_t *out = dst;
    for (uint32_t start = 0; start < dim; start += BLOCK) {
        uint32_t end = TN_MIN(dim, start + BLOCK);
        __m512 max = _mm512_setzero_ps();
        for (uint32_t d = start; d < end; d += 16)
            max = max_abs(max, _mm512_loadu_ps(x + d));
        float wanted = _mm512_reduce_max_ps(max) / 127.0f;
        uint16_t half = _cvtss_sh(TN_MIN(wanted, F16_MAX), _MM_FROUND_TO_NEAREST_INT);
        scales[start / BLOCK] = half;
        __m512 scale = _mm512_set1_ps(_cvtsh_ss(half));
        __mmask16 used = _mm512_cmp_ps_mask(scale, _mm512_setzero_ps(), _CMP_GT_OQ);
        for (uint32_t d = start; d < end; d += 16) {
            __m512 v = at_most(_mm512_div_ps(_mm512_loadu_ps(x + d), scale), 127.0f);
            __m512i q = _mm512_cvtps_epi32(_mm512_max_ps(v, _mm512_set1_ps(-127.0f)));
            _mm_storeu_si128((__m128i *)(out + d), _mm512_maskz_cvtepi32_epi8(used, q));
        }
    }
}
