/* SPDX-License-Identifier: MIT
 *
 * Lane-order sums and masks for the AVX-512 float kernels: one register holds the 16 lanes of the
 * LANE ORDER (kern.h), so a lane-order sum is one accumulator and a tree at its end.  Only for
 * *_avx512.c.
 */
#ifndef TN_LANES_AVX512_H
#define TN_LANES_AVX512_H

#include <immintrin.h>

#include "base/compiler.h"

/* The lanes of the last n % 16 values; 0 if there are none. */
static inline __mmask16 tail_mask(uint32_t n)
{
    return (__mmask16)((1u << n % 16) - 1);
}

/* max(so_far, |v|); ignores NaN, because the instruction returns its second operand then. */
static inline __m512 max_abs(__m512 so_far, __m512 v)
{
    return _mm512_max_ps(_mm512_abs_ps(v), so_far);
}

/* tn_tree_sum_f32 of one register. */
static inline float tree_sum(__m512 v)
{
    __m256 a = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    __m128 c = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(c, _mm_shuffle_ps(c, c, 1)));
}

/* The steps + 8 and + 4 of four trees at once: quarter i of the result is the remainder of v[i]. */
static TN_ALWAYS_INLINE __m512 tree_quarters(const __m512 v[4])
{
    __m512 v01 = _mm512_add_ps(_mm512_shuffle_f32x4(v[0], v[1], 0x44),
                               _mm512_shuffle_f32x4(v[0], v[1], 0xEE));
    __m512 v23 = _mm512_add_ps(_mm512_shuffle_f32x4(v[2], v[3], 0x44),
                               _mm512_shuffle_f32x4(v[2], v[3], 0xEE));
    return _mm512_add_ps(_mm512_shuffle_f32x4(v01, v23, 0x88),
                         _mm512_shuffle_f32x4(v01, v23, 0xDD));
}

/* Sixteen trees at once: element 4 i + j of the result is tree_sum(v[j][i]). */
static TN_ALWAYS_INLINE __m512 tree_sum_16(const __m512 v[4][4])
{
    __m512 a = tree_quarters(v[0]);
    __m512 b = tree_quarters(v[1]);
    __m512 c = tree_quarters(v[2]);
    __m512 d = tree_quarters(v[3]);
    __m512 ab = _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x44), _mm512_shuffle_ps(a, b, 0xEE));
    __m512 cd = _mm512_add_ps(_mm512_shuffle_ps(c, d, 0x44), _mm512_shuffle_ps(c, d, 0xEE));
    return _mm512_add_ps(_mm512_shuffle_ps(ab, cd, 0x88), _mm512_shuffle_ps(ab, cd, 0xDD));
}

#endif
