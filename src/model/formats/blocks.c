/* SPDX-License-Identifier: MIT
 *
 * The formats of matrices in blocks, as in GGUF files: twelve layouts with three precisions of the
 * input each.  The default is 8 bits for the layouts where that was measured to cost a trained
 * model less than 0.001 nats per token (bench/input_forms.py), else 16 bits; an engine may request
 * one of these or f32, the reference for both.
 */
#include "base/bits.h"
#include "kern/blocks.h"
#include "model/acts.h"
#include "model/formats/formats.h"
#include "model/workspace_size.h"

static struct tn_blocks blocks_of(const struct tn_matrix *w)
{
    return (struct tn_blocks){w->data, w->rows, w->cols, w->layout};
}

/* Kernels write all rows of a tile, so their results go to scratch->sum first. */
static struct tn_product_rows sums_of(const struct tn_worker *worker)
{
    return (struct tn_product_rows){(float *)worker->scratch->sum, TN_SUM_STRIDE};
}

static void multiply_one(tn_gemv_blocks_fn *gemv, float *dst, size_t dst_stride, float add,
                         const struct tn_matrix *w, uint32_t row, uint32_t n_rows, const void *x,
                         const struct tn_worker *worker)
{
    const struct tn_product_rows y = sums_of(worker);
    const struct tn_blocks blocks = blocks_of(w);
    gemv(y.y, &blocks, row, row + (uint32_t)tn_align_up(n_rows, TN_TILE_ROWS), x);
    tn_product_end(&y, dst, dst_stride, add, n_rows, 1, worker);
}

static void multiply_panel(tn_gemm_blocks_fn *gemm, float *dst, size_t dst_stride, float add,
                           const struct tn_matrix *w, uint32_t row, uint32_t n_rows, const void *x,
                           uint32_t n, const struct tn_worker *worker)
{
    const struct tn_product_rows y = sums_of(worker);
    const struct tn_blocks blocks = blocks_of(w);
    gemm(y.y, y.stride, &blocks, row, row + (uint32_t)tn_align_up(n_rows, TN_GEMM_ROW_ALIGN), x, n,
         worker->scratch->kernel);
    tn_product_end(&y, dst, dst_stride, add, n_rows, n, worker);
}

static void mul_x16_one(float *dst, size_t dst_stride, float add, const struct tn_matrix *w,
                        uint32_t row, uint32_t n_rows, const struct tn_acts *x,
                        const struct tn_worker *worker)
{
    multiply_one(worker->kernels->gemv_blocks_x16, dst, dst_stride, add, w, row, n_rows, x->x16,
                 worker);
}

static void mul_x16(float *dst, size_t dst_stride, float add, const struct tn_matrix *w,
                    uint32_t row, uint32_t n_rows, const struct tn_acts *x,
                    const struct tn_worker *worker)
{
    multiply_panel(worker->kernels->gemm_blocks_x16, dst, dst_stride, add, w, row, n_rows, x->x16,
                   x->n, worker);
}

static void mul_x8_one(float *dst, size_t dst_stride, float add, const struct tn_matrix *w,
                       uint32_t row, uint32_t n_rows, const struct tn_acts *x,
                       const struct tn_worker *worker)
{
    multiply_one(worker->kernels->gemv_blocks_x8, dst, dst_stride, add, w, row, n_rows, x->x8,
                 worker);
}

static void mul_x8(float *dst, size_t dst_stride, float add, const struct tn_matrix *w,
                   uint32_t row, uint32_t n_rows, const struct tn_acts *x,
                   const struct tn_worker *worker)
{
    multiply_panel(worker->kernels->gemm_blocks_x8, dst, dst_stride, add, w, row, n_rows, x->x8,
                   x->n, worker);
}

static void mul_f32(float *dst, size_t dst_stride, float add, const struct tn_matrix *w,
                    uint32_t row, uint32_t n_rows, const struct tn_acts *x,
                    const struct tn_worker *worker)
{
    const struct tn_product_rows y = sums_of(worker);
    const struct tn_blocks blocks = blocks_of(w);
    for (uint32_t t = 0; t < x->n; t++)
        worker->kernels->gemv_blocks_f32(y.y + t * y.stride, &blocks, row,
                                         row + (uint32_t)tn_align_up(n_rows, TN_TILE_ROWS),
                                         x->f32 + t * x->f32_stride);
    tn_product_end(&y, dst, dst_stride, add, n_rows, x->n, worker);
}

static void unpack_row(float *dst, const struct tn_matrix *w, uint32_t row,
                       const struct tn_worker *worker)
{
    (void)worker;
    const struct tn_blocks blocks = blocks_of(w);
    tn_blocks_unpack_row(dst, &blocks, row);
}

/* Finds scales that are NaN or infinite.  The tensor's padding rows are zeros. */
static uint64_t find_bad(const void *data, uint64_t n_bytes, const struct tern_file_tensor *t)
{
    const struct tn_blocks blocks = {data, t->rows, t->cols, t->layout};
    (void)n_bytes;
    return tn_blocks_find_bad(&blocks);
}

#define FORMAT_ROW(name, id, ...)                                                                  \
    const struct tn_format name = {                                                                \
        .layout = TERN_LAYOUT_##id,                                                                \
        .scale_kinds = 1u << TERN_SCALE_NONE,                                                      \
        .unpack_row = unpack_row,                                                                  \
        .find_bad = find_bad,                                                                      \
        __VA_ARGS__                                                                                \
    };
#define FORMAT_ROWS(name, id)                                                                      \
    static FORMAT_ROW(name##_f32, id, .act = TN_ACT_F32, .mul_one = mul_f32,                       \
                      .mul_panel = mul_f32)                                                        \
    static FORMAT_ROW(name##_x16, id, .act = TN_ACT_X16, .mul_one = mul_x16_one,                   \
                      .mul_panel = mul_x16)                                                        \
    FORMAT_ROW(tn_format_##name, id, .act = TN_ACT_X8, .mul_one = mul_x8_one,                      \
               .mul_panel = mul_x8, .exact = &name##_f32, .fine = &name##_x16)

FORMAT_ROWS(q8_0, Q8_0)
FORMAT_ROWS(q4_0, Q4_0)
FORMAT_ROWS(q4_1, Q4_1)
FORMAT_ROWS(q5_0, Q5_0)
FORMAT_ROWS(q5_1, Q5_1)
FORMAT_ROWS(iq4_nl, IQ4_NL)
FORMAT_ROWS(iq4_xs, IQ4_XS)
FORMAT_ROWS(q2_k, Q2_K)
FORMAT_ROWS(q3_k, Q3_K)
FORMAT_ROWS(q4_k, Q4_K)
FORMAT_ROWS(q5_k, Q5_K)
FORMAT_ROWS(q6_k, Q6_K)
