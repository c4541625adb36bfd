/* SPDX-License-Identifier: MIT
 *
 * The format of ternary matrices in T2 with a scale per row and group of columns: inputs in 16
 * bits; in 8 bits, coarser and faster; or in f32, the reference for both.
 */
#include "base/bits.h"
#include "kern/pack.h"
#include "model/acts.h"
#include "model/formats/formats.h"
#include "model/workspace_size.h"

static_assert(TN_X16_FEW <= TN_FEW_TOKENS && TN_X8_FEW <= TN_FEW_TOKENS,
              "gemv takes whole bands of rows");

/* Kernels write all rows of a tile, so their results go to scratch->sum first. */
static struct tn_product_rows sums_of(const struct tn_worker *worker)
{
    return (struct tn_product_rows){(float *)worker->scratch->sum, TN_SUM_STRIDE};
}

static uint32_t end_of(uint32_t row, uint32_t n_rows)
{
    return row + (uint32_t)tn_align_up(n_rows, TERN_T2_TILE_ROWS);
}

static void mul_x16_few(float *dst, size_t dst_stride, float add, const struct tn_matrix *w,
                        uint32_t row, uint32_t n_rows, const struct tn_acts *x,
                        const struct tn_worker *worker)
{
    const struct tn_product_rows y = sums_of(worker);
    worker->kernels->gemv_t2_x16(y.y, y.stride, &w->t, row, end_of(row, n_rows), x->x16, x->n);
    tn_product_end(&y, dst, dst_stride, add, n_rows, x->n, worker);
}

static void mul_x16(float *dst, size_t dst_stride, float add, const struct tn_matrix *w,
                    uint32_t row, uint32_t n_rows, const struct tn_acts *x,
                    const struct tn_worker *worker)
{
    const struct tn_product_rows y = sums_of(worker);
    worker->kernels->gemm_t2_x16(y.y, y.stride, &w->t, row, end_of(row, n_rows), x->x16, x->n,
                                 worker->scratch->kernel);
    tn_product_end(&y, dst, dst_stride, add, n_rows, x->n, worker);
}

static void mul_x8_few(float *dst, size_t dst_stride, float add, const struct tn_matrix *w,
                       uint32_t row, uint32_t n_rows, const struct tn_acts *x,
                       const struct tn_worker *worker)
{
    const struct tn_product_rows y = sums_of(worker);
    worker->kernels->gemv_t2_x8(y.y, y.stride, &w->t, row, end_of(row, n_rows), x->x8, x->n);
    tn_product_end(&y, dst, dst_stride, add, n_rows, x->n, worker);
}

static void mul_x8(float *dst, size_t dst_stride, float add, const struct tn_matrix *w,
                   uint32_t row, uint32_t n_rows, const struct tn_acts *x,
                   const struct tn_worker *worker)
{
    const struct tn_product_rows y = sums_of(worker);
    worker->kernels->gemm_t2_x8(y.y, y.stride, &w->t, row, end_of(row, n_rows), x->x8, x->n,
                                worker->scratch->kernel);
    tn_product_end(&y, dst, dst_stride, add, n_rows, x->n, worker);
}

static void mul_f32(float *dst, size_t dst_stride, float add, const struct tn_matrix *w,
                    uint32_t row, uint32_t n_rows, const struct tn_acts *x,
                    const struct tn_worker *worker)
{
    const struct tn_product_rows y = sums_of(worker);
    for (uint32_t t = 0; t < x->n; t++)
        worker->kernels->gemv_t2_f32(y.y + t * y.stride, &w->t, row, end_of(row, n_rows),
                                     x->f32 + t * x->f32_stride);
    tn_product_end(&y, dst, dst_stride, add, n_rows, x->n, worker);
}

static void unpack_row(float *dst, const struct tn_matrix *w, uint32_t row,
                       const struct tn_worker *worker)
{
    (void)worker;
    tn_unpack_row_f32(dst, &w->t, row);
}

static void bind(struct tn_matrix *w, const struct tern_file_tensor *t)
{
    w->t = (struct tn_scaled_ternary){
        .w = {w->data, w->rows, w->cols, w->layout},
        .scales = w->scales,
        .group = t->scale_group,
        .is_f16 = t->scale_kind == TERN_SCALE_COL_GROUP_F16,
    };
}

#define SCALE_KINDS (1u << TERN_SCALE_COL_GROUP | 1u << TERN_SCALE_COL_GROUP_F16)

static const struct tn_format t2_f32 = {
    .layout = TERN_LAYOUT_T2,
    .scale_kinds = SCALE_KINDS,
    .act = TN_ACT_F32,
    .bind = bind,
    .mul_one = mul_f32,
    .mul_panel = mul_f32,
    .unpack_row = unpack_row,
    .find_bad = tn_find_code3,
};

static const struct tn_format t2_x8 = {
    .layout = TERN_LAYOUT_T2,
    .scale_kinds = SCALE_KINDS,
    .act = TN_ACT_X8,
    .bind = bind,
    .mul_one = mul_x8_few,
    .mul_few = mul_x8_few,
    .mul_panel = mul_x8,
    .n_few = TN_X8_FEW,
    .unpack_row = unpack_row,
    .find_bad = tn_find_code3,
};

const struct tn_format tn_format_t2_x16 = {
    .layout = TERN_LAYOUT_T2,
    .scale_kinds = SCALE_KINDS,
    .act = TN_ACT_X16,
    .bind = bind,
    .mul_one = mul_x16_few,
    .mul_few = mul_x16_few,
    .mul_panel = mul_x16,
    .n_few = TN_X16_FEW,
    .unpack_row = unpack_row,
    .find_bad = tn_find_code3,
    .exact = &t2_f32,
    .coarse = &t2_x8,
};
