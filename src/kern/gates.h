/* SPDX-License-Identifier: MIT
 *
 * Smooth gates, z / (1 + exp(e(z))): the specification of e for SiLU and GELU.  Vector versions do
 * the same operations in the same order, so that every level returns the same bits.
 */
#ifndef TN_GATES_H
#define TN_GATES_H

#include "kern/exp.h"

static inline float tn_silu_exponent(float z)
{
    return -z;
}

/* z / 2 * (1 + tanh(u)) = z / (1 + exp(-2 u)), u = sqrt(2 / pi) * (z + 0.044715 z^3). */
#define TN_GELU_FACTOR (-1.5957691216057308f) /* -2 sqrt(2 / pi) */
#define TN_GELU_CUBE 0.044715f

static inline float tn_gelu_exponent(float z)
{
    return TN_GELU_FACTOR * (z + TN_GELU_CUBE * (z * z * z));
}

static inline float tn_gate_f32(float z, float exponent, float up)
{
    return z / (1.0f + tn_exp_f32(exponent)) * up;
}

#endif
