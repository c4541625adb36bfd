/* SPDX-License-Identifier: MIT
 *
 * The loops that all levels of gemm_{t2,r2,c2}_i8 share.  Private to the gemm_<isa>.c files, each
 * of which compiles its own copy with its own flags.
 *
 * A panel of 64 rows x `panel_cols` columns is unpacked to codes 0, 1, 2, one byte each:
 *
 *     panel [n_groups][64 rows][4 columns]
 *
 * and stays in the first-level cache while all tokens pass.  Codes are the weights plus one, so
 * the sums of a token start at minus the sum of its inputs.
 */
#ifndef TN_GEMM_PANEL_H
#define TN_GEMM_PANEL_H

#include "kern/ternary_layout.h"

#define GEMM_PANEL_ROWS 64u
#define GEMM_PANEL_COLS_MAX 512u
#define GEMM_PANEL_BYTES (GEMM_PANEL_COLS_MAX * GEMM_PANEL_ROWS)
#define GEMM_CHUNK_TOKENS 4096u
_Static_assert(GEMM_PANEL_BYTES + GEMM_CHUNK_TOKENS * 4 <= TN_GEMM_SCRATCH_BYTES,
               "a panel and the sums of a chunk of tokens fit the scratch memory");

/* Fills a panel with rows [row, row + 64), row a multiple of 64 below w->rows, and columns
 * [col, col + 4 * n_groups), col a multiple of 256. Rows at or beyond w->rows and columns at or
 * beyond w->cols get code 1. */
typedef void gemm_unpack_fn(uint8_t *panel, const struct tn_ternary *w, uint32_t row, uint32_t col,
                            uint32_t n_groups);

struct gemm_level {
    uint32_t panel_cols;  /* multiple of 256 */
    uint32_t tile_tokens; /* most tokens of a multiply call */
    /* The sum of n values, n a multiple of 256, x 64-byte aligned. */
    int32_t (*sum)(const int8_t *x, uint32_t n);
    /* dst[t * dst_stride + r] = start[t] + the panel times x[t]; start NULL: += instead. */
    void (*multiply)(int32_t *dst, size_t dst_stride, const uint8_t *panel, uint32_t n_groups,
                     const int8_t *x, size_t x_stride, const int32_t *start, uint32_t n_tokens);
};

static inline void gemm_one_panel(const struct gemm_level *level, int32_t *dst, size_t dst_stride,
                                  const uint8_t *panel, uint32_t n_groups, const int8_t *x,
                                  size_t x_stride, const int32_t *start, uint32_t n_tokens)
{
    /* As many tiles as needed, as equal as possible: 8 tokens are 4 + 4, not 6 + 2. */
    for (uint32_t t = 0, n; t < n_tokens; t += n) {
        n = tn_div_ceil_u32(n_tokens - t, tn_div_ceil_u32(n_tokens - t, level->tile_tokens));
        level->multiply(dst + t * dst_stride, dst_stride, panel, n_groups, x + t * x_stride,
                        x_stride, start ? start + t : NULL, n);
    }
}

/* Asks for the packed bytes of a panel, which will be unpacked while many tokens pass from now. */
static inline void gemm_fetch_panel(const struct tn_ternary *w, uint32_t row, uint32_t col,
                                    uint32_t n_groups)
{
    if (w->layout == TERN_LAYOUT_T2) {
        for (uint32_t begin = 0; begin < n_groups; begin += T2_RUN_GROUPS) {
            const uint8_t *run = t2_run(w, row, (col / 4 + begin) / T2_RUN_GROUPS);
            for (uint32_t byte = 0; byte < T2_RUN_BYTES; byte += 64)
                __builtin_prefetch(run + byte, 0, 2);
        }
    } else if (w->layout == TERN_LAYOUT_R2) {
        const size_t row_bytes = (size_t)r2_blocks(w) * 64;
        for (uint32_t r = row; r < TN_MIN(row + GEMM_PANEL_ROWS, w->rows); r++)
            for (uint32_t byte = 0; byte < n_groups; byte += 64)
                __builtin_prefetch(w->data + r * row_bytes + col / 4 + byte, 0, 2);
    } else {
        /* Four panels share the lines: a quarter for each. */
        const size_t col_bytes = c2_col_bytes(w);
        const uint8_t *block = w->data + row / 256 * 64;
        uint32_t first = col + row / 64 % 4 * n_groups;
        for (uint32_t c = first; c < TN_MIN(first + n_groups, w->cols); c++)
            __builtin_prefetch(block + c * col_bytes, 0, 2);
    }
}

