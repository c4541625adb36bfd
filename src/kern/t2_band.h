/* SPDX-License-Identifier: MIT
 *
 * The loops of gemv_t2_i8 that the levels with tables of column pairs share.  Private to
 * ternary_{ssse3,avx2,neon}.c, each of which compiles its own copy: it is included behind what it
 * calls, struct wide, t2_batch and flush, with
 *
 *   T2_PART_ROWS  rows of a vector of bytes: a part of a tile, and of every line
 *
 * Batches are 4 groups.  The tables of a run stay in the first-level cache for the 4 tiles of a band.
 */
#ifndef TN_T2_BAND_H
#define TN_T2_BAND_H

#include <string.h>

#include "kern/ternary_layout.h"

/* Bytes ahead of the weights in use; measured. */
#define T2_PREFETCH_BYTES 8192

#define T2_RUN_BATCHES (T2_RUN_GROUPS / 4)
#define T2_WIDE_RUNS (WIDE_BATCHES / T2_RUN_BATCHES)
#define T2_PARTS (TERN_T2_TILE_ROWS / T2_PART_ROWS)

/* 128 columns of one part of a tile.  Each part asks for its share of the lines ahead. */
static TN_ALWAYS_INLINE void t2_add_part(struct wide *sum, const uint8_t *run, uint32_t part,
                                         const uint8_t *table)
{
    struct wide s = *sum;
    for (uint32_t b = 0; b < T2_RUN_BATCHES; b++, run += 4 * 64, table += BATCH_BYTES) {
        for (uint32_t line = part; line < 4; line += T2_PARTS)
            TN_PREFETCH(run + 64 * line + T2_PREFETCH_BYTES);
        t2_batch(&s, run + T2_PART_ROWS * part, table);
    }
    *sum = s;
}

static void t2_band(int32_t *dst, const uint8_t *run, uint32_t n_tiles, uint32_t n_runs,
                    const uint8_t *lut)
{
    memset(dst, 0, n_tiles * TERN_T2_TILE_ROWS * sizeof *dst);
    for (uint32_t n; n_runs > 0; n_runs -= n) {
        struct wide s[TERN_T2_BAND_ROWS / TERN_T2_TILE_ROWS][T2_PARTS];
        memset(s, 0, sizeof s);
        n = TN_MIN(n_runs, T2_WIDE_RUNS);
        for (uint32_t i = 0; i < n; i++, lut += T2_RUN_BATCHES * BATCH_BYTES)
            for (uint32_t t = 0; t < n_tiles; t++, run += T2_RUN_BYTES)
                for (uint32_t part = 0; part < T2_PARTS; part++)
                    t2_add_part(&s[t][part], run, part, lut);
        for (uint32_t t = 0; t < n_tiles; t++)
            for (uint32_t part = 0; part < T2_PARTS; part++)
                flush(dst + TERN_T2_TILE_ROWS * t + T2_PART_ROWS * part, &s[t][part],
                      n * T2_RUN_BATCHES);
    }
}

#endif
