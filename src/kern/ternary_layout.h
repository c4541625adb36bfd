/* SPDX-License-Identifier: MIT
 *
 * Offsets inside the layouts T2, R2 and C2, for the kernel files.  They are 64-bit products, the
 * only multiplications of a decode kernel (tests/hygiene/check_disasm.py).
 */
#ifndef TN_TERNARY_LAYOUT_H
#define TN_TERNARY_LAYOUT_H

#include "base/bits.h"
#include "kern/kern.h"
#include "kern/prefetch.h"

/* A run of T2: 64 rows x 128 columns, 32 groups of 64 bytes. */
#define T2_RUN_GROUPS (TERN_T2_COL_ALIGN / 4)
#define T2_RUN_BYTES (T2_RUN_GROUPS * 64)

/* Runs per row of T2. */
static inline uint32_t t2_runs(const struct tn_ternary *w)
{
    return tn_div_ceil_u32(w->cols, TERN_T2_COL_ALIGN);
}

/* Tiles of 64 rows in the band that begins at band_row: 4, in the last band 1 to 4. */
static inline uint32_t t2_band_tiles(const struct tn_ternary *w, uint32_t band_row)
{
    return tn_div_ceil_u32(TN_MIN(w->rows - band_row, TERN_T2_BAND_ROWS), TERN_T2_TILE_ROWS);
}

/* The first run of a tile; row is a multiple of 64.  The next run of the same tile follows
 * t2_band_tiles(w, row / 256 * 256) runs later. */
static inline const uint8_t *t2_run(const struct tn_ternary *w, uint32_t row, uint32_t i_run)
{
    const uint32_t band_row = row / TERN_T2_BAND_ROWS * TERN_T2_BAND_ROWS;
    const size_t before = (size_t)band_row / TERN_T2_TILE_ROWS * t2_runs(w) +
                          (size_t)i_run * t2_band_tiles(w, band_row);
    return w->data + (before + (row - band_row) / TERN_T2_TILE_ROWS) * T2_RUN_BYTES;
}

/* 64-byte blocks of 256 columns per row of R2. */
static inline uint32_t r2_blocks(const struct tn_ternary *w)
{
    return tn_div_ceil_u32(w->cols, TERN_R2_COL_ALIGN);
}

/* Row i of a list; past its end, the last row. */
static inline const uint8_t *r2_row(const struct tn_ternary *w, const uint32_t *rows,
                                    uint32_t n_rows, uint32_t i)
{
    return w->data + (size_t)rows[TN_MIN(i, n_rows - 1)] * r2_blocks(w) * 64;
}

/* How many rows make n_bytes, at least 1. */
static inline uint32_t r2_rows_of_bytes(const struct tn_ternary *w, uint32_t n_bytes)
{
    return TN_MAX(n_bytes / (r2_blocks(w) * 64), 1u);
}

/* gemv_r2_i8 for the levels that process one row at a time; near and far are the rows to prefetch
 * meanwhile (prefetch.h), counted in listed rows. */
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

/* Bytes per column of C2. */
static inline size_t c2_col_bytes(const struct tn_ternary *w)
{
    return (size_t)tn_div_ceil_u32(w->rows, TERN_C2_ROW_ALIGN) * 64;
}

/* Columns [i, i + n) of a list of n_cols > 0 and their inputs; past the end, column cols[0] with
 * input 0.  `data` points at the first wanted row of column 0. */
static inline void c2_take_columns(const uint8_t **col, int8_t *x, uint32_t n, const uint8_t *data,
                                   size_t col_bytes, const uint32_t *cols, const int8_t *inputs,
                                   uint32_t i, uint32_t n_cols)
{
    for (uint32_t k = 0; k < n; k++, i++) {
        size_t offset = cols[i < n_cols ? i : 0] * col_bytes;
        __asm__("" : "+r"(offset)); /* scalar: no vector multiplication for addresses either */
        col[k] = data + offset;
        x[k] = i < n_cols ? inputs[i] : 0;
    }
}

#define C2_MAX_BATCH 16u

/* A list of columns of C2 and their inputs; data points at the first wanted row of column 0. */
struct c2_list {
    const uint8_t *data;
    size_t col_bytes;
    const uint32_t *cols;
    const int8_t *x;
    uint32_t n_cols;
};

/* The columns that a kernel adds together.  Lines of the next C2_MAX_AHEAD batches may be
 * prefetched meanwhile; the distances in prefetch.h are indices into an array of C2_BATCHES. */
#define C2_MAX_AHEAD 3u
#define C2_BATCHES (C2_MAX_AHEAD + 1)
struct c2_batch {
    const uint8_t *col[C2_MAX_BATCH];
    int8_t x[C2_MAX_BATCH];
};

/* Takes n columns of the list from index i on; past its end, the first column with input 0. */
static inline void c2_fill_batch(struct c2_batch *batch, const struct c2_list *list, uint32_t n,
                                 uint32_t i)
{
    if (list->n_cols > 0)
        c2_take_columns(batch->col, batch->x, n, list->data, list->col_bytes, list->cols, list->x,
                        i, list->n_cols);
}

/* Advances past the batch that began at index i. */
static inline void c2_next_batches(struct c2_batch batches[C2_BATCHES],
                                   const struct c2_list *list, uint32_t n, uint32_t i)
{
    _Static_assert(C2_MAX_AHEAD == 3, "one assignment each"); /* clang calls memmove for a loop */
    batches[0] = batches[1];
    batches[1] = batches[2];
    batches[2] = batches[3];
    c2_fill_batch(&batches[C2_MAX_AHEAD], list, n, i + C2_BATCHES * n);
}

/* Takes the first batches of n columns and requests the lines that c2_request does not reach;
 * n_bytes: of a column. */
static inline void c2_first_batches(struct c2_batch batches[C2_BATCHES],
                                    const struct c2_list *list, uint32_t n, uint32_t n_bytes)
{
    const struct tn_prefetch ahead = TN_PREFETCH_OF(C2);
    for (uint32_t k = 0; k < C2_BATCHES; k++)
        c2_fill_batch(&batches[k], list, n, k * n);
    for (uint32_t k = 0; k < ahead.l2 && list->n_cols > 0; k++)
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t offset = 0; offset < n_bytes; offset += 64)
                tn_request_l2(batches[k].col[i] + offset, ahead);
}

/* A line of a batch. */
struct c2_line {
    uint32_t col, offset;
};

/* Requests a line of each of two later batches, one into either cache. */
static TN_ALWAYS_INLINE void c2_request(const struct c2_batch batches[C2_BATCHES],
                                        struct c2_line l2, struct c2_line l1)
{
    const struct tn_prefetch ahead = TN_PREFETCH_OF(C2);
    tn_request_l2(batches[ahead.l2].col[l2.col] + l2.offset, ahead);
    tn_request_l1(batches[ahead.l1].col[l1.col] + l1.offset, ahead);
}

#endif
