/* SPDX-License-Identifier: MIT
 *
 * Lane-order sums, maxima, rounding and masks for the AVX2 float kernels: two registers hold the 16
 * lanes of the LANE ORDER (kern.h).  Only for *_avx2.c.
 */
#ifndef TN_LANES_AVX2_H
#define TN_LANES_AVX2_H

#include <immintrin.h>
#include <stdint.h>

#include "base/compiler.h"

/* All bits set in the first n lanes (n may be negative or above 8). */
static inline __m256i first_lanes(int32_t n)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), lane);
}

/* Loads the first n values at p (n as above), zeros after them. */
static inline __m256 load_first(const float *p, int32_t n)
{
    return n >= 8 ? _mm256_loadu_ps(p) : _mm256_maskload_ps(p, first_lanes(n));
}

/* max(so_far, |v|); ignores NaN, because the instruction returns its second operand then. */
static inline __m256 max_abs(__m256 so_far, __m256 v)
{
    return _mm256_max_ps(_mm256_andnot_ps(_mm256_set1_ps(-0.0f), v), so_far);
}

static inline float reduce_max(__m256 v)
{
    __m128 a = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    a = _mm_max_ps(a, _mm_movehl_ps(a, a));
    return _mm_cvtss_f32(_mm_max_ss(a, _mm_shuffle_ps(a, a, 1)));
}

/* rne(v) clamped to [-127, 127], as eight int8; NaN gives 127. */
static inline __m128i round_i8(__m256 v)
{
    v = _mm256_min_ps(v, _mm256_set1_ps(127.0f));
    v = _mm256_max_ps(v, _mm256_set1_ps(-127.0f));
    __m256i q = _mm256_cvtps_epi32(v);
    __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(q), _mm256_extracti128_si256(q, 1));
    return _mm_packs_epi16(words, words);
}

/* The steps + 4, + 2 and + 1 of tn_tree_sum_f32. */
static inline float tree_sum_8(__m256 v)
{
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    __m128 c = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(c, _mm_shuffle_ps(c, c, 1)));
}

static inline float tree_sum(const __m256 lanes[2])
{
    return tree_sum_8(_mm256_add_ps(lanes[0], lanes[1]));
}

/* Four trees at once: element i of the result is tree_sum(v[i]). */
static TN_ALWAYS_INLINE __m128 tree_sum_4(const __m256 v[4][2])
{
    __m256 a = _mm256_add_ps(v[0][0], v[0][1]);
    __m256 b = _mm256_add_ps(v[1][0], v[1][1]);
    __m256 c = _mm256_add_ps(v[2][0], v[2][1]);
    __m256 d = _mm256_add_ps(v[3][0], v[3][1]);
    __m256 ac = _mm256_add_ps(_mm256_permute2f128_ps(a, c, 0x20),
                              _mm256_permute2f128_ps(a, c, 0x31));
    __m256 bd = _mm256_add_ps(_mm256_permute2f128_ps(b, d, 0x20),
                              _mm256_permute2f128_ps(b, d, 0x31));
    /* a a b b | c c d d, then a b a b | c d c d */
    __m256 abcd = _mm256_add_ps(_mm256_shuffle_ps(ac, bd, 0x44), _mm256_shuffle_ps(ac, bd, 0xEE));
    __m256 sums = _mm256_add_ps(_mm256_shuffle_ps(abcd, abcd, 0x88),
                                _mm256_shuffle_ps(abcd, abcd, 0xDD));
    return _mm_movelh_ps(_mm256_castps256_ps128(sums), _mm256_extractf128_ps(sums, 1));
}

#endif
