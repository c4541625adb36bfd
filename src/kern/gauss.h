/* SPDX-License-Identifier: MIT
 *
 * GELU by the error function, z * Phi(z) with the normal distribution Phi, in f32 and in a fixed
 * order of operations: the same bits on every machine.
 *
 *   Phi(-a) = exp(-a^2 / 2) * R(t), t = 1 / (1 + a / 4), a = |z|
 *
 * R is a minimax polynomial of degree 9 (relative error below 2^-26 for a up to 13).  The result
 * is within 3e-7 * max(1, |z|) of the exact value (tests/kern/test_exp.c).
 */
#ifndef TN_GAUSS_H
#define TN_GAUSS_H

#include "base/compiler.h"
#include "kern/exp.h"

static inline float tn_gelu_erf_f32(float z)
{
    static const float r[] = {-0x1.9fe6d2p-16f, 0x1.9ac90ap-4f, 0x1.825e8p-4f,  0x1.fb365ep-4f,
                              -0x1.b8421cp-6f,  0x1.441b6cp-2f, -0x1.643f78p-2f, 0x1.9f9124p-2f,
                              -0x1.9b38eep-3f,  0x1.1d1438p-5f};
    const float a = __builtin_fabsf(z), t = 1.0f / (1.0f + 0.25f * a);
    float p = r[TN_COUNT_OF(r) - 1];
    for (uint32_t i = TN_COUNT_OF(r) - 1; i-- > 0;)
        p = p * t + r[i];
    const float tail = tn_exp_f32(-0.5f * a * a) * p;
    return z > 0 ? z - z * tail : z * tail;
}

#endif
