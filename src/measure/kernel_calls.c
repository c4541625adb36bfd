/* SPDX-License-Identifier: MIT
 *
 * The calls of kernel_calls.h.
 *
 * A function runs twice: without a kernel its operands get their sizes, with one they have memory.
 * The order of the operands is part of the contract with the users: the first is x, q or p.
 */
#include "measure/kernel_calls.h"

#include <string.h>

static const uint8_t value_bytes[] = {
    [TN_OPERAND_I8] = 1,  [TN_OPERAND_F16] = 2, [TN_OPERAND_BF16] = 2,
    [TN_OPERAND_I32] = 4, [TN_OPERAND_F32] = 4, [TN_OPERAND_F64] = 8};

/* The next operand. */
static inline void *operand(struct tn_kernel_call *c, enum tn_operand_use use,
                            enum tn_operand_type type, size_t n)
{
    struct tn_operand *o = &c->operands[c->n_operands++];
    if (!c->fn) {
        *o = (struct tn_operand){.use = use, .type = type, .n = n};
        o->align = value_bytes[type];
    }
    return o->data;
}

static inline void *in(struct tn_kernel_call *c, enum tn_operand_type type, size_t n)
{
    return operand(c, TN_OPERAND_IN, type, n);
}

static inline void *out(struct tn_kernel_call *c, enum tn_operand_type type, size_t n)
{
    return operand(c, TN_OPERAND_OUT, type, n);
}

/* One of several operations whose calls differ in an argument only. */
#define OPERATION(op, call)                                                                        \
    static void op(struct tn_kernel_call *c)                                                       \
    {                                                                                              \
        call;                                                                                      \
    }

/* ---- activations ---- */

static void quant_i8(struct tn_kernel_call *c)
{
    const uint32_t n = c->dims.n;
    const float *x = in(c, TN_OPERAND_F32, n);
    int8_t *q = out(c, TN_OPERAND_I8, tn_kern_pad(n));
    float *factor = out(c, TN_OPERAND_F32, 1);
    if (c->fn)
        *factor = ((tn_quant_i8_fn *)c->fn)(q, x, n);
}

/* Rounds to a form of n_bytes, aligned to 64. */
static void quantise(struct tn_kernel_call *c, size_t n_bytes)
{
    const float *x = in(c, TN_OPERAND_F32, c->dims.n);
    void *dst = out(c, TN_OPERAND_I8, n_bytes);
    c->operands[1].align = 64;
    if (c->fn)
        ((tn_quant_x16_fn *)c->fn)(dst, x, c->dims.n);
}

OPERATION(quant_x16, quantise(c, TN_X16_BYTES(c->dims.n)))
OPERATION(quant_x8, quantise(c, TN_X8_BYTES(c->dims.n)))

static void rms_norm_f32(struct tn_kernel_call *c)
{
    const uint32_t n = c->dims.n;
    const float *x = in(c, TN_OPERAND_F32, n);
    const float *weights = in(c, TN_OPERAND_F32, n);
    float *dst = out(c, TN_OPERAND_F32, n);
    if (c->fn)
        ((tn_rms_norm_f32_fn *)c->fn)(dst, x, weights, n, c->dims.eps);
}

static void rms_norm_quant(struct tn_kernel_call *c)
{
    const uint32_t n = c->dims.n;
    const float *x = in(c, TN_OPERAND_F32, n);
    const float *weights = in(c, TN_OPERAND_F32, n);
    int8_t *q = out(c, TN_OPERAND_I8, tn_kern_pad(n));
    float *factor = out(c, TN_OPERAND_F32, 1);
    if (c->fn)
        *factor = ((tn_rms_norm_quant_fn *)c->fn)(q, x, weights, n, c->dims.eps);
}

static void hadamard_f32(struct tn_kernel_call *c)
{
    float *x = operand(c, TN_OPERAND_STABLE, TN_OPERAND_F32, c->dims.n);
    if (c->fn)
        ((tn_hadamard_f32_fn *)c->fn)(x, c->dims.n, c->dims.block);
}

