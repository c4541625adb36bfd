/* SPDX-License-Identifier: MIT
 *
 * tanh in f32, in a fixed order of operations: the same bits on every machine.
 *
 *   |x| < 0.625   x + x^3 P(x^2), P a minimax polynomial of degree 4
 *   else          sign(x) * (1 - 2 / (exp(2 |x|) + 1))
 *
 * Within 3 ulp of the exact value (tests/kern/test_exp.c); NaN stays NaN.  Vector versions do the
 * same operations in the same order.
 */
#ifndef TN_TANH_H
#define TN_TANH_H

#include "kern/exp.h"

#define TN_TANH_SMALL 0.625f
#define TN_TANH_P0 (-0x1.555532p-2f)
#define TN_TANH_P1 0x1.110726p-3f
#define TN_TANH_P2 (-0x1.b83c5ap-5f)
#define TN_TANH_P3 0x1.52269ep-6f
#define TN_TANH_P4 (-0x1.75e1d4p-8f)

static inline float tn_tanh_f32(float x)
{
    const float a = __builtin_fabsf(x), s = x * x;
    if (!(a < TN_TANH_SMALL))
        return __builtin_copysignf(1.0f - 2.0f / (tn_exp_f32(a + a) + 1.0f), x);
    float p = TN_TANH_P4;
    p = p * s + TN_TANH_P3;
    p = p * s + TN_TANH_P2;
    p = p * s + TN_TANH_P1;
    p = p * s + TN_TANH_P0;
    return x + x * s * p;
}

#endif
