/* SPDX-License-Identifier: MIT
 *
 * gemv_t2_i8 and gemv_c2_i8 for the levels with look-up tables of column pairs: their loops.
 * Private to ternary_{ssse3,avx2,neon}.c, each of which compiles its own copy and defines before
 * the include:
 *
 *   PART_ROWS                rows of a vector of bytes
 *   build_table              the table of a pair, PAIR_BYTES
 *   struct planes            byte sums of a batch, BATCH_PAIRS pairs; zeros when all bytes are
 *   t2_batch                 adds 4 groups to 16-bit sums
 *   add_columns              adds two columns of C2 to byte sums
 *   struct wide, widen       16-bit sums of WIDE_BATCHES batches
 *   flush                    adds these to dst
 */
#ifndef TN_PAIR_TABLES_H
#define TN_PAIR_TABLES_H

#include <string.h>

#define T5_WORD_BYTES PART_ROWS
#include "kern/tiles.h"

#define BATCH_COLS (2 * BATCH_PAIRS)
#define PARTS (64 / PART_ROWS) /* per line of 64 bytes */

/* ---- T2: 64 rows are PARTS parts; a run is RUN_BATCHES batches of 4 groups ---- */

#define RUN_BATCHES (T2_RUN_GROUPS / 4)
#define WIDE_RUNS (WIDE_BATCHES / RUN_BATCHES)

/* The tables of all pairs of columns, in order. */
static TN_ALWAYS_INLINE void lut_t2(uint8_t *lut, const int8_t *x, uint32_t cols)
{
    const uint32_t padded = tn_div_ceil_u32(cols, TERN_T2_COL_ALIGN) * TERN_T2_COL_ALIGN;
    for (uint32_t c = 0; c < padded; c += 2, lut += PAIR_BYTES)
        build_table(lut, x[c], x[c + 1]);
}

/* 128 columns of one part of a tile.  Each part requests its share of the lines ahead. */
static TN_ALWAYS_INLINE void t2_add_part(struct wide *sum, const uint8_t *run, uint32_t part,
                                         const uint8_t *table, struct lines lines)
{
    struct wide s = *sum;
    for (uint32_t b = 0; b < RUN_BATCHES;
         b++, run += 4 * 64, table += BATCH_BYTES, lines = lines_from(lines, 4)) {
        for (uint32_t line = part; line < 4; line += PARTS)
            request_line(lines, line);
        t2_batch(&s, run + PART_ROWS * part, table);
    }
    *sum = s;
}

/* The tables of a run stay in the first-level cache for the 4 tiles of a band. */
static TN_ALWAYS_INLINE void t2_band(int32_t *dst, const struct tn_ternary *w, uint32_t row,
                                     const uint8_t *lut, uint8_t *unpacked)
{
    const uint32_t n_tiles = t2_band_tiles(w, row), n_runs = t2_runs(w);
    struct tiles tiles = tiles_at(w, row, 0, TN_PREFETCH_OF(T2_I8), unpacked);
    memset(dst, 0, n_tiles * TERN_T2_TILE_ROWS * sizeof *dst);
    for (uint32_t i = 0, n; i < n_runs; i += n) {
        struct wide s[TERN_T2_BAND_ROWS / TERN_T2_TILE_ROWS][PARTS];
        memset(s, 0, sizeof s);
        n = TN_MIN(n_runs - i, WIDE_RUNS);
        for (uint32_t k = 0; k < n; k++, next_run(&tiles, n_tiles)) {
            for (uint32_t t = 0; t < n_tiles; t++) {
                const struct tile tile = tile_at(&tiles, t);
                for (uint32_t part = 0; part < PARTS; part++)
                    t2_add_part(&s[t][part], tile.codes, part, lut, tile.lines);
            }
            lut += RUN_BATCHES * BATCH_BYTES;
        }
        for (uint32_t t = 0; t < n_tiles; t++)
            for (uint32_t part = 0; part < PARTS; part++)
                flush(dst + TERN_T2_TILE_ROWS * t + PART_ROWS * part, &s[t][part],
                      n * RUN_BATCHES);
    }
}