static void scale_i32_f32(struct tn_kernel_call *c)
{
    const int32_t *sum = in(c, TN_OPERAND_I32, c->dims.n);
    float *dst = out(c, TN_OPERAND_F32, c->dims.n);
    if (c->fn)
        ((tn_scale_i32_f32_fn *)c->fn)(dst, sum, c->dims.n, c->dims.scale);
}

static void add_i32_f32(struct tn_kernel_call *c)
{
    float *dst = operand(c, TN_OPERAND_STABLE, TN_OPERAND_F32, c->dims.n);
    const int32_t *sum = in(c, TN_OPERAND_I32, c->dims.n);
    if (c->fn)
        ((tn_add_i32_f32_fn *)c->fn)(dst, sum, c->dims.n, c->dims.scale);
}

static void add_scaled_f32(struct tn_kernel_call *c)
{
    float *dst = operand(c, TN_OPERAND_STABLE, TN_OPERAND_F32, c->dims.n);
    const float *src = in(c, TN_OPERAND_F32, c->dims.n);
    if (c->fn)
        ((tn_add_scaled_f32_fn *)c->fn)(dst, src, c->dims.n, c->dims.scale);
}

static void add_i32_f64(struct tn_kernel_call *c)
{
    double *dst = operand(c, TN_OPERAND_STABLE, TN_OPERAND_F64, c->dims.n);
    const int32_t *src = in(c, TN_OPERAND_I32, c->dims.n);
    if (c->fn)
        ((tn_add_i32_f64_fn *)c->fn)(dst, src, c->dims.n, (double)c->dims.scale);
}

static void multiply_gate(struct tn_kernel_call *c)
{
    const float *gate = in(c, TN_OPERAND_F32, c->dims.n);
    const float *up = in(c, TN_OPERAND_F32, c->dims.n);
    float *dst = out(c, TN_OPERAND_F32, c->dims.n);
    if (c->fn)
        ((tn_relu2_mul_f32_fn *)c->fn)(dst, gate, up, c->dims.n);
}

OPERATION(relu2_mul_f32, multiply_gate(c))
OPERATION(silu_mul_f32, multiply_gate(c))
OPERATION(gelu_mul_f32, multiply_gate(c))

static void cap_f32(struct tn_kernel_call *c)
{
    float *x = operand(c, TN_OPERAND_CHANGED, TN_OPERAND_F32, c->dims.n);
    if (c->fn)
        ((tn_cap_f32_fn *)c->fn)(x, c->dims.n, c->dims.scale);
}

static void rope_f32(struct tn_kernel_call *c)
{
    const struct tn_call_dims *d = &c->dims;
    float *x = operand(c, TN_OPERAND_CHANGED, TN_OPERAND_F32,
                       (size_t)(d->n_heads - 1) * d->head_stride + d->head_dim);
    const float *cos = in(c, TN_OPERAND_F32, d->head_dim / 2);
    const float *sin = in(c, TN_OPERAND_F32, d->head_dim / 2);
    if (c->fn)
        ((tn_rope_f32_fn *)c->fn)(x, cos, sin, d->n_heads, d->head_dim, d->head_stride);
}

static void list_positive_f32(struct tn_kernel_call *c)
{
    float *x = operand(c, TN_OPERAND_CHANGED, TN_OPERAND_F32, c->dims.n);
    uint32_t *n_found = out(c, TN_OPERAND_I32, 1);
    uint32_t *list = out(c, TN_OPERAND_I32, c->dims.n);
    if (c->fn)
        c->operands[2].n = *n_found =
            ((tn_list_positive_f32_fn *)c->fn)(list, x, c->dims.n);
}

static void list_nonzero_i8(struct tn_kernel_call *c)
{
    const int8_t *x = in(c, TN_OPERAND_I8, c->dims.n);
    uint32_t *n_found = out(c, TN_OPERAND_I32, 1);
    uint32_t *list = out(c, TN_OPERAND_I32, c->dims.n);
    if (c->fn)
        c->operands[2].n = *n_found = ((tn_list_nonzero_i8_fn *)c->fn)(list, x, c->dims.n);
}

