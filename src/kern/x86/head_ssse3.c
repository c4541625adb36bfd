/* SPDX-License-Identifier: MIT
 *
 * Logits and matrices of floats, SSSE3.  The 16 lanes of the lane order are four registers.  A tile
 * is one row and one or two tokens, for which the weights are widened once.
 */
#include <string.h>
#include <tmmintrin.h>

#include "kern/head_gemv.h"

/* Loads 16 weights as f32. */
typedef void load16_fn(__m128 dst[4], const void *w);

static TN_ALWAYS_INLINE void load16_f32(__m128 dst[4], const void *w)
{
    for (int i = 0; i < 4; i++)
        dst[i] = _mm_loadu_ps((const float *)w + 4 * i);
}

static TN_ALWAYS_INLINE void load16_bf16(__m128 dst[4], const void *w)
{
    const __m128i zero = _mm_setzero_si128();
    for (int i = 0; i < 2; i++) {
        const __m128i v = _mm_loadu_si128((const __m128i *)w + i);
        dst[2 * i] = _mm_castsi128_ps(_mm_unpacklo_epi16(zero, v));
        dst[2 * i + 1] = _mm_castsi128_ps(_mm_unpackhi_epi16(zero, v));
    }
}

/* tn_f16_to_f32 of four halves, each in the low 16 bits of a dword. */
static TN_ALWAYS_INLINE __m128 widen_f16(__m128i h)
{
    const __m128i magnitude = _mm_set1_epi32(0x7FFF), bias = _mm_set1_epi32(112 << 23);
    const __m128i small_bias = _mm_set1_epi32(113 << 23), infinity = _mm_set1_epi32(0x7F800000);
    const __m128i shifted = _mm_slli_epi32(_mm_and_si128(h, magnitude), 13);
    const __m128i sign = _mm_slli_epi32(_mm_andnot_si128(magnitude, h), 16);
    const __m128i is_small = _mm_cmplt_epi32(shifted, _mm_set1_epi32(0x0400 << 13));
    const __m128i is_special = _mm_cmpgt_epi32(shifted, _mm_set1_epi32((0x7C00 << 13) - 1));
    const __m128i small = _mm_castps_si128(
        _mm_sub_ps(_mm_castsi128_ps(_mm_add_epi32(shifted, small_bias)),
                   _mm_castsi128_ps(small_bias)));
    const __m128i normal =
        _mm_or_si128(_mm_add_epi32(shifted, bias), _mm_and_si128(is_special, infinity));
    const __m128i value =
        _mm_or_si128(_mm_and_si128(is_small, small), _mm_andnot_si128(is_small, normal));
    return _mm_castsi128_ps(_mm_or_si128(sign, value));
}

static TN_ALWAYS_INLINE void load16_f16(__m128 dst[4], const void *w)
{
    const __m128i zero = _mm_setzero_si128();
    for (int i = 0; i < 2; i++) {
        const __m128i v = _mm_loadu_si128((const __m128i *)w + i);
        dst[2 * i] = widen_f16(_mm_unpacklo_epi16(v, zero));
        dst[2 * i + 1] = widen_f16(_mm_unpackhi_epi16(v, zero));
    }
}

/* Adds 16 columns. */
static TN_ALWAYS_INLINE void tile_step(__m128 sum[2][4], load16_fn *load16, const void *w,
                                       const float *x, size_t x_stride, uint32_t n_tokens)
{
    __m128 weights[4];
    load16(weights, w);
    for (uint32_t t = 0; t < n_tokens; t++)
        for (uint32_t i = 0; i < 4; i++) {
            const __m128 value = _mm_loadu_ps(x + t * x_stride + 4 * i);
            sum[t][i] = _mm_add_ps(sum[t][i], _mm_mul_ps(weights[i], value));
        }
}

/* tn_tree_sum_f32 */
static TN_ALWAYS_INLINE float tree_sum(const __m128 lanes[4])
{
    const __m128 four =
        _mm_add_ps(_mm_add_ps(lanes[0], lanes[2]), _mm_add_ps(lanes[1], lanes[3]));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

/* The last n columns, fewer than 16: zero weights and inputs leave a lane unchanged. */
static TN_ALWAYS_INLINE void tile_tail(__m128 sum[2][4], load16_fn *load16, const char *w,
                                       size_t value_bytes, const float *x, size_t x_stride,
                                       uint32_t n_tokens, size_t n)
{
    char last_w[64] = {0};
    float last_x[2][16] = {{0}};
    memcpy(last_w, w, n * value_bytes);
    for (uint32_t t = 0; t < n_tokens; t++)
        memcpy(last_x[t], x + t * x_stride, n * sizeof *x);
    tile_step(sum, load16, last_w, last_x[0], 16, n_tokens);
}

/* out[t] = the dot product of a row and token t < n_tokens, 1 or 2, a constant after inlining. */
static TN_ALWAYS_INLINE void tile(float out[2], load16_fn *load16, const struct matrix *m,
                                  uint32_t row, const float *x, size_t x_stride,
                                  uint32_t n_tokens)
{
    const char *w = m->data + row * m->row_bytes;
    __m128 sum[2][4];
    for (uint32_t i = 0; i < 4; i++)
        sum[0][i] = sum[1][i] = _mm_setzero_ps();
    size_t c = 0;
    for (; c + 16 <= m->cols; c += 16)
        tile_step(sum, load16, w + c * m->value_bytes, x + c, x_stride, n_tokens);
    if (c < m->cols)
        tile_tail(sum, load16, w + c * m->value_bytes, m->value_bytes, x + c, x_stride, n_tokens,
                  m->cols - c);
    for (uint32_t t = 0; t < n_tokens; t++)
        out[t] = tree_sum(sum[t]);
}

static TN_ALWAYS_INLINE void gemv(const struct logits *l, load16_fn *load16,
                                  const struct matrix *m, uint32_t n_rows)
{
    for (uint32_t r = 0; r < n_rows; r++) {
        float y[2];
        uint32_t t = 0;
        for (; t + 2 <= l->n_tokens; t += 2) {
            tile(y, load16, m, r, l->x + t * l->x_stride, l->x_stride, 2);
            l->dst[t * l->dst_stride + r] = y[0];
            l->dst[(t + 1) * l->dst_stride + r] = y[1];
        }
        if (t < l->n_tokens)
            tile(&l->dst[t * l->dst_stride + r], load16, m, r, l->x + t * l->x_stride, l->x_stride,
                 1);
    }
}

HEAD_DEFINE(ssse3, f32, float, load16_f32)
HEAD_DEFINE(ssse3, f16, uint16_t, load16_f16)
HEAD_DEFINE(ssse3, bf16, uint16_t, load16_bf16)
