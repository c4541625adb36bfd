/* SPDX-License-Identifier: MIT
 *
 * tn_exp_f32 (kern/exp.h) of 8 values: the same operations in the same order.  Only for *_avx2.c.
 */
#ifndef TN_EXP_AVX2_H
#define TN_EXP_AVX2_H

#include <immintrin.h>

#include "kern/exp.h"

static inline __m256 exp_8(__m256 x)
{
    const __m256 magic = _mm256_set1_ps(TN_EXP_ROUND);
    __m256 rounded = _mm256_add_ps(_mm256_mul_ps(x, _mm256_set1_ps(TN_EXP_LOG2E)), magic);
    __m256 n = _mm256_sub_ps(rounded, magic);
    __m256 r = _mm256_sub_ps(x, _mm256_mul_ps(n, _mm256_set1_ps(TN_EXP_LN2_HI)));
    r = _mm256_sub_ps(r, _mm256_mul_ps(n, _mm256_set1_ps(TN_EXP_LN2_LO)));
    __m256 p = _mm256_set1_ps(TN_EXP_P4);
    p = _mm256_add_ps(_mm256_mul_ps(p, r), _mm256_set1_ps(TN_EXP_P3));
    p = _mm256_add_ps(_mm256_mul_ps(p, r), _mm256_set1_ps(TN_EXP_P2));
    p = _mm256_add_ps(_mm256_mul_ps(p, r), _mm256_set1_ps(TN_EXP_P1));
    p = _mm256_add_ps(_mm256_mul_ps(p, r), _mm256_set1_ps(TN_EXP_P0));
    p = _mm256_add_ps(_mm256_mul_ps(_mm256_mul_ps(r, r), p), r);
    p = _mm256_add_ps(p, _mm256_set1_ps(1.0f));
    __m256i exponent = _mm256_slli_epi32(_mm256_castps_si256(rounded), 23);
    __m256 y = _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), exponent));

    __m256 finite = _mm256_cmp_ps(x, _mm256_set1_ps(TN_EXP_MAX), _CMP_LE_OQ);
    y = _mm256_blendv_ps(_mm256_add_ps(x, _mm256_set1_ps(__builtin_inff())), y, finite);
    __m256 normal = _mm256_cmp_ps(x, _mm256_set1_ps(TN_EXP_MIN), _CMP_NLT_UQ);
    return _mm256_and_ps(normal, y);
}

#endif
