/* SPDX-License-Identifier: MIT
 *
 * Attention over a q8 cache, AVX-512 with VNNI.
 *
 * Keys and values lie in tiles (kern.h): a register of 64 bytes holds four bytes for each of 16
 * lanes, and both products are the same thing, lanes of bytes times a broadcast factor:
 *
 *   q . k   lanes are positions, what is summed over are the columns of a block of 64
 *   p . v   lanes are columns, what is summed over are positions
 *
 * The factor, rounded to 16 bits, is two signed bytes, so a group of four bytes takes one
 * `vpdpbusd` for each half: 64 multiply-adds.  Two tiles x up to 4 query heads x 2 halves are 16
 * accumulators; a group costs 2 loads, 8 broadcasts and 16 dot products.  The bytes are 128 too
 * large: the accumulators start at -128 times the sum of the factors.
 *
 * Sums are exact in int32: of 256 products at most 256 * 128 * 32639 < 2^30; before the last group
 * they may wrap around.
 */
#include <string.h>

#include "kern/kern.h"
#include "kern/x86/lanes_avx512.h"

#define BLOCK 64u     /* values that share a scale */
#define MAX_BLOCKS 8u /* of a row in attn_qk; longer ones, which no model has, are left to ref */
#define F16_MAX 65504.0f
#define GROUP_BYTES 64u
/* Ahead of what is read, about the bytes that memory delivers while one line is on its way. */
#define PREFETCH_BYTES 8192u

/* max(so_far, |v|) and [-limit, limit]; the instructions return their second operand where the
 * first is NaN. */
static inline __m512 max_abs(__m512 so_far, __m512 v)
{
    return _mm512_max_ps(_mm512_abs_ps(v), so_far);
}

static inline __m512i round_clamped(__m512 v, float limit)
{
    v = _mm512_min_ps(v, _mm512_set1_ps(limit));
    return _mm512_cvtps_epi32(_mm512_max_ps(v, _mm512_set1_ps(-limit)));
}

/* Up to TN_KV_BLOCK factors of up to 4 heads: 256 * high + low, zeros up to a multiple of 16. */
struct factors {
    int8_t high[4][TN_KV_BLOCK];
    int8_t low[4][TN_KV_BLOCK];
    int32_t start[4]; /* -128 times the sums */
    float scale[4];
};

/* i16 of n <= TN_KV_BLOCK values for each head; they are a multiple of 16, zeros behind the end.
 * A zero stays one: 0 * (32639 / a) is never NaN.  The heads go side by side, so that one's final
 * steps hide behind another's, and while this computes, memory sends the lines from `ahead` on. */
static TN_ALWAYS_INLINE void round_factors(struct factors *f, const float *x, size_t x_stride,
                                           uint32_t n_q, uint32_t n, const uint8_t *ahead)
{
    const float limit = (float)TN_I16_MAX;
    __m512 max[4], s[4];
    __m512i sum[4];
    for (uint32_t h = 0; h < n_q; h++)
        max[h] = _mm512_set1_ps(1e-30f);
    for (uint32_t k = 0; k < n; k += 16)
        for (uint32_t h = 0; h < n_q; h++)
            max[h] = max_abs(max[h], _mm512_loadu_ps(x + h * x_stride + k));
    for (uint32_t h = 0; h < n_q; h++) {
        float a = _mm512_reduce_max_ps(max[h]);
        s[h] = _mm512_set1_ps(limit / a);
        sum[h] = _mm512_setzero_si512();
        f->scale[h] = a / limit;
    }
    for (uint32_t k = 0; k < n; k += 16) {
        for (uint32_t h = 0; h < n_q; h++) {
            __m512 v = _mm512_mul_ps(_mm512_loadu_ps(x + h * x_stride + k), s[h]);
            __m512i q = round_clamped(v, limit);
            __m512i high = _mm512_srai_epi32(_mm512_add_epi32(q, _mm512_set1_epi32(128)), 8);
            sum[h] = _mm512_add_epi32(sum[h], q);
            _mm_storeu_si128((__m128i *)(f->high[h] + k), _mm512_cvtepi32_epi8(high));
            _mm_storeu_si128((__m128i *)(f->low[h] + k), _mm512_cvtepi32_epi8(q));
            TN_PREFETCH(ahead + (k / 16 * n_q + h) * 64);
        }
    }
    for (uint32_t h = 0; h < n_q; h++)
        f->start[h] = -128 * _mm512_reduce_add_epi32(sum[h]);
}

static TN_ALWAYS_INLINE __m512i broadcast_four(const int8_t *p)
{
    int32_t four;
    memcpy(&four, p, sizeof four);
    return _mm512_set1_epi32(four);
}

