/* SPDX-License-Identifier: MIT
 *
 * The list of kernel cases, and the cases of vector operations.
 *
 * Matrices, tables and norms are the file's; activations and cache are pseudo-random.
 */
#include "measure/kernel_cases.h"

#include <string.h>

#include "measure/kernel_case_work.h"

uint64_t tn_case_quant_i8(struct tn_case_work *w, const struct tn_kernels *k)
{
    const uint32_t n = tn_case_config(w)->ffn;
    const float factor = k->quant_i8(w->bytes, w->xf, n);
    tn_case_note(w, w->bytes, n);
    tn_case_note(w, &factor, sizeof factor);
    return n * (sizeof(float) + 1);
}

/* [hidden] final norm of the model, or arbitrary numbers if it has none. */
static const float *norm_weights(const struct tn_case_work *w)
{
    const float *weights = w->model->weights.final_norm.weights;
    return weights ? weights : w->yf;
}

uint64_t tn_case_rms_norm_f32(struct tn_case_work *w, const struct tn_kernels *k)
{
    const uint32_t n = tn_case_config(w)->hidden;
    k->rms_norm_f32(w->floats, w->xf, norm_weights(w), n, tn_case_config(w)->rms_eps);
    tn_case_note(w, w->floats, n * sizeof(float));
    return n * 3 * sizeof(float);
}

/* The states in blocks of the largest power of two that divides their width. */
uint64_t tn_case_hadamard_f32(struct tn_case_work *w, const struct tn_kernels *k)
{
    const uint32_t n = tn_case_config(w)->hidden & ~1u, block = n & (~n + 1u);
    if (n == 0)
        return 0;
    memcpy(w->floats, w->xf, n * sizeof(float));
    k->hadamard_f32(w->floats, n, block);
    tn_case_note(w, w->floats, n * sizeof(float));
    return n * 2 * sizeof(float);
}

uint64_t tn_case_rms_norm_quant(struct tn_case_work *w, const struct tn_kernels *k)
{
    const uint32_t n = tn_case_config(w)->hidden;
    const float factor =
        k->rms_norm_quant(w->bytes, w->xf, norm_weights(w), n, tn_case_config(w)->rms_eps);
    tn_case_note(w, w->bytes, n);
    tn_case_note(w, &factor, sizeof factor);
    return n * (2 * sizeof(float) + 1);
}

uint64_t tn_case_scale_i32_f32(struct tn_case_work *w, const struct tn_kernels *k)
{
    const uint32_t n = tn_case_config(w)->ffn;
    k->scale_i32_f32(w->floats, (const int32_t *)w->index, n, 0.37f);
    tn_case_note(w, w->floats, n * sizeof(float));
    return n * 2 * sizeof(float);
}

uint64_t tn_case_add_i32_f32(struct tn_case_work *w, const struct tn_kernels *k)
{
    const uint32_t n = tn_case_config(w)->hidden;
    memcpy(w->floats, w->xf, n * sizeof(float));
    k->add_i32_f32(w->floats, (const int32_t *)w->index, n, 0.37f);
    tn_case_note(w, w->floats, n * sizeof(float));
    return n * 3 * sizeof(float);
}

static uint64_t run_gate(struct tn_case_work *w, tn_relu2_mul_f32_fn *gate_mul)
{
    const uint32_t n = tn_case_config(w)->ffn;
    gate_mul(w->floats, w->xf, w->yf, n);
    tn_case_note(w, w->floats, n * sizeof(float));
    return n * 3 * sizeof(float);
}

uint64_t tn_case_relu2_mul_f32(struct tn_case_work *w, const struct tn_kernels *k)
{
    return run_gate(w, k->relu2_mul_f32);
}

uint64_t tn_case_silu_mul_f32(struct tn_case_work *w, const struct tn_kernels *k)
{
    return run_gate(w, k->silu_mul_f32);
}

uint64_t tn_case_gelu_mul_f32(struct tn_case_work *w, const struct tn_kernels *k)
{
    return run_gate(w, k->gelu_mul_f32);
}

uint64_t tn_case_cap_f32(struct tn_case_work *w, const struct tn_kernels *k)
{
    const uint32_t n = tn_case_config(w)->ffn;
    memcpy(w->floats, w->xf, n * sizeof(float));
    k->cap_f32(w->floats, n, 1.5f);
    tn_case_note(w, w->floats, n * sizeof(float));
    return n * 2 * sizeof(float);
}

uint64_t tn_case_rope_f32(struct tn_case_work *w, const struct tn_kernels *k)
{
    const struct tern_file_config *c = tn_case_config(w);
    memcpy(w->floats, w->xf, tn_case_q_dim(w) * sizeof(float));
    k->rope_f32(w->floats, w->yf, w->yf + c->head_dim / 2, c->n_head, c->head_dim, c->head_dim);
    tn_case_note(w, w->floats, tn_case_q_dim(w) * sizeof(float));
    return tn_case_q_dim(w) * 2 * sizeof(float);
}

uint64_t tn_case_list_positive_f32(struct tn_case_work *w, const struct tn_kernels *k)
{
    const uint32_t n = tn_case_config(w)->ffn;
    memcpy(w->floats, w->xf, n * sizeof(float));
    const uint32_t n_found = k->list_positive_f32((uint32_t *)w->ints, w->floats, n);
    tn_case_note(w, w->ints, n_found * sizeof(uint32_t));
    tn_case_note(w, w->floats, n * sizeof(float));
    return n * 2 * sizeof(float);
}

uint64_t tn_case_list_nonzero_i8(struct tn_case_work *w, const struct tn_kernels *k)
{
    const uint32_t n = tn_case_config(w)->ffn;
    const uint32_t n_found = k->list_nonzero_i8((uint32_t *)w->ints, w->random, n);
    tn_case_note(w, w->ints, n_found * sizeof(uint32_t));
    return n + n_found * sizeof(uint32_t);
}

const struct tn_kernel_case tn_kernel_cases[] = {
#define TN_CASE(op) {#op, tn_case_##op},
    TN_KERN_OPS(TN_CASE)
#undef TN_CASE
};
const uint32_t tn_n_kernel_cases = TN_COUNT_OF(tn_kernel_cases);