/* ---- tables ---- */

static void gemv_q8_f32(struct tn_kernel_call *c)
{
    const struct tn_call_dims *d = &c->dims;
    const float *x = in(c, TN_OPERAND_F32, (d->n_tokens - 1) * d->x_stride + d->n);
    const int8_t *w = operand(c, TN_OPERAND_ROWS, TN_OPERAND_I8, (size_t)d->n_rows * d->n);
    const float *scales = in(c, TN_OPERAND_F32, d->n_rows);
    float *dst = out(c, TN_OPERAND_F32, (d->n_tokens - 1) * d->dst_stride + d->n_rows);
    if (c->fn)
        ((tn_gemv_q8_f32_fn *)c->fn)(dst, d->dst_stride, w, scales, d->n_rows, d->n, x,
                                     d->x_stride, d->n_tokens);
}

/* The kernels of f32, f16 and bf16 differ by the type of the weights only. */
static void multiply_table(struct tn_kernel_call *c, enum tn_operand_type type)
{
    const struct tn_call_dims *d = &c->dims;
    const float *x = in(c, TN_OPERAND_F32, (d->n_tokens - 1) * d->x_stride + d->n);
    const void *w = operand(c, TN_OPERAND_ROWS, type, (size_t)d->n_rows * d->n);
    float *dst = out(c, TN_OPERAND_F32, (d->n_tokens - 1) * d->dst_stride + d->n_rows);
    if (!c->fn)
        return;
    if (type == TN_OPERAND_F32)
        ((tn_gemv_f32_f32_fn *)c->fn)(dst, d->dst_stride, w, d->n_rows, d->n, x, d->x_stride,
                                      d->n_tokens);
    else
        ((tn_gemv_f16_f32_fn *)c->fn)(dst, d->dst_stride, w, d->n_rows, d->n, x, d->x_stride,
                                      d->n_tokens);
}

OPERATION(gemv_f32_f32, multiply_table(c, TN_OPERAND_F32))
OPERATION(gemv_f16_f32, multiply_table(c, TN_OPERAND_F16))
OPERATION(gemv_bf16_f32, multiply_table(c, TN_OPERAND_BF16))

/* ---- attention ---- */

static uint32_t n_scales(const struct tn_call_dims *d)
{
    return tn_kv_q8_scales(d->head_dim);
}

static size_t n_scores(const struct tn_call_dims *d)
{
    return (d->n_q - 1) * d->score_stride + d->n_pos;
}

static void score(struct tn_kernel_call *c, enum tn_operand_type type)
{
    const struct tn_call_dims *d = &c->dims;
    const float *q = in(c, TN_OPERAND_F32, (size_t)d->n_q * d->head_dim);
    const void *k = operand(c, TN_OPERAND_ROWS, type, (size_t)d->n_pos * d->head_dim);
    float *s = out(c, TN_OPERAND_F32, n_scores(d));
    if (c->fn)
        ((tn_attn_qk_fn *)c->fn)(s, d->score_stride, q, d->n_q, k, d->n_pos, d->head_dim,
                                 d->scale);
}

OPERATION(attn_qk_f32, score(c, TN_OPERAND_F32))
OPERATION(attn_qk_f16, score(c, TN_OPERAND_F16))

/* Blocks of q8 are always whole. */
static void attn_qk_q8(struct tn_kernel_call *c)
{
    const struct tn_call_dims *d = &c->dims;
    const int8_t *q = in(c, TN_OPERAND_I8, (size_t)d->n_q * d->head_dim);
    const void *k =
        operand(c, TN_OPERAND_ROWS, TN_OPERAND_I8, (size_t)TN_KV_BLOCK * d->head_dim);
    const uint16_t *q_scales = in(c, TN_OPERAND_F16, (size_t)d->n_q * n_scales(d));
    const uint16_t *k_scales = in(c, TN_OPERAND_F16, (size_t)TN_KV_BLOCK * n_scales(d));
    float *s = out(c, TN_OPERAND_F32, n_scores(d));
    if (c->fn)
        ((tn_attn_qk_q8_fn *)c->fn)(s, d->score_stride, q, q_scales, d->n_q, k, k_scales,
                                    d->n_pos, d->head_dim, d->scale);
}

