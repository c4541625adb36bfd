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

static void mul(float *dst, size_t dst_stride, float add, const struct tn_matrix *w, uint32_t row,
                uint32_t n_rows, const struct tn_acts *x, const struct tn_worker *worker)
{
    const struct tn_product_rows y = tn_product_begin(dst, dst_stride, add, worker);
    const struct tn_kernels *k = worker->kernels;
    int8_t *unpacked = worker->scratch->unpacked;
    for (uint32_t i = 0; i < n_rows; i += TN_HEAD_UNPACK_ROWS) {
        const uint32_t n = TN_MIN(TN_HEAD_UNPACK_ROWS, n_rows - i);
        for (uint32_t j = 0; j < n; j++)
            k->unpack_planes(unpacked + (size_t)j * w->cols, &w->planes, row + i + j);
        k->gemv_q8_f32(y.y + i, y.stride, unpacked, w->planes.scales + row + i, n, w->cols, x->f32,
                       x->f32_stride, x->n);
    }
    tn_product_end(&y, dst, dst_stride, add, n_rows, x->n, worker);
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
