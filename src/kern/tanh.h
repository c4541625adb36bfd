/* SPDX-License-Identifier: MIT
 *
 * tanh in f32, in a fixed order of operations: the same bits on every machine.
 *
 *   |x| < 0.625   x + x^3 P(x^2), P a minimax polynomial of degree 4
 *   else          sign(x) * (1 - 2 / (exp(2 |x|) + 1))
 *
 * Within 3 ulp of the exact value (tests/kern/test_exp.c); NaN stays NaN.
 */
#ifndef TN_TANH_H
#define TN_TANH_H

#include "kern/exp.h"

static inline float tn_tanh_f32(float x)
{
    const float a = __builtin_fabsf(x), s = x * x;
    if (!(a < 0.625f))
        return __builtin_copysignf(1.0f - 2.0f / (tn_exp_f32(a + a) + 1.0f), x);
    float p = -0x1.75e1d4p-8f;
    p = p * s + 0x1.52269ep-6f;
    p = p * s - 0x1.b83c5ap-5f;
    p = p * s + 0x1.110726p-3f;
    p = p * s - 0x1.555532p-2f;
    return x + x * s * p;
}

/* x [n] becomes cap * tanh(x / cap); unchanged if cap is 0. */
static inline void tn_cap_f32(float *x, uint32_t n, float cap)
{
    for (uint32_t i = 0; i < n && cap > 0; i++)
        x[i] = cap * tn_tanh_f32(x[i] / cap);
}

#endif
