/* SPDX-License-Identifier: MIT
 *
 * tn_exp_f32 (kern/exp.h) in registers of 16 values: the same operations in the same order.  Only
 * for *_avx512.c.
 */
#ifndef TN_EXP_AVX512_H
#define TN_EXP_AVX512_H

#include <immintrin.h>

#include "base/compiler.h"
#include "kern/exp.h"

#define EACH for (uint32_t i = 0; i < n; i++)

/* x = tn_exp_f32(x) in n <= 4 registers, n a constant after inlining; no x is above 0.  Each step
 * runs for all registers, because the steps of one form a dependency chain.  The fused operation
 * returns the same bits: its product is exact. */
static TN_ALWAYS_INLINE void exp_16(__m512 x[], uint32_t n)
{
    __m512 whole[4], r[4], p[4];
    EACH whole[i] = _mm512_roundscale_ps(_mm512_mul_ps(x[i], _mm512_set1_ps(TN_EXP_LOG2E)),
                                         _MM_FROUND_TO_NEAREST_INT);
    EACH r[i] = _mm512_fnmadd_ps(whole[i], _mm512_set1_ps(TN_EXP_LN2_HI), x[i]);
    EACH r[i] = _mm512_sub_ps(r[i], _mm512_mul_ps(whole[i], _mm512_set1_ps(TN_EXP_LN2_LO)));
    EACH p[i] = _mm512_mul_ps(_mm512_set1_ps(TN_EXP_P4), r[i]);
    EACH p[i] = _mm512_mul_ps(_mm512_add_ps(p[i], _mm512_set1_ps(TN_EXP_P3)), r[i]);
    EACH p[i] = _mm512_mul_ps(_mm512_add_ps(p[i], _mm512_set1_ps(TN_EXP_P2)), r[i]);
    EACH p[i] = _mm512_mul_ps(_mm512_add_ps(p[i], _mm512_set1_ps(TN_EXP_P1)), r[i]);
    EACH p[i] = _mm512_add_ps(p[i], _mm512_set1_ps(TN_EXP_P0));
    EACH p[i] = _mm512_add_ps(_mm512_mul_ps(_mm512_mul_ps(r[i], r[i]), p[i]), r[i]);
    EACH p[i] = _mm512_add_ps(p[i], _mm512_set1_ps(1.0f));
    EACH {
        __mmask16 normal = _mm512_cmp_ps_mask(x[i], _mm512_set1_ps(TN_EXP_MIN), _CMP_NLT_UQ);
        x[i] = _mm512_maskz_scalef_ps(normal, p[i], whole[i]);
    }
}

/* The same for every x. */
static TN_ALWAYS_INLINE void exp_any_16(__m512 x[], uint32_t n)
{
    __m512 y[4];
    EACH y[i] = x[i];
    exp_16(y, n);
    EACH {
        __mmask16 above = _mm512_cmp_ps_mask(x[i], _mm512_set1_ps(TN_EXP_MAX), _CMP_NLE_UQ);
        x[i] = _mm512_mask_add_ps(y[i], above, x[i], _mm512_set1_ps(__builtin_inff()));
    }
}

#undef EACH

#endif
