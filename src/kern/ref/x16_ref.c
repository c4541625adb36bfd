/* SPDX-License-Identifier: MIT
 *
 * Ternary products of inputs in 16 bits, 8 bits and f32 with scales per group, in portable C: the
 * specification of gemv_t2_x16, gemv_t2_x8, gemv_t2_f32 and their gemm (kern.h).
 */
#include "kern/x8.h"

#include "base/half.h"

/* W[row][col], -1, 0 or 1. */
static int32_t weight(const struct tn_ternary *w, uint32_t row, uint32_t col)
{
    const uint32_t in_tile = row % TERN_T2_TILE_ROWS;
    const uint8_t *run = t2_run(w, row - in_tile, col / TERN_T2_COL_ALIGN);
    return (run[col % TERN_T2_COL_ALIGN / 4 * 64 + in_tile] >> col % 4 * 2 & 3) - 1;
}

/* The scale of a row at a column. */
static float scale_at(const struct tn_scaled_ternary *m, uint32_t row, uint32_t col)
{
    const size_t at = tn_scale_index(m->w.rows, m->w.cols, m->group, row, col / m->group);
    return m->is_f16 ? tn_f16_to_f32(((const uint16_t *)m->scales)[at])
                     : ((const float *)m->scales)[at];
}

/* y of a row times one input. */
typedef float row_fn(const struct tn_scaled_ternary *m, uint32_t row, const void *x);

static void all_rows(float *dst, size_t dst_stride, const struct tn_scaled_ternary *m,
                     uint32_t row_begin, uint32_t row_end, const uint8_t *x, size_t x_bytes,
                     uint32_t n_tokens, row_fn *y)
{
    for (uint32_t t = 0; t < n_tokens; t++, dst += dst_stride, x += x_bytes)
        for (uint32_t r = row_begin; r < row_end; r++)
            dst[r - row_begin] = y(m, r, x);
}

static float row_x16(const struct tn_scaled_ternary *m, uint32_t row, const void *x16)
{
    const struct x16 x = x16_of(x16, m->w.cols);
    const uint32_t run = tn_x16_run(m);
    float y = 0.0f;
    for (uint32_t col = 0; col < m->w.cols; col += run) {
        int32_t sum = 0;
        for (uint32_t c = col; c < TN_MIN(col + run, m->w.cols); c++)
            sum += weight(&m->w, row, c) * (x.high[c] * 256 + x.low[c]);
        y += ((float)sum * scale_at(m, row, col)) * x.factors[col / TN_X16_BLOCK];
    }
    return y;
}

void tn_gemv_t2_x16_ref(float *dst, size_t dst_stride, const struct tn_scaled_ternary *m,
                        uint32_t row_begin, uint32_t row_end, const void *x16, uint32_t n_tokens)
{
    all_rows(dst, dst_stride, m, row_begin, row_end, x16, TN_X16_BYTES(m->w.cols), n_tokens,
             row_x16);
}

void tn_gemm_t2_x16_ref(float *dst, size_t dst_stride, const struct tn_scaled_ternary *m,
                        uint32_t row_begin, uint32_t row_end, const void *x16, uint32_t n_tokens,
                        void *scratch)
{
    (void)scratch;
    tn_gemv_t2_x16_ref(dst, dst_stride, m, row_begin, TN_MIN(row_end, m->w.rows), x16, n_tokens);
}

/* ---- inputs in 8 bits ---- */

/* Columns [col, end), which share a scale. */
static float run_x8(const struct tn_scaled_ternary *m, uint32_t row, const void *x8, uint32_t col,
                    uint32_t end)
{
    float y = 0.0f;
    for (; col < end; col += TN_X8_BLOCK) {
        const struct x8 x = x8_of(x8, m->w.cols, col);
        int32_t sum = 0;
        for (uint32_t c = 0; c < TN_MIN(TN_X8_BLOCK, end - col); c++)
            sum += weight(&m->w, row, col + c) * x.q[c];
        y += (float)sum * x.factors[0];
    }
    return y;
}

static float row_x8(const struct tn_scaled_ternary *m, uint32_t row, const void *x8)
{
    const uint32_t run = tn_x16_run(m);
    float y = 0.0f;
    for (uint32_t col = 0; col < m->w.cols; col += run)
        y += run_x8(m, row, x8, col, TN_MIN(col + run, m->w.cols)) * scale_at(m, row, col);
    return y;
}

void tn_gemv_t2_x8_ref(float *dst, size_t dst_stride, const struct tn_scaled_ternary *m,
                       uint32_t row_begin, uint32_t row_end, const void *x8, uint32_t n_tokens)
{
    all_rows(dst, dst_stride, m, row_begin, row_end, x8, TN_X8_BYTES(m->w.cols), n_tokens, row_x8);
}

void tn_gemm_t2_x8_ref(float *dst, size_t dst_stride, const struct tn_scaled_ternary *m,
                       uint32_t row_begin, uint32_t row_end, const void *x8, uint32_t n_tokens,
                       void *scratch)
{
    (void)scratch;
    tn_gemv_t2_x8_ref(dst, dst_stride, m, row_begin, TN_MIN(row_end, m->w.rows), x8, n_tokens);
}

X16_INPUTS_DEFINE(ref)
X8_INPUTS_DEFINE(ref)
