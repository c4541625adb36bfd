/* SPDX-License-Identifier: MIT
 *
 * Ternary matrices.  With one scale: inputs in int8, exact sums in int32, then
 * y = sum * (scale of the weights * scale of the input).  One token takes the
 * multiplication-free gemv kernels, several take gemm; both give the same sums.
 * With a scale per group: inputs in 16 or 8 bits, or in f32 as the yardstick.
 */
#include <assert.h>
#include <string.h>

#include "base/bits.h"
#include "kern/pack.h"
#include "model/acts.h"
#include "model/format_rows.h"
#include "model/memplan.h"

/* ---- one scale, int8 ---- */

/* dst becomes, or gets added, what the sums of all tokens stand for. */
static void write_sums(float *dst, size_t dst_stride, float add, const struct tn_matrix *w,
                       uint32_t n_rows, const struct tn_acts *x, const struct tn_worker *worker)
{
    const struct tn_kernels *k = worker->kernels;
    for (uint32_t t = 0; t < x->n; t++) {
        const int32_t *sum = worker->scratch->sum + (size_t)t * TN_SUM_STRIDE;
        const float scale = w->scale * x->i8_scale[t];
        if (add != 0)
            k->add_i32_f32(dst + t * dst_stride, sum, n_rows, add * scale);
        else
            k->scale_i32_f32(dst + t * dst_stride, sum, n_rows, scale);
    }
}

static void multiply_tokens(tn_gemm_i8_fn *gemm, float *dst, size_t dst_stride, float add,
                            const struct tn_matrix *w, uint32_t row, uint32_t n_rows,
                            const struct tn_acts *x, const struct tn_worker *worker)
{
    const uint32_t padded = (uint32_t)tn_align_up(n_rows, TN_GEMM_ROW_ALIGN);
    gemm(worker->scratch->sum, TN_SUM_STRIDE, &w->t.w, row, row + padded, x->i8, x->i8_stride,
         x->i8_sum, x->n, worker->scratch->kernel);
    write_sums(dst, dst_stride, add, w, n_rows, x, worker);
}

/* The look-up tables of the rounded input, once for each thread: making them takes 2 us, fetching
 * 100 KB of them from another core's cache takes longer. */
static void prepare_lut(const struct tn_acts *x, const struct tn_worker *worker)
{
    struct tn_thread_scratch *s = worker->scratch;
    if (*s->lut_input == x->number)
        return;
    worker->kernels->lut_t2(s->lut, x->i8, x->cols);
    *s->lut_input = x->number;
}

void tn_mul_t2_i8(float *dst, size_t dst_stride, float add, const struct tn_matrix *w, uint32_t row,
                  uint32_t n_rows, const struct tn_acts *x, const struct tn_worker *worker)
{
    if (x->n > 1) {
        multiply_tokens(worker->kernels->gemm_t2_i8, dst, dst_stride, add, w, row, n_rows, x,
                        worker);
        return;
    }
    const uint32_t padded = (uint32_t)tn_align_up(n_rows, TERN_T2_TILE_ROWS);
    prepare_lut(x, worker);
    worker->kernels->gemv_t2_i8(worker->scratch->sum, &w->t.w, row, row + padded,
                                worker->scratch->lut);
    write_sums(dst, dst_stride, add, w, n_rows, x, worker);
}

void tn_mul_r2_i8(float *dst, size_t dst_stride, float add, const struct tn_matrix *w, uint32_t row,
                  uint32_t n_rows, const struct tn_acts *x, const struct tn_worker *worker)
{
    assert(x->n > 1 && "one token takes the list of rows");
    multiply_tokens(worker->kernels->gemm_r2_i8, dst, dst_stride, add, w, row, n_rows, x, worker);
}

void tn_mul_c2_i8(float *dst, size_t dst_stride, float add, const struct tn_matrix *w, uint32_t row,
                  uint32_t n_rows, const struct tn_acts *x, const struct tn_worker *worker)
{
    assert(x->n > 1 && "one token takes the list of columns");
    multiply_tokens(worker->kernels->gemm_c2_i8, dst, dst_stride, add, w, row, n_rows, x, worker);
}

void tn_mul_rows_r2_i8(float *dst, const struct tn_matrix *w, const uint32_t *rows, uint32_t n_rows,
                       const struct tn_acts *x, const struct tn_worker *worker)
{
    int32_t *sum = worker->scratch->sum;
    worker->kernels->gemv_r2_i8(sum, &w->t.w, rows, n_rows, x->prep);
    worker->kernels->scale_i32_f32(dst, sum, n_rows, w->scale * x->i8_scale[0]);
}

