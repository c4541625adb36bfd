/* SPDX-License-Identifier: MIT
 *
 * The format of small integers in planes of bits (q8, q6, q4): some rows at a time are unpacked to
 * int8 and multiplied like q8.  The search for the best rows of a head (head.c) reads the planes
 * directly.
 */
#include "base/compiler.h"
#include "model/acts.h"
#include "model/formats/formats.h"
#include "model/head.h"
#include "model/workspace_size.h"

static void mul(const struct tn_mul *m)
{
    const struct tn_sums sums = tn_sums_or_dst(m);
    const struct tn_kernels *k = m->worker->kernels;
    const struct tn_bit_planes *planes = &m->w->planes;
    const uint32_t cols = m->w->cols;
    int8_t *unpacked = m->worker->scratch->unpacked;
    for (uint32_t i = 0; i < m->n_rows; i += TN_HEAD_UNPACK_ROWS) {
        const uint32_t row = m->row + i, n = TN_MIN(TN_HEAD_UNPACK_ROWS, m->n_rows - i);
        for (uint32_t j = 0; j < n; j++)
            k->unpack_planes(unpacked + (size_t)j * cols, planes, row + j);
        k->gemv_q8_f32(sums.y + i, sums.stride, unpacked, planes->scales + row, n, cols, m->x->f32,
                       m->x->f32_stride, m->x->n);
    }
    tn_sums_finish(&sums, m);
}

static void unpack_row(float *dst, const struct tn_matrix *w, uint32_t row,
                       const struct tn_worker *worker)
{
    int8_t *q = worker->scratch->unpacked;
    worker->kernels->unpack_planes(q, &w->planes, row);
    for (uint32_t i = 0; i < w->cols; i++)
        dst[i] = (float)q[i] * w->planes.scales[row];
}

static size_t row_bytes(uint32_t cols)
{
    return (size_t)TN_HEAD_UNPACK_ROWS * cols;
}

static void bind(struct tn_matrix *w, const struct tern_file_tensor *t)
{
    (void)t;
    w->planes =
        tn_bit_planes_view(w->data, w->scales, w->rows, w->cols, tn_layout_planes(w->layout));
}

#define PLANES(name, id)                                                                           \
    const struct tn_format tn_format_##name = {                                                    \
        .layout = TERN_LAYOUT_##id,                                                                \
        .scale_kinds = 1u << TERN_SCALE_ROW,                                                       \
        .act = TN_ACT_F32,                                                                         \
        .bind = bind,                                                                              \
        .mul_one = mul,                                                                            \
        .mul_panel = mul,                                                                          \
        .unpack_row = unpack_row,                                                                  \
        .is_searchable = true,                                                                     \
        .row_bytes = row_bytes,                                                                    \
    }

PLANES(q8_planes, Q8_PLANES);
PLANES(q6_planes, Q6);
PLANES(q4_planes, Q4);
