/* SPDX-License-Identifier: MIT
 *
 * Activations: which kernel a model's is.
 */
#include "model/activation.h"

#include <assert.h>

#include "tern/model_format.h"

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
    default:
        assert(activation == TERN_ACT_GELU_TANH && "tn_model_file_open knows the activations");
        kernels->gelu_mul_f32(gate, gate, up, n);
    }
}
