/* SPDX-License-Identifier: MIT
 *
 * Activations: squared ReLU is a kernel; the others are plain loops around our
 * own exp, so that every machine computes the same bits.
 */
#include "model/activation.h"

#include <assert.h>

#include "kern/exp.h"
#include "tern/model_format.h"

static void silu(float *gate, const float *up, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        gate[i] = gate[i] / (1.0f + tn_exp_f32(-gate[i])) * up[i];
}

/* z / 2 * (1 + tanh(u)) = z / (1 + exp(-2u)), u = sqrt(2 / pi) * (z + 0.044715 z^3). */
static void gelu_tanh(float *gate, const float *up, uint32_t n)
{
    const float minus_2_sqrt_2_over_pi = -1.5957691216057308f;
    for (uint32_t i = 0; i < n; i++) {
        const float z = gate[i];
        const float inner = z + 0.044715f * (z * z * z);
        gate[i] = z / (1.0f + tn_exp_f32(minus_2_sqrt_2_over_pi * inner)) * up[i];
    }
}

void tn_activate(const struct tn_kernels *kernels, uint32_t activation, float *gate,
                 const float *up, uint32_t n)
{
    switch (activation) {
    case TERN_ACT_RELU2:
        kernels->relu2_mul_f32(gate, gate, up, n);
        break;
    case TERN_ACT_SILU:
        silu(gate, up, n);
        break;
    default:
        assert(activation == TERN_ACT_GELU_TANH && "tn_mfile_open knows the activations");
        gelu_tanh(gate, up, n);
    }
}
