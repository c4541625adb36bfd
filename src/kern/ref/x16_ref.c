/* SPDX-License-Identifier: MIT
 *
 * Ternary products of inputs in 16 bits, 8 bits and f32 with scales per group, in portable C: the
 * specification of gemv_t2_x16, gemv_t2_x8, gemv_t2_f32 and their gemm (kern.h).
 */
#include "kern/x8.h"

#include "base/half.h"
#include "kern/tiles.h"

/* -1, 0 or 1: the weight of row i of a run, at a column of the matrix. */
static int32_t weight(const uint8_t *run, uint32_t i, uint32_t col)
{
    return (run[col % TERN_T2_COL_ALIGN / 4 * 64 + i] >> col % 4 * 2 & 3) - 1;
}

/* The scale of a row at a column. */
static float scale_at(const struct tn_scaled_ternary *m, uint32_t row, uint32_t col)
{
    const size_t at = tn_scale_index(m->w.rows, m->w.cols, m->group, row, col / m->group);
    return m->is_f16 ? tn_f16_to_f32(((const uint16_t *)m->scales)[at])
                     : ((const float *)m->scales)[at];
}

/* What columns [col, end) of row i of a run add to y; they share a scale. */
typedef float part_fn(const uint8_t *run, uint32_t i, float scale, uint32_t cols, const void *x,
                      uint32_t col, uint32_t end);

static void one_tile(float *y, const struct tn_scaled_ternary *m, uint32_t row, uint32_t n_rows,
                     const void *x, part_fn *part)
{
    _Alignas(64) uint8_t unpacked[T2_RUN_BYTES];
    const uint32_t cols = m->w.cols, n_cols = tn_x16_run(m);
    memset(y, 0, n_rows * sizeof *y);
    for (uint32_t col = 0; col < cols; col += n_cols) {
        const uint8_t *run = unpacked_run(&m->w, row, col / TERN_T2_COL_ALIGN, unpacked);
        for (uint32_t i = 0; i < n_rows; i++)
            y[i] += part(run, i, scale_at(m, row + i, col), cols, x, col,
                         TN_MIN(col + n_cols, cols));
    }
}

static void all_rows(float *dst, size_t dst_stride, const struct tn_scaled_ternary *m,
                     uint32_t row_begin, uint32_t row_end, const uint8_t *x, size_t x_bytes,
                     uint32_t n_tokens, part_fn *part)
{
    for (uint32_t t = 0; t < n_tokens; t++, dst += dst_stride, x += x_bytes)
        for (uint32_t row = row_begin; row < row_end; row += TERN_T2_TILE_ROWS)
            one_tile(dst + (row - row_begin), m, row, TN_MIN(row_end - row, TERN_T2_TILE_ROWS), x,
                     part);
}

static float part_x16(const uint8_t *run, uint32_t i, float scale, uint32_t cols, const void *x16,
                      uint32_t col, uint32_t end)
{
    const struct x16 x = x16_of(x16, cols);
    const float factor = x.factors[col / TN_X16_BLOCK];
    int32_t sum = 0;
    for (; col < end; col++)
        sum += weight(run, i, col) * (x.high[col] * 256 + x.low[col]);
    return ((float)sum * scale) * factor;
}

void tn_gemv_t2_x16_ref(float *dst, size_t dst_stride, const struct tn_scaled_ternary *m,
                        uint32_t row_begin, uint32_t row_end, const void *x16, uint32_t n_tokens)
{
    all_rows(dst, dst_stride, m, row_begin, row_end, x16, TN_X16_BYTES(m->w.cols), n_tokens,
             part_x16);
}

void tn_gemm_t2_x16_ref(float *dst, size_t dst_stride, const struct tn_scaled_ternary *m,
                        uint32_t row_begin, uint32_t row_end, const void *x16, uint32_t n_tokens,
                        void *scratch)
{
    (void)scratch;
    tn_gemv_t2_x16_ref(dst, dst_stride, m, row_begin, TN_MIN(row_end, m->w.rows), x16, n_tokens);
}

/* ---- inputs in 8 bits ---- */

static float part_x8(const uint8_t *run, uint32_t i, float scale, uint32_t cols, const void *x8,
                     uint32_t col, uint32_t end)
{
    float y = 0.0f;
    for (; col < end; col += TN_X8_BLOCK) {
        const struct x8 x = x8_of(x8, cols, col);
        int32_t sum = 0;
        for (uint32_t c = 0; c < TN_MIN(TN_X8_BLOCK, end - col); c++)
            sum += weight(run, i, col + c) * x.q[c];
        y += (float)sum * x.factors[0];
    }
    return y * scale;
}

void tn_gemv_t2_x8_ref(float *dst, size_t dst_stride, const struct tn_scaled_ternary *m,
                       uint32_t row_begin, uint32_t row_end, const void *x8, uint32_t n_tokens)
{
    all_rows(dst, dst_stride, m, row_begin, row_end, x8, TN_X8_BYTES(m->w.cols), n_tokens, part_x8);
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
