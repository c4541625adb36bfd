/* SPDX-License-Identifier: MIT
 *
 * How each operation on vectors, tables and cached rows is called: one function per operation that
 * names its operands and calls a kernel.
 *
 * The users bring the memory and the values: `tern verify` and `tern bench` (kernel_cases.c), the
 * benchmark bench_kern, and tests/kern/test_kern_calls.c, which compares every level with ref for
 * many dimensions between inaccessible pages.  Products of packed matrices are not here: their
 * operands are matrices (kernel_cases_ternary.c, kernel_cases_blocks.c).
 *
 *     struct tn_kernel_call call = {.dims = dims};
 *     row->run(&call);              describes the operands
 *     call.operands[i].data = ...   for each of call.n_operands
 *     call.fn = kernel;
 *     row->run(&call);              calls the kernel
 */
#ifndef TN_KERNEL_CALLS_H
#define TN_KERNEL_CALLS_H

#include <stdbool.h>

#include "kern/kern.h"

enum tn_operand_use {
    TN_OPERAND_IN,
    TN_OPERAND_ROWS,    /* read: weights or cached rows, which exceed the caches of a CPU */
    TN_OPERAND_OUT,
    TN_OPERAND_STABLE,  /* read and written; finite after any number of calls (with scale 0) */
    TN_OPERAND_CHANGED, /* read and written; needs its values again before the next call */
};

enum tn_operand_type {
    TN_OPERAND_I8,
    TN_OPERAND_F16,
    TN_OPERAND_BF16,
    TN_OPERAND_I32,
    TN_OPERAND_F32,
    TN_OPERAND_F64,
};

struct tn_operand {
    enum tn_operand_use use;
    enum tn_operand_type type;
    size_t n; /* values; a call reduces that of a list to its length */
    uint32_t align;
    void *data;
};

/* An operation uses some of them. */
struct tn_call_dims {
    uint32_t n;                       /* values of a vector, columns of a table */
    uint32_t n_rows, n_tokens;        /* of a product with a table */
    size_t x_stride, dst_stride;      /* of its tokens */
    uint32_t block;                   /* of hadamard_f32 */
    uint32_t n_heads, head_dim;       /* of rope_f32; head_dim also of the cache */
    uint32_t head_stride;
    uint32_t n_q, n_pos;              /* of attention */
    size_t score_stride;              /* between the scores of two queries */
    const void *next;                 /* the block that attn_pv_q8 prefetches; may be NULL */
    float scale, eps, max;            /* scale: also the factor of scores, and the cap */
};

#define TN_CALL_MAX_OPERANDS 6u

struct tn_kernel_call {
    struct tn_call_dims dims;
    void (*fn)(void); /* the kernel; NULL: only describe the operands */
    struct tn_operand operands[TN_CALL_MAX_OPERANDS];
    uint32_t n_operands;
};

/* X(operation) for every operation that is called here. */
#define TN_CALL_VECTOR_OPS(X)                                                                      \
    X(quant_i8)                                                                                    \
    X(quant_x16)                                                                                   \
    X(quant_x8)                                                                                    \
    X(rms_norm_f32)                                                                                \
    X(rms_norm_quant)                                                                              \
    X(hadamard_f32)                                                                                \
    X(scale_i32_f32)                                                                               \
    X(add_i32_f32)                                                                                 \
    X(add_scaled_f32)                                                                              \
    X(add_i32_f64)                                                                                 \
    X(relu2_mul_f32)                                                                               \
    X(silu_mul_f32)                                                                                \
    X(gelu_mul_f32)                                                                                \
    X(cap_f32)                                                                                     \
    X(rope_f32)                                                                                    \
    X(list_positive_f32)                                                                           \
    X(list_nonzero_i8)
#define TN_CALL_TABLE_OPS(X)                                                                       \
    X(gemv_q8_f32)                                                                                 \
    X(gemv_f32_f32)                                                                                \
    X(gemv_f16_f32)                                                                                \
    X(gemv_bf16_f32)
#define TN_CALL_CACHE_OPS(X)                                                                       \
    X(attn_qk_f32)                                                                                 \
    X(attn_qk_f16)                                                                                 \
    X(attn_qk_q8)                                                                                  \
    X(attn_pv_f32)                                                                                 \
    X(attn_pv_f16)                                                                                 \
    X(attn_pv_q8)                                                                                  \
    X(max_f32)                                                                                     \
    X(exp_sum_f32)                                                                                 \
    X(kv_store_f32)                                                                                \
    X(kv_store_f16)                                                                                \
    X(kv_store_q8)
#define TN_CALL_OPS(X)                                                                             \
    TN_CALL_VECTOR_OPS(X)                                                                          \
    TN_CALL_TABLE_OPS(X)                                                                           \
    TN_CALL_CACHE_OPS(X)

enum tn_call_op {
#define TN_CALL_NUMBER(op) TN_CALL_##op,
    TN_CALL_OPS(TN_CALL_NUMBER)
#undef TN_CALL_NUMBER
    TN_N_CALL_OPS
};

struct tn_kernel_call_row {
    const char *op;
    void (*run)(struct tn_kernel_call *call);
};
extern const struct tn_kernel_call_row tn_kernel_calls[TN_N_CALL_OPS];

/* NULL: the operation is not here. */
const struct tn_kernel_call_row *tn_kernel_call_find(const char *op);

size_t tn_operand_bytes(const struct tn_operand *operand);
static inline bool tn_operand_is_read(const struct tn_operand *operand)
{
    return operand->use != TN_OPERAND_OUT;
}
static inline bool tn_operand_is_written(const struct tn_operand *operand)
{
    return operand->use >= TN_OPERAND_OUT;
}

#endif