static void sum_values(struct tn_kernel_call *c, enum tn_operand_type type)
{
    const struct tn_call_dims *d = &c->dims;
    const float *p = in(c, TN_OPERAND_F32, n_scores(d));
    const void *v = operand(c, TN_OPERAND_ROWS, type, (size_t)d->n_pos * d->head_dim);
    float *o = out(c, TN_OPERAND_F32, (size_t)d->n_q * d->head_dim);
    if (c->fn)
        ((tn_attn_pv_fn *)c->fn)(o, p, d->score_stride, d->n_q, v, d->n_pos, d->head_dim);
}

OPERATION(attn_pv_f32, sum_values(c, TN_OPERAND_F32))
OPERATION(attn_pv_f16, sum_values(c, TN_OPERAND_F16))

static void attn_pv_q8(struct tn_kernel_call *c)
{
    const struct tn_call_dims *d = &c->dims;
    const float *p = in(c, TN_OPERAND_F32, n_scores(d));
    const void *v =
        operand(c, TN_OPERAND_ROWS, TN_OPERAND_I8, (size_t)TN_KV_BLOCK * d->head_dim);
    const uint16_t *scales = in(c, TN_OPERAND_F16, (size_t)TN_KV_BLOCK * n_scales(d));
    float *o = out(c, TN_OPERAND_F32, (size_t)d->n_q * d->head_dim);
    if (c->fn)
        ((tn_attn_pv_q8_fn *)c->fn)(o, p, d->score_stride, d->n_q, v, scales, d->n_pos,
                                    d->head_dim, d->next);
}

static void max_f32(struct tn_kernel_call *c)
{
    const float *x = in(c, TN_OPERAND_F32, c->dims.n);
    float *max = out(c, TN_OPERAND_F32, 1);
    if (c->fn)
        *max = ((tn_max_f32_fn *)c->fn)(x, c->dims.n);
}

static void exp_sum_f32(struct tn_kernel_call *c)
{
    float *x = operand(c, TN_OPERAND_CHANGED, TN_OPERAND_F32, c->dims.n);
    float *sum = out(c, TN_OPERAND_F32, 1);
    if (c->fn)
        *sum = ((tn_exp_sum_f32_fn *)c->fn)(x, c->dims.n, c->dims.max);
}

/* One row of the cache. */
static void store(struct tn_kernel_call *c, enum tn_operand_type type, uint32_t n)
{
    const float *x = in(c, TN_OPERAND_F32, c->dims.head_dim);
    void *dst = out(c, type, c->dims.head_dim);
    uint16_t *scales = out(c, TN_OPERAND_F16, n);
    if (c->fn)
        ((tn_kv_store_fn *)c->fn)(dst, scales, x, c->dims.head_dim);
}

OPERATION(kv_store_f32, store(c, TN_OPERAND_F32, 0))
OPERATION(kv_store_f16, store(c, TN_OPERAND_F16, 0))
OPERATION(kv_store_q8, store(c, TN_OPERAND_I8, n_scales(&c->dims)))

/* ---- the table ---- */

const struct tn_kernel_call_row tn_kernel_calls[TN_N_CALL_OPS] = {
#define TN_CALL_ROW(op) {#op, op},
    TN_CALL_OPS(TN_CALL_ROW)
#undef TN_CALL_ROW
};

const struct tn_kernel_call_row *tn_kernel_call_find(const char *op)
{
    for (uint32_t i = 0; i < TN_N_CALL_OPS; i++)
        if (strcmp(tn_kernel_calls[i].op, op) == 0)
            return &tn_kernel_calls[i];
    return NULL;
}

size_t tn_operand_bytes(const struct tn_operand *operand)
{
    return operand->n * value_bytes[operand->type];
}
