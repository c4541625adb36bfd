/* SPDX-License-Identifier: MIT
 *
 * Ternary products in plain C: the specification of gemv_* and gemm_* for the layouts T2, R2 and
 * C2 of tern/model_format.h.  A weight is code - 1; every sum is exact in int32.
 *
 * The gemv kernels add, subtract or skip; nothing is multiplied.
 */
#include <string.h>

#include "base/bits.h"
#include "kern/kern.h"

/* (code - 1) * x without a multiplication. */
static inline int32_t signed_by_code(uint32_t code, int32_t x)
{
    return code == 2 ? x : code == 0 ? -x : 0;
}

/* ---- T2: tiles of 64 rows; a byte holds 4 consecutive columns of one row ---- */

static uint32_t t2_groups(const struct tn_ternary *w)
{
    return tn_div_ceil_u32(w->cols, TERN_T2_COL_ALIGN) * (TERN_T2_COL_ALIGN / 4);
}

/* The table of this level is x itself. */
void tn_lut_t2_ref(void *lut, const int8_t *x, uint32_t cols)
{
    memcpy(lut, x, tn_kern_pad(cols));
}

void tn_gemv_t2_i8_ref(int32_t *dst, const struct tn_ternary *w, uint32_t row_begin,
                       uint32_t row_end, const void *lut)
{
    const uint32_t n_groups = t2_groups(w);
    const uint8_t *group = w->data + (size_t)row_begin * n_groups;
    for (uint32_t tile = row_begin; tile < row_end; tile += TERN_T2_TILE_ROWS) {
        int32_t sum[TERN_T2_TILE_ROWS] = {0};
        const int8_t *x = lut;
        for (uint32_t g = 0; g < n_groups; g++, group += 64, x += 4)
            for (uint32_t i = 0; i < TERN_T2_TILE_ROWS; i++)
                sum[i] += signed_by_code(group[i] & 3u, x[0]) +
                          signed_by_code(group[i] >> 2 & 3u, x[1]) +
                          signed_by_code(group[i] >> 4 & 3u, x[2]) +
                          signed_by_code(group[i] >> 6, x[3]);
        memcpy(dst + (tile - row_begin), sum, sizeof sum);
    }
}

/* ---- R2: rows of 64-byte blocks; byte j holds columns j, j + 64, j + 128, j + 192 ---- */

/* The preparation of this level is x itself. */
void tn_prep_r2_ref(void *prep, const int8_t *x, uint32_t cols)
{
    memcpy(prep, x, tn_kern_pad(cols));
}

void tn_gemv_r2_i8_ref(int32_t *dst, const struct tn_ternary *w, const uint32_t *rows,
                       uint32_t n_rows, const void *prep)
{
    const uint32_t n_blocks = tn_div_ceil_u32(w->cols, TERN_R2_COL_ALIGN);
    for (uint32_t i = 0; i < n_rows; i++) {
        const uint8_t *block = w->data + (size_t)rows[i] * n_blocks * 64;
        const int8_t *x = prep;
        int32_t sum = 0;
        for (uint32_t b = 0; b < n_blocks; b++, block += 64, x += 256)
            for (uint32_t j = 0; j < 64; j++)
                sum += signed_by_code(block[j] & 3u, x[j]) +
                       signed_by_code(block[j] >> 2 & 3u, x[j + 64]) +
                       signed_by_code(block[j] >> 4 & 3u, x[j + 128]) +
                       signed_by_code(block[j] >> 6, x[j + 192]);
        dst[i] = sum;
    }
}

/* ---- C2: columns of 64-byte blocks; byte j holds rows j, j + 64, j + 128, j + 192 ---- */

void tn_gemv_c2_i8_ref(int32_t *dst, const struct tn_ternary *w, uint32_t row_begin,
                       uint32_t row_end, const uint32_t *cols, const int8_t *x, uint32_t n_cols)
{
    const size_t col_bytes = (size_t)tn_div_ceil_u32(w->rows, TERN_C2_ROW_ALIGN) * 64;
    memset(dst, 0, (row_end - row_begin) * sizeof *dst);
    for (uint32_t i = 0; i < n_cols; i++) {
        const uint8_t *block = w->data + cols[i] * col_bytes + row_begin / 4;
        for (uint32_t r = 0; r < row_end - row_begin; r += 256, block += 64)
            for (uint32_t j = 0; j < 64; j++) {
                dst[r + j] += signed_by_code(block[j] & 3u, x[i]);
                dst[r + j + 64] += signed_by_code(block[j] >> 2 & 3u, x[i]);
                dst[r + j + 128] += signed_by_code(block[j] >> 4 & 3u, x[i]);
                dst[r + j + 192] += signed_by_code(block[j] >> 6, x[i]);
            }
    }
}

/* ---- gemm: one row at a time, unpacked to int8, times every token ---- */

/* weights[i] = W[row][col + i] for i < n; col is a multiple of 256. */
typedef void unpack_fn(int8_t *weights, const struct tn_ternary *w, uint32_t row, uint32_t col,
                       uint32_t n);

static void unpack_t2(int8_t *weights, const struct tn_ternary *w, uint32_t row, uint32_t col,
                      uint32_t n)
{
    const uint8_t *tile = w->data + (size_t)(row / 64 * 64) * t2_groups(w) + row % 64;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t c = col + i;
        weights[i] = (int8_t)((tile[(size_t)(c / 4) * 64] >> c % 4 * 2 & 3) - 1);
    }
}

static void unpack_r2(int8_t *weights, const struct tn_ternary *w, uint32_t row, uint32_t col,
                      uint32_t n)
{
    const uint32_t n_blocks = tn_div_ceil_u32(w->cols, TERN_R2_COL_ALIGN);
    const uint8_t *block = w->data + ((size_t)row * n_blocks + col / 256) * 64;
    for (uint32_t i = 0; i < n; i++)
        weights[i] = (int8_t)((block[i / 256 * 64 + i % 64] >> i / 64 % 4 * 2 & 3) - 1);
}

static void unpack_c2(int8_t *weights, const struct tn_ternary *w, uint32_t row, uint32_t col,
                      uint32_t n)
{
    const size_t col_bytes = (size_t)tn_div_ceil_u32(w->rows, TERN_C2_ROW_ALIGN) * 64;
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
                       uint32_t n_tokens, void *scratch)
{
    gemm_rows(dst, dst_stride, w, row_begin, row_end, x, x_stride, n_tokens, scratch, unpack_t2);
}

void tn_gemm_r2_i8_ref(int32_t *dst, size_t dst_stride, const struct tn_ternary *w,
                       uint32_t row_begin, uint32_t row_end, const int8_t *x, size_t x_stride,
                       uint32_t n_tokens, void *scratch)
{
    gemm_rows(dst, dst_stride, w, row_begin, row_end, x, x_stride, n_tokens, scratch, unpack_r2);
}

void tn_gemm_c2_i8_ref(int32_t *dst, size_t dst_stride, const struct tn_ternary *w,
                       uint32_t row_begin, uint32_t row_end, const int8_t *x, size_t x_stride,
                       uint32_t n_tokens, void *scratch)
{
    gemm_rows(dst, dst_stride, w, row_begin, row_end, x, x_stride, n_tokens, scratch, unpack_c2);
}
