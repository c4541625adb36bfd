/* SPDX-License-Identifier: MIT
 *
 * Embeddings and heads that are not ternary: their rows are multiplied with
 * f32 inputs in lane order.
 */
#include <assert.h>
#include <string.h>

#include "base/half.h"
#include "model/acts.h"
#include "model/format_rows.h"
#include "model/head.h"
#include "model/memplan.h"

/* ---- products: tables only ever give logits, so nothing is added ---- */

void tn_mul_f32(float *dst, size_t dst_stride, float add, const struct tn_matrix *w, uint32_t row,
                uint32_t n_rows, const struct tn_acts *x, const struct tn_worker *worker)
{
    assert(add == 0);
    (void)add;
    const uint32_t cols = w->t.w.cols;
    const float *data = (const float *)(const void *)w->t.w.data + (size_t)row * cols;
    worker->kernels->gemv_f32_f32(dst, dst_stride, data, n_rows, cols, x->f32, x->f32_stride, x->n);
}

void tn_mul_f16(float *dst, size_t dst_stride, float add, const struct tn_matrix *w, uint32_t row,
                uint32_t n_rows, const struct tn_acts *x, const struct tn_worker *worker)
{
    assert(add == 0);
    (void)add;
    const uint32_t cols = w->t.w.cols;
    const uint16_t *data = (const uint16_t *)(const void *)w->t.w.data + (size_t)row * cols;
    worker->kernels->gemv_f16_f32(dst, dst_stride, data, n_rows, cols, x->f32, x->f32_stride, x->n);
}

void tn_mul_bf16(float *dst, size_t dst_stride, float add, const struct tn_matrix *w, uint32_t row,
                 uint32_t n_rows, const struct tn_acts *x, const struct tn_worker *worker)
{
    assert(add == 0);
    (void)add;
    const uint32_t cols = w->t.w.cols;
    const uint16_t *data = (const uint16_t *)(const void *)w->t.w.data + (size_t)row * cols;
    worker->kernels->gemv_bf16_f32(dst, dst_stride, data, n_rows, cols, x->f32, x->f32_stride,
                                   x->n);
}

void tn_mul_q8(float *dst, size_t dst_stride, float add, const struct tn_matrix *w, uint32_t row,
               uint32_t n_rows, const struct tn_acts *x, const struct tn_worker *worker)
{
    assert(add == 0);
    (void)add;
    const uint32_t cols = w->t.w.cols;
    const int8_t *data = (const int8_t *)w->t.w.data + (size_t)row * cols;
    worker->kernels->gemv_q8_f32(dst, dst_stride, data, w->row_scales + row, n_rows, cols, x->f32,
                                 x->f32_stride, x->n);
}

/* Some rows at a time are unpacked to q8. */
void tn_mul_planes(float *dst, size_t dst_stride, float add, const struct tn_matrix *w,
                   uint32_t row, uint32_t n_rows, const struct tn_acts *x,
                   const struct tn_worker *worker)
{
    assert(add == 0);
    (void)add;
    const struct tn_kernels *k = worker->kernels;
    const uint32_t cols = w->t.w.cols;
    int8_t *unpacked = worker->scratch->head_rows;
    for (uint32_t i = 0; i < n_rows; i += TN_HEAD_UNPACK_ROWS) {
        const uint32_t n = TN_MIN(TN_HEAD_UNPACK_ROWS, n_rows - i);
        for (uint32_t j = 0; j < n; j++)
            k->unpack_planes(unpacked + (size_t)j * cols, &w->planes, row + i + j);
        k->gemv_q8_f32(dst + i, dst_stride, unpacked, w->row_scales + row + i, n, cols, x->f32,
                       x->f32_stride, x->n);
    }
}

/* ---- rows of the embedding ---- */

void tn_unpack_row_f32_table(float *dst, const struct tn_matrix *w, uint32_t row,
                             const struct tn_worker *worker)
{
    (void)worker;
    const size_t n_bytes = w->t.w.cols * sizeof *dst;
    memcpy(dst, w->t.w.data + row * n_bytes, n_bytes);
}

void tn_unpack_row_f16(float *dst, const struct tn_matrix *w, uint32_t row,
                       const struct tn_worker *worker)
{
    (void)worker;
    const uint32_t cols = w->t.w.cols;
    const uint16_t *src = (const uint16_t *)(const void *)w->t.w.data + (size_t)row * cols;
    for (uint32_t i = 0; i < cols; i++)
        dst[i] = tn_f16_to_f32(src[i]);
}

void tn_unpack_row_bf16(float *dst, const struct tn_matrix *w, uint32_t row,
                        const struct tn_worker *worker)
{
    (void)worker;
    const uint32_t cols = w->t.w.cols;
    const uint16_t *src = (const uint16_t *)(const void *)w->t.w.data + (size_t)row * cols;
    for (uint32_t i = 0; i < cols; i++)
        dst[i] = tn_bf16_to_f32(src[i]);
}

static void scale_row(float *dst, const int8_t *q, uint32_t n, float scale)
{
    for (uint32_t i = 0; i < n; i++)
        dst[i] = (float)q[i] * scale;
}

void tn_unpack_row_q8(float *dst, const struct tn_matrix *w, uint32_t row,
                      const struct tn_worker *worker)
{
    (void)worker;
    const uint32_t cols = w->t.w.cols;
    scale_row(dst, (const int8_t *)w->t.w.data + (size_t)row * cols, cols, w->row_scales[row]);
}

void tn_unpack_row_planes(float *dst, const struct tn_matrix *w, uint32_t row,
                          const struct tn_worker *worker)
{
    int8_t *q = worker->scratch->head_rows;
    worker->kernels->unpack_planes(q, &w->planes, row);
    scale_row(dst, q, w->t.w.cols, w->row_scales[row]);
}
