/* SPDX-License-Identifier: MIT
 *
 * The formats of matrices in blocks, as in GGUF files: fifteen layouts with three precisions of
 * the input each.  The default is 8 bits for the layouts where that was measured to cost a trained
 * model less than 0.001 nats per token (bench/input_forms.py), else 16 bits; an engine may request
 * one of these or f32, the reference for both.
 */
#include "kern/blocks.h"
#include "model/acts.h"
#include "model/formats/formats.h"
#include "model/workspace_size.h"

static struct tn_blocks blocks_of(const struct tn_matrix *w)
{
    return (struct tn_blocks){w->data, w->rows, w->cols, w->layout};
}

static void multiply_one(const struct tn_mul *m, tn_gemv_blocks_fn *gemv, const void *x)
{
    const struct tn_sums sums = tn_sums_of_tiles(m);
    const struct tn_blocks w = blocks_of(m->w);
    gemv(sums.y, &w, m->row, tn_mul_end(m, TN_TILE_ROWS), x);
    tn_sums_finish(&sums, m);
}

static void multiply_panel(const struct tn_mul *m, tn_gemm_blocks_fn *gemm, const void *x)
{
    const struct tn_sums sums = tn_sums_of_tiles(m);
    const struct tn_blocks w = blocks_of(m->w);
    gemm(sums.y, sums.stride, &w, m->row, tn_mul_end(m, TN_GEMM_ROW_ALIGN), x, m->x->n,
         m->worker->scratch->kernel);
    tn_sums_finish(&sums, m);
}

static void mul_x16_one(const struct tn_mul *m)
{
    multiply_one(m, m->worker->kernels->gemv_blocks_x16, m->x->x16);
}

static void mul_x16(const struct tn_mul *m)
{
    multiply_panel(m, m->worker->kernels->gemm_blocks_x16, m->x->x16);
}

static void mul_x8_one(const struct tn_mul *m)
{
    multiply_one(m, m->worker->kernels->gemv_blocks_x8, m->x->x8);
}

static void mul_x8(const struct tn_mul *m)
{
    multiply_panel(m, m->worker->kernels->gemm_blocks_x8, m->x->x8);
}

static void mul_f32(const struct tn_mul *m)
{
    const struct tn_sums sums = tn_sums_of_tiles(m);
    const struct tn_blocks w = blocks_of(m->w);
    for (uint32_t t = 0; t < m->x->n; t++)
        m->worker->kernels->gemv_blocks_f32(sums.y + t * sums.stride, &w, m->row,
                                            tn_mul_end(m, TN_TILE_ROWS),
                                            m->x->f32 + t * m->x->f32_stride);
    tn_sums_finish(&sums, m);
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
FORMAT_ROWS(iq2_s, IQ2_S)
FORMAT_ROWS(iq3_xxs, IQ3_XXS)
FORMAT_ROWS(iq3_s, IQ3_S)
