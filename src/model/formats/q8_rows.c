/* SPDX-License-Identifier: MIT
 *
 * The format of matrices in int8, row after row, with a scale for each row: inputs in f32, sums in
 * lane order.
 */
#include "model/acts.h"
#include "model/formats/formats.h"

static const int8_t *row_of(const struct tn_matrix *w, uint32_t row)
{
    return (const int8_t *)w->data + (size_t)row * w->cols;
}

static void mul(const struct tn_mul *m)
{
    const struct tn_sums sums = tn_sums_or_dst(m);
    const float *scales = m->w->scales;
    m->worker->kernels->gemv_q8_f32(sums.y, sums.stride, row_of(m->w, m->row), scales + m->row,
                                    m->n_rows, m->w->cols, m->x->f32, m->x->f32_stride, m->x->n);
    tn_sums_finish(&sums, m);
}

static void unpack_row(float *dst, const struct tn_matrix *w, uint32_t row,
                       const struct tn_worker *worker)
{
    (void)worker;
    const int8_t *q = row_of(w, row);
    const float scale = ((const float *)w->scales)[row];
    for (uint32_t i = 0; i < w->cols; i++)
        dst[i] = (float)q[i] * scale;
}

const struct tn_format tn_format_q8_rows = {
    .layout = TERN_LAYOUT_Q8,
    .scale_kinds = 1u << TERN_SCALE_ROW,
    .act = TN_ACT_F32,
    .mul_one = mul,
    .mul_panel = mul,
    .unpack_row = unpack_row,
};
