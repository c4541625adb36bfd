/* SPDX-License-Identifier: MIT
 *
 * Products of matrices in blocks in portable C: the specification of gemv_blocks_* and
 * gemm_blocks_* (kern.h), one weight at a time.
 */
#include "kern/blocks_x.h"

#include <string.h>

/* (float)S * D + M * (float)-A for the columns of one scale, of row `row` from column col on; x is
 * the input from the first column of its span on. */
static float part_sum(const enum blocks_form form, const struct tn_blocks *w, uint32_t row,
                      uint32_t col, const struct blocks_x *x)
{
    const struct tn_block_shape s = tn_block_shape(w->layout);
    float scale, minimum;
    int32_t code[TN_CELL_COLS], sum = 0, minus_x = 0;
    tn_blocks_codes(code, w, row, col, s.sub);
    for (uint32_t c = col % TN_SPAN_COLS, i = 0; i < s.sub; i++) {
        const int32_t v = form == FORM_8 ? x->digit[0][c + i]
                                         : x->digit[0][c + i] * 256 + x->digit[1][c + i];
        sum += code[i] * v;
        minus_x -= v;
    }
    tn_blocks_scale(&scale, &minimum, w, row, col);
    const float t = (float)sum * scale;
    return s.has_min ? t + minimum * (float)minus_x : t;
}

static void gemv(const enum blocks_form form, float *dst, const struct tn_blocks *w,
                 uint32_t row_begin, uint32_t row_end, const void *memory)
{
    const uint32_t sub = tn_block_shape(w->layout).sub;
    memset(dst, 0, (row_end - row_begin) * sizeof *dst);
    for (uint32_t row = row_begin; row < row_end; row++)
        for (uint32_t col = 0; col < w->cols; col += sub) {
            const struct blocks_x x =
                blocks_x_of(form, memory, w->cols, col / TN_SPAN_COLS * TN_SPAN_COLS);
            dst[row - row_begin] +=
                part_sum(form, w, row, col, &x) *
                blocks_x_factor(form, &x, col % TN_SPAN_COLS / TN_CELL_COLS);
        }
}

static void gemm(const enum blocks_form form, float *dst, size_t dst_stride,
                 const struct tn_blocks *w, uint32_t row_begin, uint32_t row_end, const void *x,
                 uint32_t n_tokens)
{
    const uint32_t padded = (w->rows + TN_TILE_ROWS - 1) / TN_TILE_ROWS * TN_TILE_ROWS;
    const uint8_t *first = x;
    for (uint32_t t = 0; t < n_tokens; t++)
        gemv(form, dst + t * dst_stride, w, row_begin, TN_MIN(row_end, padded),
             first + t * blocks_x_bytes(form, w->cols));
}

void tn_gemv_blocks_x8_ref(float *dst, const struct tn_blocks *w, uint32_t row_begin,
                           uint32_t row_end, const void *x)
{
    gemv(FORM_8, dst, w, row_begin, row_end, x);
}

void tn_gemv_blocks_x16_ref(float *dst, const struct tn_blocks *w, uint32_t row_begin,
                            uint32_t row_end, const void *x)
{
    gemv(FORM_16, dst, w, row_begin, row_end, x);
}

void tn_gemm_blocks_x8_ref(float *dst, size_t dst_stride, const struct tn_blocks *w,
                           uint32_t row_begin, uint32_t row_end, const void *x, uint32_t n_tokens,
                           void *scratch)
{
    (void)scratch;
    gemm(FORM_8, dst, dst_stride, w, row_begin, row_end, x, n_tokens);
}

void tn_gemm_blocks_x16_ref(float *dst, size_t dst_stride, const struct tn_blocks *w,
                            uint32_t row_begin, uint32_t row_end, const void *x, uint32_t n_tokens,
                            void *scratch)
{
    (void)scratch;
    gemm(FORM_16, dst, dst_stride, w, row_begin, row_end, x, n_tokens);
}

/* ---- inputs in f32 ---- */

static float cell_sum_f32(const struct tn_blocks *w, uint32_t row, uint32_t col, const float *x)
{
    const uint32_t sub = tn_block_shape(w->layout).sub;
    float sum = 0.0f, scale = 0.0f, minimum = 0.0f;
    int32_t code[TN_CELL_COLS];
    tn_blocks_codes(code, w, row, col, TN_CELL_COLS);
    for (uint32_t i = 0; i < TN_CELL_COLS; i++) {
        if (i % sub == 0)
            tn_blocks_scale(&scale, &minimum, w, row, col + i);
        sum += (scale * (float)code[i] - minimum) * x[col + i];
    }
    return sum;
}

void tn_gemv_blocks_f32_ref(float *dst, const struct tn_blocks *w, uint32_t row_begin,
                            uint32_t row_end, const float *x)
{
    for (uint32_t row = row_begin; row < row_end; row++) {
        float y = 0.0f;
        for (uint32_t col = 0; col < w->cols; col += TN_CELL_COLS)
            y += cell_sum_f32(w, row, col, x);
        dst[row - row_begin] = y;
    }
}
