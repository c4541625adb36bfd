/* SPDX-License-Identifier: MIT
 *
 * exp in f32: the specification.  The vector versions (TN_EXP_* below) do the same operations in
 * the same order, so every machine returns the same bits; only exact products may be fused.
 *
 *   x = n * ln 2 + r, |r| <= ln 2 / 2;   exp(x) = 2^n * (1 + r + r^2 P(r))
 *
 * P is the minimax polynomial of degree 4 (relative error of the result below 2^-28).
 *   ln(2^-126) < x < 88.722839   within 1 ulp (tests/kern/test_exp.c)
 *   x below                      +0: results that would be subnormal are flushed
 *   x above                      +infinity
 *   x not a number               not a number
 */
#ifndef TN_EXP_H
#define TN_EXP_H

#include "base/bits.h"

#define TN_EXP_MIN (-87.33654f)  /* the smallest x whose result is normal */
#define TN_EXP_MAX 88.722835f    /* the largest x whose result is finite */
#define TN_EXP_LOG2E 0x1.715476p+0f
#define TN_EXP_ROUND 12582912.0f /* 1.5 * 2^23: adding it rounds to an integer, nearest even */
#define TN_EXP_LN2_HI 0x1.62e4p-1f /* 15 bits: products with n are exact */
#define TN_EXP_LN2_LO 0x1.7f7d1cp-20f
#define TN_EXP_P0 0x1.fffffcp-2f
#define TN_EXP_P1 0x1.555492p-3f
#define TN_EXP_P2 0x1.5558f2p-5f
#define TN_EXP_P3 0x1.123a2p-7f
#define TN_EXP_P4 0x1.6a23dp-10f

static inline float tn_exp_f32(float x)
{
    if (x < TN_EXP_MIN)
        return 0.0f;
    if (!(x <= TN_EXP_MAX))
        return x + __builtin_inff();
    float rounded = x * TN_EXP_LOG2E + TN_EXP_ROUND;
    float n = rounded - TN_EXP_ROUND;
    float r = (x - n * TN_EXP_LN2_HI) - n * TN_EXP_LN2_LO;
    float p = TN_EXP_P4;
    p = p * r + TN_EXP_P3;
    p = p * r + TN_EXP_P2;
    p = p * r + TN_EXP_P1;
    p = p * r + TN_EXP_P0;
    p = ((r * r) * p + r) + 1.0f;
    /* The low bits of `rounded` are n; the shift moves them into the exponent field. */
    return tn_f32_from_bits(tn_f32_to_bits(p) + (tn_f32_to_bits(rounded) << 23));
}

#endif
