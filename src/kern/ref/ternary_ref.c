/* SPDX-License-Identifier: MIT
 *
 * Ternary decode kernels in portable C: the specification of gemv_* for the layouts T2, R2 and C2
 * of tern/matrix_layouts.h.  A weight is code - 1; every sum is exact in int32.  Weights add,
 * subtract or skip; nothing is multiplied.
 */
#include <string.h>

#include "kern/tiles.h"

/* (code - 1) * x without a multiplication. */
static inline int32_t signed_by_code(uint32_t code, int32_t x)
{
    return code == 2 ? x : code == 0 ? -x : 0;
}

/* ---- T2: bands of tiles of 64 rows; a byte holds 4 consecutive columns of one row ---- */

/* The table of this level is a copy of x. */
void tn_lut_t2_ref(void *lut, const int8_t *x, uint32_t cols)
{
    memcpy(lut, x, tn_kern_pad(cols));
}

static void t2_add_run(int32_t *sum, const uint8_t *group, const int8_t *x)
{
    for (uint32_t g = 0; g < T2_RUN_GROUPS; g++, group += 64, x += 4)
        for (uint32_t i = 0; i < TERN_T2_TILE_ROWS; i++)
            sum[i] += signed_by_code(group[i] & 3u, x[0]) +
                      signed_by_code(group[i] >> 2 & 3u, x[1]) +
                      signed_by_code(group[i] >> 4 & 3u, x[2]) +
                      signed_by_code(group[i] >> 6, x[3]);
}

void tn_gemv_t2_i8_ref(int32_t *dst, const struct tn_ternary *w, uint32_t row_begin,
                       uint32_t row_end, const void *lut)
{
    _Alignas(64) uint8_t unpacked[T2_RUN_BYTES];
    const uint32_t n_runs = t2_runs(w);
    memset(dst, 0, (row_end - row_begin) * sizeof *dst);
    for (uint32_t row = row_begin; row < row_end; row += TERN_T2_TILE_ROWS)
        for (uint32_t i = 0; i < n_runs; i++)
            t2_add_run(dst + (row - row_begin), unpacked_run(w, row, i, unpacked),
                       (const int8_t *)lut + (size_t)i * TERN_T2_COL_ALIGN);
}

/* ---- R2: rows of 64-byte blocks; byte j holds columns j, j + 64, j + 128, j + 192 ---- */

/* The preparation of this level is a copy of x. */
void tn_prep_r2_ref(void *prep, const int8_t *x, uint32_t cols)
{
    memcpy(prep, x, tn_kern_pad(cols));
}

void tn_gemv_r2_i8_ref(int32_t *dst, const struct tn_ternary *w, const uint32_t *rows,
                       uint32_t n_rows, const void *prep)
{
    const uint32_t n_blocks = r2_blocks(w);
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
    const size_t col_bytes = c2_col_bytes(w);
    memset(dst, 0, (row_end - row_begin) * sizeof *dst);
    for (uint32_t i = 0; i < n_cols; i++) {
        const uint8_t *block = w->data + cols[i] * col_bytes + row_begin / 4;
        const int32_t input = x[i];
        for (uint32_t r = 0; r < row_end - row_begin; r += 256, block += 64)
            for (uint32_t j = 0; j < 64; j++) {
                dst[r + j] += signed_by_code(block[j] & 3u, input);
                dst[r + j + 64] += signed_by_code(block[j] >> 2 & 3u, input);
                dst[r + j + 128] += signed_by_code(block[j] >> 4 & 3u, input);
                dst[r + j + 192] += signed_by_code(block[j] >> 6, input);
            }
    }
}
