/* SPDX-License-Identifier: MIT
 *
 * Addresses inside the layouts T2, R2 and C2, for the kernel files.  Addresses are 64-bit products;
 * they are the only multiplications of a decode kernel (tests/hygiene/check_disasm.py).
 */
#ifndef TN_TERNARY_LAYOUT_H
#define TN_TERNARY_LAYOUT_H

#include "base/bits.h"
#include "kern/kern.h"
#include "kern/prefetch.h"

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

/* Row i of a list; behind its end the last row again. */
static inline const uint8_t *r2_row(const struct tn_ternary *w, const uint32_t *rows,
                                    uint32_t n_rows, uint32_t i)
{
    return w->data + (size_t)rows[TN_MIN(i, n_rows - 1)] * r2_blocks(w) * 64;
}

/* Rows that n_bytes are, at least 1. */
static inline uint32_t r2_rows_of_bytes(const struct tn_ternary *w, uint32_t n_bytes)
{
    return TN_MAX(n_bytes / (r2_blocks(w) * 64), 1u);
}

/* gemv_r2_i8 of the levels that take one row after the other; near and far are the rows whose lines
 * are requested meanwhile (prefetch.h), counted in active rows. */
typedef int32_t r2_sum_row_fn(const uint8_t *row, const uint8_t *near, const uint8_t *far,
                              uint32_t n_blocks, const int8_t *x);
static TN_ALWAYS_INLINE void r2_sum_rows(int32_t *dst, const struct tn_ternary *w,
                                         const uint32_t *rows, uint32_t n_rows, const int8_t *x,
                                         r2_sum_row_fn *sum_row)
{
    const uint32_t n_near = r2_rows_of_bytes(w, TN_PREFETCH_OF(R2).l1);
    const uint32_t n_far = r2_rows_of_bytes(w, TN_PREFETCH_OF(R2).l2);
    for (uint32_t i = 0; i < n_rows; i++)
        dst[i] = sum_row(r2_row(w, rows, n_rows, i), r2_row(w, rows, n_rows, i + n_near),
                         r2_row(w, rows, n_rows, i + n_far), r2_blocks(w), x);
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

#define C2_MAX_BATCH 16u

/* A list of columns of C2 and their inputs; data is where the wanted rows of column 0 begin. */
struct c2_list {
    const uint8_t *data;
    size_t col_bytes;
    const uint32_t *cols;
    const int8_t *x;
    uint32_t n_cols;
};

/* Columns that a kernel adds together.  The lines of the two batches after them are requested
 * meanwhile (prefetch.h). */
struct c2_batch {
    const uint8_t *col[C2_MAX_BATCH];
    int8_t x[C2_MAX_BATCH];
};

/* n columns from number i of the list on; behind its end they are the first with input 0. */
static inline void c2_fill_batch(struct c2_batch *batch, const struct c2_list *list, uint32_t n,
                                 uint32_t i)
{
    if (list->n_cols > 0)
        c2_take_columns(batch->col, batch->x, n, list->data, list->col_bytes, list->cols, list->x,
                        i, list->n_cols);
}

static inline void c2_first_batches(struct c2_batch batches[3], const struct c2_list *list,
                                    uint32_t n)
{
    for (uint32_t k = 0; k < 3; k++)
        c2_fill_batch(&batches[k], list, n, k * n);
}

/* After the batch that began with number i. */
static inline void c2_next_batches(struct c2_batch batches[3], const struct c2_list *list,
                                   uint32_t n, uint32_t i)
{
    batches[0] = batches[1];
    batches[1] = batches[2];
    c2_fill_batch(&batches[2], list, n, i + 3 * n);
}

#endif
