/* SPDX-License-Identifier: MIT
 *
 * Activations of feed-forwards: maps enum tern_activation to kernels.  Functions that no kernel
 * computes (the error function's GELU) run here in a fixed order of operations.
 */
#include "model/activation.h"

#include <assert.h>

#include "kern/gauss.h"
#include "tern/model_format.h"

static void relu_mul(float *gate, const float *up, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        gate[i] = (gate[i] > 0 ? gate[i] : 0.0f) * up[i];
}

static void gelu_erf_mul(float *gate, const float *up, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        gate[i] = tn_gelu_erf_f32(gate[i]) * up[i];
}

void tn_activate(const struct tn_kernels *kernels, uint32_t activation, float *gate,
                 const float *up, uint32_t n)
{
    switch (activation) {
    case TERN_ACT_RELU2:
        kernels->relu2_mul_f32(gate, gate, up, n);
        break;
    case TERN_ACT_SILU:
        kernels->silu_mul_f32(gate, gate, up, n);
        break;
    case TERN_ACT_RELU:
        relu_mul(gate, up, n);
        break;
    case TERN_ACT_GELU_ERF:
        gelu_erf_mul(gate, up, n);
        break;
    default:
        assert(activation == TERN_ACT_GELU_TANH && "tn_model_file_open knows the activations");
        kernels->gelu_mul_f32(gate, gate, up, n);
    }
}

#define ONES_4 1, 1, 1, 1
#define ONES_16 ONES_4, ONES_4, ONES_4, ONES_4
#define ONES_64 ONES_16, ONES_16, ONES_16, ONES_16

/* Multiplying by 1 is exact, so the kernels for gated feed-forwards serve here, too. */
void tn_activate_plain(const struct tn_kernels *kernels, uint32_t activation, float *x, uint32_t n)
{
    static const float ones[] = {ONES_64, ONES_64, ONES_64, ONES_64};
    const uint32_t step = (uint32_t)(sizeof ones / sizeof *ones);
    for (uint32_t i = 0; i < n; i += step)
        tn_activate(kernels, activation, x + i, ones, TN_MIN(step, n - i));
}
