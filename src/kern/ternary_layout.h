/* SPDX-License-Identifier: MIT
 *
 * Addresses inside the layouts T2, R2 and C2, for the kernel files.  Addresses are 64-bit products;
 * they are the only multiplications of a decode kernel (tests/hygiene/check_disasm.py).
 */
#ifndef TN_TERNARY_LAYOUT_H
#define TN_TERNARY_LAYOUT_H

#include "base/bits.h"
#include "kern/kern.h"

/* Groups of 4 columns in a tile of T2, 64 bytes each. Tile row / 64 begins at byte
 * row * t2_groups(w). */
static inline uint32_t t2_groups(const struct tn_ternary *w)
{
    return tn_div_ceil_u32(w->cols, TERN_T2_COL_ALIGN) * (TERN_T2_COL_ALIGN / 4);
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