/* sum[i][h] = the n_groups groups of tile i times the factors of head h.  n_tiles and n_q are
 * constants of at most 2 and 4 where this is inlined. */
static TN_ALWAYS_INLINE void dot_tiles(__m512i sum[2][4], const uint8_t *tiles, size_t tile_bytes,
                                       uint32_t n_tiles, uint32_t n_groups,
                                       const struct factors *f, uint32_t n_q)
{
    __m512i high[2][4], low[2][4];
    for (uint32_t i = 0; i < n_tiles; i++)
        for (uint32_t h = 0; h < n_q; h++) {
            high[i][h] = _mm512_setzero_si512();
            low[i][h] = _mm512_set1_epi32(f->start[h]);
        }
    for (uint32_t g = 0; g < n_groups; g++, tiles += GROUP_BYTES) {
        __m512i bytes[2];
        for (uint32_t i = 0; i < n_tiles; i++) {
            bytes[i] = _mm512_loadu_si512(tiles + i * tile_bytes);
            TN_PREFETCH(tiles + i * tile_bytes + PREFETCH_BYTES);
        }
        for (uint32_t h = 0; h < n_q; h++) {
            __m512i f_high = broadcast_four(f->high[h] + 4 * g);
            __m512i f_low = broadcast_four(f->low[h] + 4 * g);
            for (uint32_t i = 0; i < n_tiles; i++) {
                high[i][h] = _mm512_dpbusd_epi32(high[i][h], bytes[i], f_high);
                low[i][h] = _mm512_dpbusd_epi32(low[i][h], bytes[i], f_low);
            }
        }
    }
    for (uint32_t i = 0; i < n_tiles; i++)
        for (uint32_t h = 0; h < n_q; h++)
            sum[i][h] = _mm512_add_epi32(_mm512_slli_epi32(high[i][h], 8), low[i][h]);
}

/* ---- q . k ---- */

/* The cached keys of one key head. */
struct keys {
    const uint8_t *tiles;
    const uint16_t *scales;
    uint32_t dim;
};

/* Scores of n_tiles tiles of 16 positions from t on, of which n_pos exist; n_tiles and n_q are
 * constants where this is inlined. */
static TN_ALWAYS_INLINE void qk_tiles(float *s, size_t s_stride, const struct factors *q,
                                      uint32_t n_q, const struct keys *k, uint32_t t,
                                      uint32_t n_tiles, uint32_t n_pos, float factor)
{
    const size_t tile_bytes = (size_t)k->dim * 16;
    __m512 score[2][4];
    for (uint32_t i = 0; i < n_tiles; i++)
        for (uint32_t h = 0; h < n_q; h++)
            score[i][h] = _mm512_setzero_ps();
    for (uint32_t d = 0, b = 0; d < k->dim; d += BLOCK, b++) {
        __m512i dots[2][4];
        dot_tiles(dots, k->tiles + t / 16 * tile_bytes + (size_t)d * 16, tile_bytes, n_tiles,
                  TN_MIN(BLOCK, k->dim - d) / 4, &q[b], n_q);
        for (uint32_t i = 0; i < n_tiles; i++) {
            const uint16_t *scales = k->scales + (size_t)b * TN_KV_BLOCK + t + 16 * i;
            __m512 k_scale = _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)scales));
            for (uint32_t h = 0; h < n_q; h++) {
                __m512 term = _mm512_mul_ps(_mm512_cvtepi32_ps(dots[i][h]), k_scale);
                term = _mm512_mul_ps(term, _mm512_set1_ps(q[b].scale[h]));
                score[i][h] = _mm512_add_ps(score[i][h], term);
            }
        }
    }
    for (uint32_t i = 0; i < n_tiles; i++) {
        uint32_t left = n_pos - TN_MIN(n_pos, t + 16 * i);
        __mmask16 mask = left >= 16 ? 0xFFFF : tail_mask(left);
        for (uint32_t h = 0; h < n_q; h++)
            _mm512_mask_storeu_ps(s + h * s_stride + t + 16 * i, mask,
                                  _mm512_mul_ps(score[i][h], _mm512_set1_ps(factor)));
    }
}

