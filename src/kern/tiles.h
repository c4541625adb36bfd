/* SPDX-License-Identifier: MIT
 *
 * The tiles that gemv_t2_i8, gemv_t2_x16 and gemv_t2_x8 multiply: T2 is read in place, T5 is
 * unpacked run by run before its product.  The lines that follow are requested evenly during the
 * products: if unpacking requested all of its lines at once, they would wait for line buffers.
 *
 * A file that includes this may define T5_WORD_BYTES (t5.h).
 */
#ifndef TN_TILES_H
#define TN_TILES_H

#include <stdbool.h>

#include "kern/t5.h"
#include "kern/ternary_layout.h"

/* Lines of memory, of which each is used some time after those before it. */
struct lines {
    const uint8_t *at;
    struct tn_prefetch ahead;
};

static TN_ALWAYS_INLINE void request_line(struct lines lines, uint32_t i)
{
    tn_request(lines.at + (size_t)64 * i, lines.ahead);
}

static TN_ALWAYS_INLINE struct lines lines_from(struct lines lines, uint32_t i)
{
    return (struct lines){lines.at + (size_t)64 * i, lines.ahead};
}

/* A run of T5 of 64 rows from row on, in memory. */
static inline const uint8_t *t5_run(const struct tn_ternary *w, uint32_t row, uint32_t i_run)
{
    return w->data + ((size_t)(row / TERN_T2_TILE_ROWS) * t2_runs(w) + i_run) * TERN_T5_RUN_BYTES;
}

/* A run of 64 rows from row on, in T2; for T5 it is unpacked to `unpacked` [64] T2_RUN_BYTES. */
static inline const uint8_t *unpacked_run(const struct tn_ternary *w, uint32_t row, uint32_t i_run,
                                          uint8_t *unpacked)
{
    if (w->layout != TERN_LAYOUT_T5)
        return t2_run(w, row, i_run);
    t5_unpack_run(unpacked, t5_run(w, row, i_run));
    return unpacked;
}

/* The tiles of a band at a column. */
struct tiles {
    const uint8_t *codes;  /* of the first tile in T2; a tile is T2_RUN_BYTES after another */
    const uint8_t *source; /* the bytes that it is read from */
    size_t source_step;    /* to those of the next tile */
    struct tn_prefetch ahead;
    uint8_t *unpacked; /* where runs of T5 begin here, else NULL */
};

#define TILES_BYTES (TERN_T2_BAND_ROWS / TERN_T2_TILE_ROWS * T2_RUN_BYTES)

/* ahead: distances for T2.  unpacked: NULL for T2; for T5 [64] TILES_BYTES, which tile_at fills at
 * the first column of a run; later columns of the run find the codes there. */
static TN_ALWAYS_INLINE struct tiles tiles_at(const struct tn_ternary *w, uint32_t band_row,
                                              uint32_t col, struct tn_prefetch ahead,
                                              uint8_t *unpacked)
{
    const uint32_t i_run = col / TERN_T2_COL_ALIGN, in_run = col % TERN_T2_COL_ALIGN;
    const uint32_t offset = in_run / 4 * 64;
    if (!unpacked) {
        const uint8_t *codes = t2_run(w, band_row, i_run) + offset;
        return (struct tiles){codes, codes, T2_RUN_BYTES, ahead, NULL};
    }
    return (struct tiles){
        .codes = unpacked + offset,
        .source = t5_run(w, band_row, i_run) + offset,
        .source_step = (size_t)t2_runs(w) * TERN_T5_RUN_BYTES,
        .ahead = TN_PREFETCH_OF(T5_X),
        .unpacked = in_run == 0 ? unpacked : NULL,
    };
}

/* From the first column of a run to that of the next; n_tiles: of the band.  Cheaper than tiles_at,
 * which multiplies. */
static TN_ALWAYS_INLINE void next_run(struct tiles *tiles, uint32_t n_tiles)
{
    tiles->source += tiles->unpacked ? TERN_T5_RUN_BYTES : (size_t)n_tiles * T2_RUN_BYTES;
    if (!tiles->unpacked)
        tiles->codes = tiles->source;
}

struct tile {
    const uint8_t *codes;
    struct lines lines; /* of which the product requests one for each group of 4 columns */
};

