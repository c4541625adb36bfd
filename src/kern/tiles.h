/* SPDX-License-Identifier: MIT
 *
 * The tiles that gemv_t2_x16 and gemv_t2_x8 multiply: T2 is read in place, T5 is unpacked run by
 * run before its product.  The lines that follow are requested evenly during the products: if
 * unpacking requested all of its lines at once, they would wait for line buffers.
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

/* The tiles of a band at a column. */
struct tiles {
    const uint8_t *codes;  /* of the first tile in T2; a tile is T2_RUN_BYTES after another */
    const uint8_t *source; /* the bytes that it was read from */
    size_t source_step;    /* to those of the next tile */
};

#define TILES_BYTES (TERN_T2_BAND_ROWS / TERN_T2_TILE_ROWS * T2_RUN_BYTES)

/* unpacked: NULL for T2; for T5 [64] TILES_BYTES, which unpack_tile fills. */
static TN_ALWAYS_INLINE struct tiles tiles_at(const struct tn_ternary *w, uint32_t band_row,
                                              uint32_t col, uint8_t *unpacked)
{
    const uint32_t i_run = col / TERN_T2_COL_ALIGN;
    const uint32_t offset = col % TERN_T2_COL_ALIGN / 4 * 64;
    if (!unpacked) {
        const uint8_t *codes = t2_run(w, band_row, i_run) + offset;
        return (struct tiles){codes, codes, T2_RUN_BYTES};
    }
    const uint8_t *source = t5_run(w, band_row, i_run);
    const size_t step = (size_t)t2_runs(w) * TERN_T5_RUN_BYTES;
    return (struct tiles){unpacked + offset, source + offset, step};
}

/* Unpacks a tile of T5 at the first column of a run; later columns of the run find it there. */
static TN_ALWAYS_INLINE void unpack_tile(uint8_t *codes, const uint8_t *source, uint32_t col)
{
    if (col % TERN_T2_COL_ALIGN == 0)
        t5_unpack_run(codes, source);
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