static TN_ALWAYS_INLINE void qk_heads(float *s, size_t s_stride, const float *q, uint32_t n_q,
                                      const struct keys *k, uint32_t n_pos, float factor)
{
    struct factors rounded[MAX_BLOCKS]; /* of each block of 64 columns */
    for (uint32_t d = 0; d < k->dim; d += BLOCK)
        round_factors(&rounded[d / BLOCK], q + d, k->dim, n_q, TN_MIN(BLOCK, k->dim - d),
                      k->tiles + (size_t)d * 16);
    uint32_t t = 0;
    for (; t + 16 < n_pos; t += 32)
        qk_tiles(s, s_stride, rounded, n_q, k, t, 2, n_pos, factor);
    if (t < n_pos)
        qk_tiles(s, s_stride, rounded, n_q, k, t, 1, n_pos, factor);
}

void tn_attn_qk_q8_avx512(float *s, size_t s_stride, const float *q, uint32_t n_q, const void *k,
                          const uint16_t *k_scales, uint32_t n_pos, uint32_t dim, float factor)
{
    if (dim > MAX_BLOCKS * BLOCK) {
        tn_attn_qk_q8_ref(s, s_stride, q, n_q, k, k_scales, n_pos, dim, factor);
        return;
    }
    struct keys keys = {k, k_scales, dim};
    uint32_t h = 0;
    for (; h + 4 <= n_q; h += 4)
        qk_heads(s + h * s_stride, s_stride, q + (size_t)h * dim, 4, &keys, n_pos, factor);
    if (h + 2 <= n_q) {
        qk_heads(s + h * s_stride, s_stride, q + (size_t)h * dim, 2, &keys, n_pos, factor);
        h += 2;
    }
    if (h < n_q)
        qk_heads(s + h * s_stride, s_stride, q + (size_t)h * dim, 1, &keys, n_pos, factor);
}

/* ---- p . v ---- */

static TN_ALWAYS_INLINE void round_weights(struct factors *dst, const float *p, size_t p_stride,
                                           uint32_t n_q, const uint16_t *scales, uint32_t n_pos,
                                           const uint8_t *ahead)
{
    const __mmask16 tail = tail_mask(n_pos);
    float w[4][TN_KV_BLOCK];
    for (uint32_t t = 0; t < n_pos; t += 16) {
        const __mmask16 mask = n_pos - t >= 16 ? 0xFFFF : tail;
        __m512 scale = _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(scales + t)));
        for (uint32_t h = 0; h < n_q; h++) {
            __m512 weight = _mm512_maskz_loadu_ps(mask, p + h * p_stride + t);
            _mm512_storeu_ps(w[h] + t, _mm512_maskz_mul_ps(mask, weight, scale));
        }
    }
    round_factors(dst, w[0], TN_KV_BLOCK, n_q, n_pos, ahead);
}

/* n_tiles tiles of 16 columns; n_tiles and n_q are constants where this is inlined. */
static TN_ALWAYS_INLINE void pv_tiles(float *o, size_t o_stride, const struct factors *p,
                                      uint32_t n_q, const uint8_t *v, uint32_t n_tiles,
                                      uint32_t n_pos)
{
    __m512i dots[2][4];
    dot_tiles(dots, v, TN_KV_BLOCK * 16, n_tiles, (n_pos + 3) / 4, p, n_q);
    for (uint32_t i = 0; i < n_tiles; i++)
        for (uint32_t h = 0; h < n_q; h++)
            _mm512_storeu_ps(o + h * o_stride + 16 * i,
                             _mm512_mul_ps(_mm512_cvtepi32_ps(dots[i][h]),
                                           _mm512_set1_ps(p->scale[h])));
}

static TN_ALWAYS_INLINE void pv_heads(float *o, const float *p, size_t p_stride, uint32_t n_q,
                                      const uint8_t *v, const uint16_t *v_scales, uint32_t n_pos,
                                      uint32_t dim)
{
    for (uint32_t d = 0; d < dim; d += BLOCK) {
        struct factors rounded;
        round_weights(&rounded, p, p_stride, n_q, v_scales + d / BLOCK * TN_KV_BLOCK, n_pos,
                      v + (size_t)d * TN_KV_BLOCK + PREFETCH_BYTES);
        uint32_t c = d, end = TN_MIN(dim, d + BLOCK);
        for (; c + 32 <= end; c += 32)
            pv_tiles(o + c, dim, &rounded, n_q, v + (size_t)c * TN_KV_BLOCK, 2, n_pos);
        if (c < end)
            pv_tiles(o + c, dim, &rounded, n_q, v + (size_t)c * TN_KV_BLOCK, 1, n_pos);
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
            __m512i q = round_clamped(_mm512_div_ps(_mm512_loadu_ps(x + d), scale), 127.0f);
            _mm_storeu_si128((__m128i *)(out + d), _mm512_maskz_cvtepi32_epi8(used, q));
        }
    }
}