static inline void gemm_chunk(const struct gemm_level *level, gemm_unpack_fn *unpack,
                              uint32_t padded_cols, int32_t *dst, size_t dst_stride,
                              const struct tn_ternary *w, uint32_t row_begin, uint32_t row_end,
                              const int8_t *x, size_t x_stride, uint32_t n_tokens, void *scratch)
{
    uint8_t *panel = scratch;
    int32_t *start = (int32_t *)(void *)(panel + GEMM_PANEL_BYTES);
    for (uint32_t t = 0; t < n_tokens; t++)
        start[t] = -level->sum(x + t * x_stride, tn_kern_pad(w->cols));
    for (uint32_t col = 0; col < padded_cols; col += level->panel_cols) {
        const uint32_t n_groups = TN_MIN(padded_cols - col, level->panel_cols) / 4;
        for (uint32_t row = row_begin; row < row_end; row += GEMM_PANEL_ROWS) {
            unpack(panel, w, row, col, n_groups);
            const uint32_t next = col + level->panel_cols;
            if (next < padded_cols)
                gemm_fetch_panel(w, row, next, TN_MIN(padded_cols - next, level->panel_cols) / 4);
            else if (row + TN_GEMM_ROWS < w->rows)
                gemm_fetch_panel(w, row + TN_GEMM_ROWS, 0,
                                 TN_MIN(padded_cols, level->panel_cols) / 4);
            gemm_one_panel(level, dst + (row - row_begin), dst_stride, panel, n_groups, x + col,
                           x_stride, col ? NULL : start, n_tokens);
        }
    }
}

/* Panels that have no row of w are left out: their sums are not written. */
static inline void gemm_panels(const struct gemm_level *level, gemm_unpack_fn *unpack,
                               uint32_t col_align, int32_t *dst, size_t dst_stride,
                               const struct tn_ternary *w, uint32_t row_begin, uint32_t row_end,
                               const int8_t *x, size_t x_stride, uint32_t n_tokens, void *scratch)
{
    const uint32_t padded_cols = tn_div_ceil_u32(w->cols, col_align) * col_align;
    row_end = TN_MIN(row_end, w->rows);
    for (uint32_t t = 0; t < n_tokens; t += GEMM_CHUNK_TOKENS)
        gemm_chunk(level, unpack, padded_cols, dst + t * dst_stride, dst_stride, w, row_begin,
                   row_end, x + t * x_stride, x_stride, TN_MIN(n_tokens - t, GEMM_CHUNK_TOKENS),
                   scratch);
}

/* Defines tn_gemm_t2_i8_<isa> and so on from `level`, unpack_t2, unpack_r2 and unpack_c2. */
#define GEMM_DEFINE(name, col_align, unpack)                                                       \
    void name(int32_t *dst, size_t dst_stride, const struct tn_ternary *w, uint32_t row_begin,     \
              uint32_t row_end, const int8_t *x, size_t x_stride, uint32_t n_tokens,               \
              void *scratch)                                                                       \
    {                                                                                              \
        gemm_panels(&level, unpack, col_align, dst, dst_stride, w, row_begin, row_end, x,          \
                    x_stride, n_tokens, scratch);                                                  \
    }
#define GEMM_DEFINE_ALL(isa)                                                                       \
    GEMM_DEFINE(tn_gemm_t2_i8_##isa, TERN_T2_COL_ALIGN, unpack_t2)                                 \
    GEMM_DEFINE(tn_gemm_r2_i8_##isa, TERN_R2_COL_ALIGN, unpack_r2)                                 \
    GEMM_DEFINE(tn_gemm_c2_i8_##isa, 4, unpack_c2)

#endif