/* Tile i of the band; the tiles of a band are taken in order. */
static TN_ALWAYS_INLINE struct tile tile_at(const struct tiles *tiles, uint32_t i)
{
    const uint8_t *source = tiles->source + i * tiles->source_step;
    if (tiles->unpacked)
        t5_unpack_run(tiles->unpacked + i * T2_RUN_BYTES, source);
    return (struct tile){tiles->codes + i * T2_RUN_BYTES, {source, tiles->ahead}};
}

/* Defines gemv_t2_i8 of a level from t2_band(dst, w, row, lut, unpacked), the sums of the band of
 * rows from `row` on, which is compiled for each layout; unpacked: as for tiles_at. */
#define TILES_GEMV_I8_DEFINE(isa)                                                                  \
    static TN_NOINLINE void band_t2(int32_t *dst, const struct tn_ternary *w, uint32_t row,        \
                                    const void *lut)                                               \
    {                                                                                              \
        t2_band(dst, w, row, lut, NULL);                                                           \
    }                                                                                              \
    static TN_NOINLINE void band_t5(int32_t *dst, const struct tn_ternary *w, uint32_t row,        \
                                    const void *lut)                                               \
    {                                                                                              \
        _Alignas(64) uint8_t unpacked[TILES_BYTES];                                                \
        t2_band(dst, w, row, lut, unpacked);                                                       \
    }                                                                                              \
    void tn_gemv_t2_i8_##isa(int32_t *dst, const struct tn_ternary *w, uint32_t row_begin,         \
                             uint32_t row_end, const void *lut)                                    \
    {                                                                                              \
        for (uint32_t row = row_begin; row < row_end; row += TERN_T2_BAND_ROWS)                    \
            (w->layout == TERN_LAYOUT_T5 ? band_t5 : band_t2)(dst + (row - row_begin), w, row,     \
                                                              lut);                                \
    }

/* Defines gemv_t2_<form> of a level from <form>_gemv, for one input, and <form>_gemv_few, which are
 * compiled for each layout. */
#define TILES_GEMV_DEFINE(form, isa)                                                               \
    static TN_NOINLINE void one_t2_##form(float *dst, const struct tn_scaled_ternary *m,           \
                                          uint32_t row_begin, uint32_t row_end, const void *x)     \
    {                                                                                              \
        form##_gemv(dst, m, row_begin, row_end, x, NULL);                                          \
    }                                                                                              \
    static TN_NOINLINE void few_t2_##form(float *dst, size_t dst_stride,                           \
                                          const struct tn_scaled_ternary *m, uint32_t row_begin,   \
                                          uint32_t row_end, const void *x, uint32_t n)             \
    {                                                                                              \
        form##_gemv_few(dst, dst_stride, m, row_begin, row_end, x, n, NULL);                       \
    }                                                                                              \
    static TN_NOINLINE void one_t5_##form(float *dst, const struct tn_scaled_ternary *m,           \
                                          uint32_t row_begin, uint32_t row_end, const void *x)     \
    {                                                                                              \
        _Alignas(64) uint8_t unpacked[TILES_BYTES];                                                \
        form##_gemv(dst, m, row_begin, row_end, x, unpacked);                                      \
    }                                                                                              \
    static TN_NOINLINE void few_t5_##form(float *dst, size_t dst_stride,                           \
                                          const struct tn_scaled_ternary *m, uint32_t row_begin,   \
                                          uint32_t row_end, const void *x, uint32_t n)             \
    {                                                                                              \
        _Alignas(64) uint8_t unpacked[TILES_BYTES];                                                \
        form##_gemv_few(dst, dst_stride, m, row_begin, row_end, x, n, unpacked);                   \
    }                                                                                              \
    void tn_gemv_t2_##form##_##isa(float *dst, size_t dst_stride,                                  \
                                   const struct tn_scaled_ternary *m, uint32_t row_begin,          \
                                   uint32_t row_end, const void *x, uint32_t n_tokens)             \
    {                                                                                              \
        const bool is_t5 = m->w.layout == TERN_LAYOUT_T5;                                          \
        if (n_tokens == 1)                                                                         \
            (is_t5 ? one_t5_##form : one_t2_##form)(dst, m, row_begin, row_end, x);                \
        else                                                                                       \
            (is_t5 ? few_t5_##form : few_t2_##form)(dst, dst_stride, m, row_begin, row_end, x,     \
                                                    n_tokens);                                     \
    }

#endif
