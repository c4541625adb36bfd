/* SPDX-License-Identifier: MIT
 *
 * The format of matrices in f32, row after row: sums in lane order, no scales.  All products use
 * the gemv kernel.
 */
#include <string.h>

#include "model/acts.h"
#include "model/formats/formats.h"

static void mul(float *dst, size_t dst_stride, float add, const struct tn_matrix *w, uint32_t row,
                uint32_t n_rows, const struct tn_acts *x, const struct tn_worker *worker)
{
    const struct tn_product_rows y = tn_product_begin(dst, dst_stride, add, worker);
    const float *data = (const float *)(const void *)w->data + (size_t)row * w->cols;
    worker->kernels->gemv_f32_f32(y.y, y.stride, data, n_rows, w->cols, x->f32,
                                  x->f32_stride, x->n);
    tn_product_end(&y, dst, dst_stride, add, n_rows, x->n, worker);
}

static void unpack_row(float *dst, const struct tn_matrix *w, uint32_t row,
                       const struct tn_worker *worker)
{
    (void)worker;
    const float *src = (const float *)(const void *)w->data + (size_t)row * w->cols;
    memcpy(dst, src, w->cols * sizeof *dst);
}

const struct tn_format tn_format_f32 = {
    .layout = TERN_LAYOUT_F32,
    .scale_kinds = 1u << TERN_SCALE_NONE,
    .act = TN_ACT_F32,
    .mul_one = mul,
    .mul_panel = mul,
    .unpack_row = unpack_row,
    .find_bad = tn_find_bad_f32,
};
