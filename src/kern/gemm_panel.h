/* SPDX-License-Identifier: MIT
 *
 * The loops that all levels of gemm_{t2,r2,c2}_i8 share.  Private to the gemm_<isa>.c files, each
 * of which compiles its own copy with its own flags.
 *
 * A panel of 64 rows x `panel_cols` columns is unpacked to codes 0, 1, 2, one byte each:
 *
 *     panel [n_groups][64 rows][4 columns]
 *
 * and stays in the first-level cache while it is multiplied by all tokens.  Codes are the weights
 * plus one, so the sums of a token start at minus the sum of its inputs.  The panels of AMX have
 * the weights instead; there x_sum only tells which panel is the first.
 *
 * A level for which a tile of fewer tokens takes as long as a whole one defines GEMM_WHOLE_TILES
 * as 1 before the include.
 */
#ifndef TN_GEMM_PANEL_H
#define TN_GEMM_PANEL_H

#include <stdbool.h>

#include "kern/switch.h"
#include "kern/ternary_layout.h"

#ifndef GEMM_WHOLE_TILES
#define GEMM_WHOLE_TILES 0
#endif

#define GEMM_PANEL_ROWS 64u
#define GEMM_PANEL_COLS_MAX 512u
#define GEMM_PANEL_BYTES (GEMM_PANEL_COLS_MAX * GEMM_PANEL_ROWS)
_Static_assert(GEMM_PANEL_BYTES <= TN_GEMM_SCRATCH_BYTES, "a panel fits the scratch memory");

/* Fills a panel with rows [row, row + 64), row a multiple of 64 below w->rows, and columns
 * [col, col + 4 * n_groups), col a multiple of 256. Rows at or beyond w->rows and columns at or
 * beyond w->cols get code 1. */
typedef void gemm_unpack_fn(uint8_t *panel, const struct tn_ternary *w, uint32_t row, uint32_t col,
                            uint32_t n_groups);

struct gemm_level {
    uint32_t panel_cols;  /* multiple of 256 */
    uint32_t tile_tokens; /* maximum tokens of a multiply call */
    /* dst[t * dst_stride + r] = the panel times x[t] - x_sum[t]; x_sum NULL: += the panel times
     * x[t] instead. */
    void (*multiply)(int32_t *dst, size_t dst_stride, const uint8_t *panel, uint32_t n_groups,
                     const int8_t *x, size_t x_stride, const int32_t *x_sum, uint32_t n_tokens);
};

/* Packed bytes of a panel to prefetch; it is unpacked after many tokens have been multiplied.  They
 * are requested in portions of 16 lines, a few portions with each tile of tokens, because a
 * processor drops prefetches while all its line buffers are in use. */
#define GEMM_FETCH_LINES 16u

struct gemm_fetch {
    const struct tn_ternary *w;
    uint32_t row, col;
    uint32_t line, end; /* numbers of lines of the panel */
};

/* The panel after (row, col).  C2: the panel of the next columns, because those of the next rows
 * share their lines with this one; each panel of the call fetches some of them.  After the last
 * columns: the rows of the next call. */
static inline struct gemm_fetch gemm_fetch_next(uint32_t panel_cols, const struct tn_ternary *w,
                                                uint32_t padded_cols, uint32_t row_begin,
                                                uint32_t row_end, uint32_t row, uint32_t col)
{
    const bool is_c2 = w->layout == TERN_LAYOUT_C2;
    struct gemm_fetch f = {.w = w, .row = row + GEMM_PANEL_ROWS, .col = col};
    if (is_c2 || f.row >= row_end) {
        f.row = row_begin;
        f.col += panel_cols;
    }
    if (f.col >= padded_cols) {
        f.row = row_end;
        f.col = 0;
    }
    if (f.row >= w->rows)
        return f;
    const uint32_t n_cols = TN_MIN(padded_cols - f.col, panel_cols);
    f.end = n_cols / 4;
    if (is_c2) {
        const uint32_t n_panels = tn_div_ceil_u32(row_end - row_begin, GEMM_PANEL_ROWS);
        const uint32_t n_lines = tn_div_ceil_u32(n_cols, n_panels);
        f.end = TN_MIN(n_cols, w->cols - f.col);
        f.line = TN_MIN((row - row_begin) / GEMM_PANEL_ROWS * n_lines, f.end);
        f.end = TN_MIN(f.line + n_lines, f.end);
    }
    return f;
}

static inline void gemm_fetch_part(struct gemm_fetch *f)
{
    const struct tn_ternary *w = f->w;
    const uint32_t begin = f->line, end = TN_MIN(begin + GEMM_FETCH_LINES, f->end);
    f->line = end;
    if (w->layout == TERN_LAYOUT_T2) { /* a line is a group */
        const uint32_t group = f->col / 4 + begin;
        const uint8_t *lines =
            t2_run(w, f->row, group / T2_RUN_GROUPS) + group % T2_RUN_GROUPS * 64;
        for (uint32_t i = 0; i < end - begin; i++)
            __builtin_prefetch(lines + 64 * i, 0, 2);
    } else if (w->layout == TERN_LAYOUT_R2) { /* a line is 64 groups of one row */
        const size_t row_bytes = (size_t)r2_blocks(w) * 64;
        const uint8_t *lines = w->data + f->col / 4 + begin / GEMM_PANEL_ROWS * 64;
        const uint32_t row = f->row + begin % GEMM_PANEL_ROWS;
        for (uint32_t i = row; i < TN_MIN(row + end - begin, w->rows); i++)
            __builtin_prefetch(lines + i * row_bytes, 0, 2);
    } else { /* a line is one column of four panels */
        const uint8_t *lines = w->data + f->row / 256 * 64 + f->col * c2_col_bytes(w);
        for (uint32_t i = begin; i < end; i++)
            __builtin_prefetch(lines + i * c2_col_bytes(w), 0, 2);
    }
}

