/* SPDX-License-Identifier: MIT
 *
 * The loop of gemm_t2_x16.  Private to gemm_<isa>.c, behind its `level` and unpack_t2: the two
 * digits of an input are multiplied as two inputs, run by run of 64 or 128 columns of a panel, and
 * the int32 sums are scaled and added while they are in the first-level cache.
 */
#ifndef TN_X16_GEMM_H
#define TN_X16_GEMM_H

#include "kern/gemm_panel.h"
#include "kern/x16.h"

#define X16_MOST_INPUTS 8u /* of a multiply call, digits counted */

/* Inputs, and what is added to. */
struct x16_batch {
    const uint8_t *x16;
    size_t half; /* bytes from digit to digit */
    uint32_t n_tokens, cols;
    float *dst;
    size_t dst_stride;
};

/* y of 64 rows += (256 * high + low - x_sum) * scales * factor. */
static TN_ALWAYS_INLINE void x16_add_digits(float *restrict y, const int32_t *restrict high,
                                            const int32_t *restrict low, int32_t x_sum,
                                            const float *restrict scales, float factor)
{
    for (uint32_t i = 0; i < 64; i++)
        y[i] += ((float)(high[i] * 256 + low[i] - x_sum) * scales[i]) * factor;
}

/* Adds to y of tokens [t, t + n) a run of n_cols columns from col on, unpacked. */
typedef void x16_tile_fn(const struct x16_batch *b, const uint8_t *run, uint32_t col,
                         uint32_t n_cols, const float *scales, uint32_t t, uint32_t n);

/* An x16_tile_fn by the level's own multiplying. */
static TN_ALWAYS_INLINE void x16_tile_by_level(const struct gemm_level *level,
                                               const struct x16_batch *b, const uint8_t *run,
                                               uint32_t col, uint32_t n_cols, const float *scales,
                                               uint32_t t, uint32_t n)
{
    static const int32_t zeros[X16_MOST_INPUTS];
    _Alignas(64) int32_t sums[X16_MOST_INPUTS][GEMM_PANEL_ROWS];
    const uint8_t *first = b->x16 + 2 * t * b->half;
    level->multiply(sums[0], GEMM_PANEL_ROWS, run, n_cols / 4, (const int8_t *)first + col, b->half,
                    zeros, 2 * n);
    for (uint32_t i = 0; i < n; i++) {
        const struct x16 x = x16_of(first + 2 * i * b->half, b->cols);
        x16_add_digits(b->dst + (t + i) * b->dst_stride, sums[2 * i], sums[2 * i + 1],
                       x16_sum(&x, col, n_cols), scales, x.factors[col / TN_X16_BLOCK]);
    }
}

/* Rows [row, row + 64) and columns [col, col + 4 * n_groups). */
static TN_ALWAYS_INLINE void x16_panel(x16_tile_fn *tile, uint32_t tile_tokens,
                                       const struct x16_batch *b,
                                       const struct tn_scaled_ternary *m, const uint8_t *panel,
                                       uint32_t row, uint32_t col, uint32_t n_groups,
                                       struct gemm_fetch *fetch)
{
    const uint32_t n_cols = tn_x16_run(m);
    const uint32_t end = TN_MIN(col + 4 * n_groups, m->w.cols);
    for (; col < end; col += n_cols, panel += (size_t)n_cols * GEMM_PANEL_ROWS) {
        _Alignas(64) float scales[GEMM_PANEL_ROWS];
        x16_scales(scales, m,
                   tn_scale_index(m->w.rows, m->w.cols, m->group, row, col / m->group));
        for (uint32_t t = 0; t < b->n_tokens; t += tile_tokens) {
            gemm_fetch_part(fetch);
            tile(b, panel, col, n_cols, scales, t, TN_MIN(tile_tokens, b->n_tokens - t));
        }
    }
}

static TN_ALWAYS_INLINE void x16_gemm(const struct gemm_level *level, x16_tile_fn *tile,
                                      uint32_t tile_tokens, gemm_unpack_fn *unpack, float *dst,
                                      size_t dst_stride,
                                      const struct tn_scaled_ternary *m, uint32_t row_begin,
                                      uint32_t row_end, const void *x16, uint32_t n_tokens,
                                      uint8_t *panel)
{
    const struct tn_ternary *w = &m->w;
    const uint32_t padded = tn_div_ceil_u32(w->cols, TERN_T2_COL_ALIGN) * TERN_T2_COL_ALIGN;
    struct x16_batch b = {x16, tn_x16_half(w->cols), n_tokens, w->cols, dst, dst_stride};
    row_end = TN_MIN(row_end, w->rows);
    for (uint32_t col = 0; col < padded; col += level->panel_cols) {
        const uint32_t n_groups = TN_MIN(padded - col, level->panel_cols) / 4;
        for (uint32_t row = row_begin; row < row_end; row += GEMM_PANEL_ROWS) {
            struct gemm_fetch fetch =
                gemm_fetch_next(level, w, padded, row_begin, row_end, row, col);
            b.dst = dst + (row - row_begin);
            for (uint32_t t = 0; col == 0 && t < n_tokens; t++)
                memset(b.dst + t * dst_stride, 0, GEMM_PANEL_ROWS * sizeof *dst);
            unpack(panel, w, row, col, n_groups);
            x16_panel(tile, tile_tokens, &b, m, panel, row, col, n_groups, &fetch);
        }
    }
}

#define X16_GEMM_DEFINE_TILE(isa, tile, tile_tokens)                                               \
    void tn_gemm_t2_x16_##isa(float *dst, size_t dst_stride, const struct tn_scaled_ternary *m,    \
                              uint32_t row_begin, uint32_t row_end, const void *x16,               \
                              uint32_t n_tokens, void *scratch)                                    \
    {                                                                                              \
        x16_gemm(&level, tile, tile_tokens, unpack_t2, dst, dst_stride, m, row_begin, row_end,     \
                 x16, n_tokens, scratch);                                                          \
    }

/* For levels without a tile of their own. */
#define X16_GEMM_DEFINE(isa)                                                                       \
    _Static_assert(TILE_TOKENS % 2 == 0 && TILE_TOKENS <= X16_MOST_INPUTS, "whole inputs");        \
    static TN_ALWAYS_INLINE void x16_tile(const struct x16_batch *b, const uint8_t *run,           \
                                          uint32_t col, uint32_t n_cols, const float *scales,      \
                                          uint32_t t, uint32_t n)                                  \
    {                                                                                              \
        x16_tile_by_level(&level, b, run, col, n_cols, scales, t, n);                              \
    }                                                                                              \
    X16_GEMM_DEFINE_TILE(isa, x16_tile, TILE_TOKENS / 2)

#endif
