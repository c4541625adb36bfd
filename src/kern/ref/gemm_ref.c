/* SPDX-License-Identifier: MIT
 *
 * Ternary matrix times many int8 vectors in portable C: the specification of gemm_* for the layouts
 * T2, R2 and C2 of tern/matrix_layouts.h.  Each row is unpacked to int8 once and multiplied by
 * every token.
 */
#include "kern/ternary_layout.h"

/* weights[i] = W[row][col + i] for i < n; col is a multiple of 256. */
typedef void unpack_fn(int8_t *weights, const struct tn_ternary *w, uint32_t row, uint32_t col,
                       uint32_t n);

static void unpack_t2(int8_t *weights, const struct tn_ternary *w, uint32_t row, uint32_t col,
                      uint32_t n)
{
    const uint32_t tile_row = row % TERN_T2_TILE_ROWS;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t c = col + i;
        const uint8_t *run = t2_run(w, row - tile_row, c / TERN_T2_COL_ALIGN);
        uint32_t group = c % TERN_T2_COL_ALIGN / 4;
        weights[i] = (int8_t)((run[group * 64 + tile_row] >> c % 4 * 2 & 3) - 1);
    }
}

static void unpack_r2(int8_t *weights, const struct tn_ternary *w, uint32_t row, uint32_t col,
                      uint32_t n)
{
    const uint32_t n_blocks = r2_blocks(w);
    const uint8_t *block = w->data + ((size_t)row * n_blocks + col / 256) * 64;
    for (uint32_t i = 0; i < n; i++)
        weights[i] = (int8_t)((block[i / 256 * 64 + i % 64] >> i / 64 % 4 * 2 & 3) - 1);
}

static void unpack_c2(int8_t *weights, const struct tn_ternary *w, uint32_t row, uint32_t col,
                      uint32_t n)
{
    const size_t col_bytes = c2_col_bytes(w);
    const uint8_t *byte = w->data + col * col_bytes + row / 256 * 64 + row % 64;
    for (uint32_t i = 0; i < n; i++)
        weights[i] = (int8_t)((byte[i * col_bytes] >> row / 64 % 4 * 2 & 3) - 1);
}

static void gemm_rows(int32_t *dst, size_t dst_stride, const struct tn_ternary *w,
                      uint32_t row_begin, uint32_t row_end, const int8_t *x, size_t x_stride,
                      uint32_t n_tokens, int8_t *weights, unpack_fn *unpack)
{
    row_end = TN_MIN(row_end, w->rows);
    for (uint32_t r = row_begin; r < row_end; r++)
        for (uint32_t col = 0; col < w->cols; col += TN_GEMM_SCRATCH_BYTES) {
            const uint32_t n = TN_MIN(w->cols - col, TN_GEMM_SCRATCH_BYTES);
            unpack(weights, w, r, col, n);
            for (uint32_t t = 0; t < n_tokens; t++) {
                int32_t sum = 0;
                for (uint32_t i = 0; i < n; i++)
                    sum += weights[i] * x[t * x_stride + col + i];
                int32_t *out = dst + t * dst_stride + (r - row_begin);
                *out = col ? *out + sum : sum;
            }
        }
}

void tn_gemm_t2_i8_ref(int32_t *dst, size_t dst_stride, const struct tn_ternary *w,
                       uint32_t row_begin, uint32_t row_end, const int8_t *x, size_t x_stride,
                       const int32_t *x_sum, uint32_t n_tokens, void *scratch)
{
    (void)x_sum;
    gemm_rows(dst, dst_stride, w, row_begin, row_end, x, x_stride, n_tokens, scratch, unpack_t2);
}

void tn_gemm_r2_i8_ref(int32_t *dst, size_t dst_stride, const struct tn_ternary *w,
                       uint32_t row_begin, uint32_t row_end, const int8_t *x, size_t x_stride,
                       const int32_t *x_sum, uint32_t n_tokens, void *scratch)
{
    (void)x_sum;
    gemm_rows(dst, dst_stride, w, row_begin, row_end, x, x_stride, n_tokens, scratch, unpack_r2);
}

void tn_gemm_c2_i8_ref(int32_t *dst, size_t dst_stride, const struct tn_ternary *w,
                       uint32_t row_begin, uint32_t row_end, const int8_t *x, size_t x_stride,
                       const int32_t *x_sum, uint32_t n_tokens, void *scratch)
{
    (void)x_sum;
    gemm_rows(dst, dst_stride, w, row_begin, row_end, x, x_stride, n_tokens, scratch, unpack_c2);
}

int32_t tn_sum_i8_ref(const int8_t *x, uint32_t n)
{
    int32_t sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += x[i];
    return sum;
}