void tn_mul_rows_few_r2_i8(int32_t *sum, size_t sum_stride, const struct tn_matrix *w,
                           const uint32_t *rows, const uint8_t *takers, uint32_t n_rows,
                           const struct tn_acts *x, const struct tn_worker *worker)
{
    worker->kernels->few_r2_i8(sum, sum_stride, &w->t.w, rows, takers, n_rows, x->i8, x->i8_stride,
                               x->i8_sum);
}

void tn_mul_cols_c2_i8(int32_t *sum, const struct tn_matrix *w, uint32_t row_begin,
                       uint32_t row_end, const uint32_t *cols, const int8_t *x, uint32_t n_cols,
                       const struct tn_worker *worker)
{
    worker->kernels->gemv_c2_i8(sum, &w->t.w, row_begin, row_end, cols, x, n_cols);
}

void tn_unpack_row_t2(float *dst, const struct tn_matrix *w, uint32_t row,
                      const struct tn_worker *worker)
{
    int8_t *trits = worker->scratch->head_rows;
    tn_unpack_rows(trits, w->t.w.data, w->t.w.layout, w->t.w.rows, w->t.w.cols, row, 1);
    for (uint32_t i = 0; i < w->t.w.cols; i++)
        dst[i] = (float)trits[i] * w->scale;
}

/* ---- a scale per group; 16 bits, 8 bits or f32 ---- */

/* From y in scratch->sum [n][TN_SUM_STRIDE] to dst. */
static void write_products(float *dst, size_t dst_stride, float add, uint32_t n_rows,
                           const struct tn_acts *x, const struct tn_worker *worker)
{
    const float *y = (const float *)worker->scratch->sum;
    if (dst == y)
        return;
    for (uint32_t t = 0; t < x->n; t++, dst += dst_stride, y += TN_SUM_STRIDE) {
        if (add != 0)
            worker->kernels->add_scaled_f32(dst, y, n_rows, add);
        else
            memcpy(dst, y, n_rows * sizeof *y);
    }
}

static_assert(TN_X16_FEW <= TN_FEW_TOKENS && TN_X8_FEW <= TN_FEW_TOKENS,
              "gemv takes whole bands of rows");

void tn_mul_t2_x16(float *dst, size_t dst_stride, float add, const struct tn_matrix *w,
                   uint32_t row, uint32_t n_rows, const struct tn_acts *x,
                   const struct tn_worker *worker)
{
    float *y = (float *)worker->scratch->sum;
    const uint32_t row_end = row + (uint32_t)tn_align_up(n_rows, TERN_T2_TILE_ROWS);
    if (x->n <= TN_X16_FEW)
        worker->kernels->gemv_t2_x16(y, TN_SUM_STRIDE, &w->t, row, row_end, x->rounded, x->n);
    else
        worker->kernels->gemm_t2_x16(y, TN_SUM_STRIDE, &w->t, row, row_end, x->rounded, x->n,
                                     worker->scratch->kernel);
    write_products(dst, dst_stride, add, n_rows, x, worker);
}

void tn_mul_t2_x8(float *dst, size_t dst_stride, float add, const struct tn_matrix *w, uint32_t row,
                  uint32_t n_rows, const struct tn_acts *x, const struct tn_worker *worker)
{
    float *y = (float *)worker->scratch->sum;
    const uint32_t row_end = row + (uint32_t)tn_align_up(n_rows, TERN_T2_TILE_ROWS);
    if (x->n <= TN_X8_FEW)
        worker->kernels->gemv_t2_x8(y, TN_SUM_STRIDE, &w->t, row, row_end, x->rounded, x->n);
    else
        worker->kernels->gemm_t2_x8(y, TN_SUM_STRIDE, &w->t, row, row_end, x->rounded, x->n,
                                    worker->scratch->kernel);
    write_products(dst, dst_stride, add, n_rows, x, worker);
}

void tn_mul_t2_f32(float *dst, size_t dst_stride, float add, const struct tn_matrix *w,
                   uint32_t row, uint32_t n_rows, const struct tn_acts *x,
                   const struct tn_worker *worker)
{
    float *y = (float *)worker->scratch->sum;
    const uint32_t row_end = row + (uint32_t)tn_align_up(n_rows, TERN_T2_TILE_ROWS);
    for (uint32_t t = 0; t < x->n; t++)
        worker->kernels->gemv_t2_f32(y + (size_t)t * TN_SUM_STRIDE, &w->t, row, row_end,
                                     x->f32 + t * x->f32_stride);
    write_products(dst, dst_stride, add, n_rows, x, worker);
}

void tn_unpack_row_t2_scaled(float *dst, const struct tn_matrix *w, uint32_t row,
                             const struct tn_worker *worker)
{
    (void)worker;
    tn_unpack_row_f32(dst, &w->t, row);
}