/* ---- C2: a block of 64 bytes of a column is 256 rows, PARTS parts of 4 fields ---- */

#define C2_MAX_PARTS (TN_C2_MAX_ROWS / 256 * PARTS)

/* Adds the first batch and requests the lines of the others at the same pace. sums [n_blocks *
 * PARTS][4]: field q of part k of a block holds its rows 64 q + PART_ROWS k ... */
static void c2_add_batch(struct wide (*sums)[4], uint32_t n_blocks,
                         const struct c2_batch batches[C2_BATCHES], const uint8_t *tables)
{
    const uint8_t *const *col = batches[0].col;
    for (uint32_t b = 0; b < n_blocks * PARTS; b++) {
        struct planes p[4];
        memset(p, 0, sizeof p);
#pragma GCC unroll 8
        for (uint32_t k = 0; k < BATCH_COLS; k += 2) {
            if (k % PARTS == 0) {
                const struct c2_line line = {k + b % PARTS, b / PARTS * 64};
                c2_request(batches, line, line);
            }
            add_columns(p, col[k] + b * PART_ROWS, col[k + 1] + b * PART_ROWS,
                        tables + k / 2 * PAIR_BYTES);
        }
        for (uint32_t q = 0; q < 4; q++)
            widen(&sums[b][q], &p[q]);
    }
}

static void c2_flush(int32_t *dst, struct wide (*sums)[4], uint32_t n_blocks, uint32_t n_batches)
{
    for (uint32_t b = 0; b < n_blocks * PARTS; b++)
        for (uint32_t q = 0; q < 4; q++)
            flush(dst + 256 * (b / PARTS) + 64 * q + PART_ROWS * (b % PARTS), &sums[b][q],
                  n_batches);
}

static TN_ALWAYS_INLINE void gemv_c2(int32_t *dst, const struct c2_list *list, uint32_t n_rows)
{
    const uint32_t n_blocks = n_rows / 256;
    struct wide sums[C2_MAX_PARTS][4];
    _Alignas(32) uint8_t tables[BATCH_BYTES];
    struct c2_batch batches[C2_BATCHES];

    memset(dst, 0, n_rows * sizeof *dst);
    c2_first_batches(batches, list, BATCH_COLS, n_blocks * 64);
    uint32_t n_batches = 0;
    for (uint32_t i = 0; i < list->n_cols; i += BATCH_COLS) {
        if (n_batches == 0)
            memset(sums, 0, n_blocks * PARTS * sizeof *sums);
        const int8_t *v = batches[0].x;
        for (uint32_t k = 0; k < BATCH_COLS; k += 2)
            build_table(tables + k / 2 * PAIR_BYTES, v[k], v[k + 1]);
        c2_add_batch(sums, n_blocks, batches, tables);
        c2_next_batches(batches, list, BATCH_COLS, i);
        if (++n_batches == WIDE_BATCHES || list->n_cols - i <= BATCH_COLS) {
            c2_flush(dst, sums, n_blocks, n_batches);
            n_batches = 0;
        }
    }
}

/* Defines tn_lut_t2_<isa>, tn_gemv_t2_i8_<isa> and tn_gemv_c2_i8_<isa>. */
#define PAIR_TABLES_DEFINE(isa)                                                                    \
    void tn_lut_t2_##isa(void *lut, const int8_t *x, uint32_t cols)                                \
    {                                                                                              \
        lut_t2(lut, x, cols);                                                                      \
    }                                                                                              \
    TILES_GEMV_I8_DEFINE(isa)                                                                      \
    void tn_gemv_c2_i8_##isa(int32_t *dst, const struct tn_ternary *w, uint32_t row_begin,         \
                             uint32_t row_end, const uint32_t *cols, const int8_t *x,              \
                             uint32_t n_cols)                                                      \
    {                                                                                              \
        const struct c2_list list = {w->data + row_begin / 4, c2_col_bytes(w), cols, x, n_cols};   \
        gemv_c2(dst, &list, row_end - row_begin);                                                  \
    }

#endif