/* Portions to fetch with each of n_tiles tiles. */
static inline uint32_t gemm_fetch_parts(const struct gemm_fetch *f, uint32_t n_tiles)
{
    return tn_div_ceil_u32(tn_div_ceil_u32(f->end - f->line, GEMM_FETCH_LINES), n_tiles);
}

static inline void gemm_fetch_some(struct gemm_fetch *f, uint32_t n_parts)
{
    for (uint32_t i = 0; i < n_parts && f->line < f->end; i++)
        gemm_fetch_part(f);
}

/* Tokens of the next of n_tiles tiles: spread evenly, 8 tokens are 4 + 4, not 6 + 2. */
static inline uint32_t gemm_next_tile(uint32_t n_tokens, uint32_t n_tiles, uint32_t tile_tokens)
{
    return GEMM_WHOLE_TILES ? TN_MIN(n_tokens, tile_tokens) : tn_div_ceil_u32(n_tokens, n_tiles);
}

static inline void gemm_one_panel(const struct gemm_level *level, int32_t *dst, size_t dst_stride,
                                  const uint8_t *panel, uint32_t n_groups, const int8_t *x,
                                  size_t x_stride, const int32_t *x_sum, uint32_t n_tokens,
                                  struct gemm_fetch *fetch)
{
    uint32_t n_tiles = tn_div_ceil_u32(n_tokens, level->tile_tokens);
    const uint32_t n_parts = gemm_fetch_parts(fetch, n_tiles);
    for (uint32_t t = 0, n; t < n_tokens; t += n, n_tiles--) {
        gemm_fetch_some(fetch, n_parts);
        n = gemm_next_tile(n_tokens - t, n_tiles, level->tile_tokens);
        level->multiply(dst + t * dst_stride, dst_stride, panel, n_groups, x + t * x_stride,
                        x_stride, x_sum ? x_sum + t : NULL, n);
    }
}

/* Panels outside w are skipped: their sums are not written. */
static inline void gemm_panels(const struct gemm_level *level, gemm_unpack_fn *unpack,
                               uint32_t col_align, int32_t *dst, size_t dst_stride,
                               const struct tn_ternary *w, uint32_t row_begin, uint32_t row_end,
                               const int8_t *x, size_t x_stride, const int32_t *x_sum,
                               uint32_t n_tokens, void *scratch)
{
    const uint32_t padded_cols = tn_div_ceil_u32(w->cols, col_align) * col_align;
    uint8_t *panel = scratch;
    row_end = TN_MIN(row_end, w->rows);
    for (uint32_t col = 0; col < padded_cols; col += level->panel_cols) {
        const uint32_t n_groups = TN_MIN(padded_cols - col, level->panel_cols) / 4;
        for (uint32_t row = row_begin; row < row_end; row += GEMM_PANEL_ROWS) {
            struct gemm_fetch fetch =
                gemm_fetch_next(level->panel_cols, w, padded_cols, row_begin, row_end, row, col);
            unpack(panel, w, row, col, n_groups);
            gemm_one_panel(level, dst + (row - row_begin), dst_stride, panel, n_groups, x + col,
                           x_stride, col ? NULL : x_sum, n_tokens, &fetch);
        }
    }
}

/* Defines tn_gemm_t2_i8_<isa>, tn_gemm_r2_i8_<isa> and tn_gemm_c2_i8_<isa> from `level`, unpack_t2,
 * unpack_r2 and unpack_c2. */
#define GEMM_DEFINE(name, col_align, unpack)                                                       \
    void name(int32_t *dst, size_t dst_stride, const struct tn_ternary *w, uint32_t row_begin,     \
              uint32_t row_end, const int8_t *x, size_t x_stride, const int32_t *x_sum,            \
              uint32_t n_tokens, void *scratch)                                                    \
    {                                                                                              \
        gemm_panels(&level, unpack, col_align, dst, dst_stride, w, row_begin, row_end, x,          \
                    x_stride, x_sum, n_tokens, scratch);                                           \
    }
#define GEMM_DEFINE_ALL(isa)                                                                       \
    GEMM_DEFINE(tn_gemm_t2_i8_##isa, TERN_T2_COL_ALIGN, unpack_t2)                                 \
    GEMM_DEFINE_R2_C2(isa)
#define GEMM_DEFINE_R2_C2(isa)                                                                     \
    GEMM_DEFINE(tn_gemm_r2_i8_##isa, TERN_R2_COL_ALIGN, unpack_r2)                                 \
    GEMM_DEFINE(tn_gemm_c2_i8_##isa, 4, unpack_c2)
/* The same, but up to n_few inputs go to few_t2, which has the contract of a gemm: it reads the
 * weights in file order and stores no panels. */
#define GEMM_DEFINE_ALL_FEW(isa, n_few)                                                            \
    static GEMM_DEFINE(panels_t2, TERN_T2_COL_ALIGN, unpack_t2)                                    \
    void tn_gemm_t2_i8_##isa(int32_t *dst, size_t dst_stride, const struct tn_ternary *w,          \
                             uint32_t row_begin, uint32_t row_end, const int8_t *x,                \
                             size_t x_stride, const int32_t *x_sum, uint32_t n_tokens,             \
                             void *scratch)                                                        \
    {                                                                                              \
        (n_tokens <= (n_few) ? few_t2 : panels_t2)(dst, dst_stride, w, row_begin, row_end, x,      \
                                                   x_stride, x_sum, n_tokens, scratch);            \
    }                                                                                              \
    GEMM_DEFINE_R2_C2(isa)

#endif
