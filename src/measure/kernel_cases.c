/* SPDX-License-Identifier: MIT
 *
 * The list of kernel cases, and the cases of vector operations.
 *
 * Matrices, tables and norms are the file's; activations and cache are pseudo-random.
 */
#include "measure/kernel_cases.h"

#include "measure/kernel_case_work.h"

/* Does the model apply the operation to the states, not to the inner values of a feed-forward? */
static bool takes_states(enum tn_call_op op)
{
    switch (op) {
    case TN_CALL_rms_norm_f32:
    case TN_CALL_rms_norm_quant:
    case TN_CALL_hadamard_f32:
    case TN_CALL_quant_x16:
    case TN_CALL_quant_x8:
    case TN_CALL_add_i32_f32:
    case TN_CALL_add_scaled_f32:
        return true;
    default:
        return false;
    }
}

static struct tn_call_dims dims_of(const struct tn_case_work *w, enum tn_call_op op)
{
    const struct tern_file_config *c = tn_case_config(w);
    struct tn_call_dims d = {.n = takes_states(op) ? c->hidden : c->ffn,
                             .n_heads = c->n_head,
                             .head_dim = c->head_dim,
                             .head_stride = c->head_dim,
                             .scale = op == TN_CALL_cap_f32 ? 1.5f : 0.37f,
                             .eps = c->rms_eps};
    if (op == TN_CALL_hadamard_f32) {
        d.n &= ~1u;
        d.block = d.n & (~d.n + 1u); /* the largest power of two that divides n */
    } else if (op == TN_CALL_add_i32_f64) {
        d.n = TERN_PLANE_BLOCK_ROWS;
    }
    return d;
}

static uint64_t run_vector(struct tn_case_work *w, enum tn_call_op op, void (*fn)(void))
{
    struct tn_kernel_call c = {.dims = dims_of(w, op)};
    const float *weights = w->model->weights.final_norm.weights;
    if (c.dims.n == 0)
        return 0;
    tn_case_describe(w, &c, op);
    if ((op == TN_CALL_rms_norm_f32 || op == TN_CALL_rms_norm_quant) && weights)
        c.operands[1].data = (void *)(uintptr_t)weights;
    tn_case_call(w, &c, op, fn);
    return tn_case_call_bytes(&c);
}

#define VECTOR_CASE(op) TN_CASE_DEFINE(op, run_vector(w, TN_CALL_##op, (void (*)(void))k->op))
TN_CALL_VECTOR_OPS(VECTOR_CASE)
#undef VECTOR_CASE

const struct tn_kernel_case tn_kernel_cases[] = {
#define TN_CASE(op) {#op, tn_case_##op},
    TN_KERN_OPS(TN_CASE)
#undef TN_CASE
};
const uint32_t tn_n_kernel_cases = TN_COUNT_OF(tn_kernel_cases);
