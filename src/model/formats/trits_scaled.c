/* SPDX-License-Identifier: MIT
 *
 * The format of ternary matrices in T2 with a scale per row and group of columns: inputs in 16
 * bits; in 8 bits, coarser and faster; or in f32, the reference for both.
 */
#include "kern/pack.h"
#include "model/acts.h"
#include "model/formats/formats.h"
#include "model/workspace_size.h"

static_assert(TN_X16_FEW <= TN_FEW_TOKENS && TN_X8_FEW <= TN_FEW_TOKENS,
              "gemv takes whole bands of rows");

static uint32_t end_of(const struct tn_mul *m)
{
    return tn_mul_end(m, TERN_T2_TILE_ROWS);
}

/* The products with an input in 8 or 16 bits, x8 or x16. */
#define PRODUCTS(form)                                                                             \
    static void mul_##form##_few(const struct tn_mul *m)                                           \
    {                                                                                              \
        const struct tn_sums sums = tn_sums_of_tiles(m);                                           \
        m->worker->kernels->gemv_t2_##form(sums.y, sums.stride, &m->w->t, m->row, end_of(m),       \
                                           m->x->form, m->x->n);                                   \
        tn_sums_finish(&sums, m);                                                                  \
    }                                                                                              \
    static void mul_##form(const struct tn_mul *m)                                                 \
    {                                                                                              \
        const struct tn_sums sums = tn_sums_of_tiles(m);                                           \
        m->worker->kernels->gemm_t2_##form(sums.y, sums.stride, &m->w->t, m->row, end_of(m),       \
                                           m->x->form, m->x->n, m->worker->scratch->kernel);       \
        tn_sums_finish(&sums, m);                                                                  \
    }
PRODUCTS(x8)
PRODUCTS(x16)

static void mul_f32(const struct tn_mul *m)
{
    const struct tn_sums sums = tn_sums_of_tiles(m);
    for (uint32_t t = 0; t < m->x->n; t++)
        m->worker->kernels->gemv_t2_f32(sums.y + t * sums.stride, &m->w->t, m->row, end_of(m),
                                        m->x->f32 + t * m->x->f32_stride);
    tn_sums_finish(&sums, m);
}

static void unpack_row(float *dst, const struct tn_matrix *w, uint32_t row,
                       const struct tn_worker *worker)
{
    (void)worker;
    tn_unpack_row_f32(dst, &w->t, row);
}

/* What the formats for all precisions of the input share. */
#define T2_SCALED                                                                                  \
    .layout = TERN_LAYOUT_T2,                                                                      \
    .scale_kinds = 1u << TERN_SCALE_COL_GROUP | 1u << TERN_SCALE_COL_GROUP_F16,                    \
    .bind = tn_bind_ternary, .unpack_row = unpack_row, .find_bad = tn_find_code3

static const struct tn_format t2_f32 = {
    T2_SCALED,
    .act = TN_ACT_F32,
    .mul_one = mul_f32,
    .mul_panel = mul_f32,
};

static const struct tn_format t2_x8 = {
    T2_SCALED,
    .act = TN_ACT_X8,
    .mul_one = mul_x8_few,
    .mul_few = mul_x8_few,
    .mul_panel = mul_x8,
    .n_few = TN_X8_FEW,
};

const struct tn_format tn_format_t2_x16 = {
    T2_SCALED,
    .act = TN_ACT_X16,
    .mul_one = mul_x16_few,
    .mul_few = mul_x16_few,
    .mul_panel = mul_x16,
    .n_few = TN_X16_FEW,
    .exact = &t2_f32,
    .coarse = &t2_x8,
};
