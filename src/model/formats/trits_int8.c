/* SPDX-License-Identifier: MIT
 *
 * Ternary matrices with one scale, in T2, R2 and C2: inputs in int8, exact sums in int32, then
 * y = sum * (scale of the weights * scale of the input).  One token takes the multiplication-free
 * gemv kernels for a whole product of T2, listed rows of R2 and listed columns of C2; all else is
 * multiplied, with the same sums.
 */
#include "base/bits.h"
#include "kern/pack.h"
#include "model/acts.h"
#include "model/formats/formats.h"
#include "model/workspace_size.h"

/* Sets dst to, or adds to it, the scaled sums of all tokens. */
static void write_sums(const struct tn_mul *m)
{
    const struct tn_kernels *k = m->worker->kernels;
    for (uint32_t t = 0; t < m->x->n; t++) {
        const int32_t *sum = m->worker->scratch->sum + (size_t)t * TN_SUM_STRIDE;
        const float scale = m->w->scale * m->x->i8_scale[t];
        float *dst = m->dst + t * m->dst_stride;
        if (m->add != 0)
            k->add_i32_f32(dst, sum, m->n_rows, m->add * scale);
        else
            k->scale_i32_f32(dst, sum, m->n_rows, scale);
    }
}

static void multiply_tokens(const struct tn_mul *m, tn_gemm_i8_fn *gemm)
{
    const struct tn_acts *x = m->x;
    const struct tn_thread_scratch *s = m->worker->scratch;
    const uint32_t end = m->row + (uint32_t)tn_align_up(m->n_rows, TN_GEMM_ROW_ALIGN);
    gemm(s->sum, TN_SUM_STRIDE, &m->w->t.w, m->row, end, x->i8, x->i8_stride, x->i8_sum, x->n,
         s->kernel);
    write_sums(m);
}

/* Makes the look-up tables of the rounded input, once for each thread: that takes 2 us, which is
 * less than fetching 100 KB of them from another core's cache. */
static void prepare_lut(const struct tn_acts *x, const struct tn_worker *worker)
{
    struct tn_thread_scratch *s = worker->scratch;
    if (*s->lut_input == x->number)
        return;
    worker->kernels->lut_t2(s->lut, x->i8, x->cols);
    *s->lut_input = x->number;
}

static void mul_t2_one(const struct tn_mul *m)
{
    const struct tn_thread_scratch *s = m->worker->scratch;
    const uint32_t end = m->row + (uint32_t)tn_align_up(m->n_rows, TERN_T2_TILE_ROWS);
    prepare_lut(m->x, m->worker);
    m->worker->kernels->gemv_t2_i8(s->sum, &m->w->t.w, m->row, end, s->lut);
    write_sums(m);
}

static void mul_t2(const struct tn_mul *m)
{
    multiply_tokens(m, m->worker->kernels->gemm_t2_i8);
}

static void mul_r2(const struct tn_mul *m)
{
    multiply_tokens(m, m->worker->kernels->gemm_r2_i8);
}

static void mul_c2(const struct tn_mul *m)
{
    multiply_tokens(m, m->worker->kernels->gemm_c2_i8);
}

static void mul_rows_r2(float *dst, const struct tn_matrix *w, const uint32_t *rows,
                        uint32_t n_rows, const struct tn_acts *x, const struct tn_worker *worker)
{
    int32_t *sum = worker->scratch->sum;
    worker->kernels->gemv_r2_i8(sum, &w->t.w, rows, n_rows, x->prep);
    worker->kernels->scale_i32_f32(dst, sum, n_rows, w->scale * x->i8_scale[0]);
}

static void mul_rows_few_r2(int32_t *sum, size_t sum_stride, const struct tn_matrix *w,
                            const uint32_t *rows, const uint8_t *takers, uint32_t n_rows,
                            const struct tn_acts *x, const struct tn_worker *worker)
{
    worker->kernels->few_r2_i8(sum, sum_stride, &w->t.w, rows, takers, n_rows, x->i8, x->i8_stride,
                               x->i8_sum);
}

static void mul_cols_c2(int32_t *sum, const struct tn_matrix *w, uint32_t row_begin,
                        uint32_t row_end, const uint32_t *cols, const int8_t *x, uint32_t n_cols,
                        const struct tn_worker *worker)
{
    worker->kernels->gemv_c2_i8(sum, &w->t.w, row_begin, row_end, cols, x, n_cols);
}

static void unpack_row(float *dst, const struct tn_matrix *w, uint32_t row,
                       const struct tn_worker *worker)
{
    int8_t *trits = worker->scratch->unpacked;
    tn_unpack_rows(trits, w->data, w->layout, w->rows, w->cols, row, 1);
    for (uint32_t i = 0; i < w->cols; i++)
        dst[i] = (float)trits[i] * w->scale;
}

size_t tn_t2_lut_bytes(uint32_t cols)
{
    return TN_LUT_BYTES(cols);
}

static size_t row_bytes(uint32_t cols)
{
    return cols;
}

const struct tn_format tn_format_t2_i8 = {
    .layout = TERN_LAYOUT_T2,
    .scale_kinds = 1u << TERN_SCALE_TENSOR,
    .act = TN_ACT_I8,
    .bind = tn_bind_ternary,
    .mul_one = mul_t2_one,
    .mul_panel = mul_t2,
    .unpack_row = unpack_row,
    .lut_bytes = tn_t2_lut_bytes,
    .row_bytes = row_bytes,
    .find_bad = tn_find_code3,
};

const struct tn_format tn_format_r2_i8 = {
    .layout = TERN_LAYOUT_R2,
    .scale_kinds = 1u << TERN_SCALE_TENSOR,
    .act = TN_ACT_I8,
    .bind = tn_bind_ternary,
    .mul_one = mul_r2,
    .mul_panel = mul_r2,
    .mul_rows = mul_rows_r2,
    .mul_rows_few = mul_rows_few_r2,
    .find_bad = tn_find_code3,
};

const struct tn_format tn_format_c2_i8 = {
    .layout = TERN_LAYOUT_C2,
    .scale_kinds = 1u << TERN_SCALE_TENSOR,
    .act = TN_ACT_I8,
    .bind = tn_bind_ternary,
    .mul_one = mul_c2,
    .mul_panel = mul_c2,
    .mul_cols = mul_cols_c2,
    .find_bad = tn_find_code3,
};
