/* SPDX-License-Identifier: MIT
 *
 * Addresses inside the layouts T2, R2 and C2, for the kernel files.  Addresses are 64-bit products;
 * they are the only multiplications of a decode kernel (tests/hygiene/check_disasm.py).
 */
#ifndef TN_TERNARY_LAYOUT_H
#define TN_TERNARY_LAYOUT_H

#include "base/bits.h"
#include "kern/kern.h"

/* A run of T2: 64 rows x 128 columns, 32 groups of 64 bytes. */
#define T2_RUN_GROUPS (TERN_T2_COL_ALIGN / 4)
#define T2_RUN_BYTES (T2_RUN_GROUPS * 64)

/* Runs side by side in a row of T2. */
static inline uint32_t t2_runs(const struct tn_ternary *w)
{
    return tn_div_ceil_u32(w->cols, TERN_T2_COL_ALIGN);
}

/* Tiles of 64 rows in the band that begins at a row: 4, in the last band 1 to 4. */
static inline uint32_t t2_band_tiles(const struct tn_ternary *w, uint32_t band_row)
{
    return tn_div_ceil_u32(TN_MIN(w->rows - band_row, TERN_T2_BAND_ROWS), TERN_T2_TILE_ROWS);
}

/* The run of a tile; row is a multiple of 64.  The next run of the same tile is
 * t2_band_tiles(w, row / 256 * 256) runs further. */
static inline const uint8_t *t2_run(const struct tn_ternary *w, uint32_t row, uint32_t i_run)
{
    const uint32_t band_row = row / TERN_T2_BAND_ROWS * TERN_T2_BAND_ROWS;
    const size_t before = (size_t)band_row / TERN_T2_TILE_ROWS * t2_runs(w) +
                          (size_t)i_run * t2_band_tiles(w, band_row);
    return w->data + (before + (row - band_row) / TERN_T2_TILE_ROWS) * T2_RUN_BYTES;
}

/* 64-byte blocks of 256 columns in a row of R2. */
static inline uint32_t r2_blocks(const struct tn_ternary *w)
{
    return tn_div_ceil_u32(w->cols, TERN_R2_COL_ALIGN);
}

/* Bytes of a column of C2. */
static inline size_t c2_col_bytes(const struct tn_ternary *w)
{
    return (size_t)tn_div_ceil_u32(w->rows, TERN_C2_ROW_ALIGN) * 64;
}

/* Columns [i, i + n) of a list of n_cols > 0 and their inputs; those behind the end are column
 * cols[0] with input 0. `data` is where the wanted rows of column 0 begin. */
static inline void c2_take_columns(const uint8_t **col, int8_t *x, uint32_t n, const uint8_t *data,
                                   size_t col_bytes, const uint32_t *cols, const int8_t *inputs,
                                   uint32_t i, uint32_t n_cols)
{
    for (uint32_t k = 0; k < n; k++, i++) {
        size_t offset = cols[i < n_cols ? i : 0] * col_bytes;
        __asm__("" : "+r"(offset)); /* one by one: no vector multiplication here either */
        col[k] = data + offset;
        x[k] = i < n_cols ? inputs[i] : 0;
    }
}

#endif
