/* SPDX-License-Identifier: MIT
 *
 * The loop of gemm_t2_x8.  Private to gemm_<isa>.c, behind its `level` and unpack_t2.
 */
#ifndef TN_X8_GEMM_H
#define TN_X8_GEMM_H

#include "kern/gemm_panel.h"
#include "kern/x8.h"

/* y[i] of 64 rows += (sum over n_blocks blocks of a panel) * scales, for the n inputs that begin
 * at x, i * x_bytes further each, and lie y_stride apart in y. */
typedef void x8_tile_fn(float *y, size_t y_stride, const uint8_t *panel, uint32_t n_blocks,
                        const struct x8 *x, size_t x_bytes, const float *scales, uint32_t n);

/* Input i of a tile. */
static TN_ALWAYS_INLINE struct x8 x8_next(const struct x8 *x, size_t x_bytes, uint32_t i)
{
    return (struct x8){x->q + i * x_bytes, x->factors + i * x_bytes / sizeof *x->factors,
                       x->starts + i * x_bytes / sizeof *x->starts};
}

#define X8_MOST_INPUTS 8u /* of a multiply call */

/* t of 64 rows += sums * factor. */
static TN_ALWAYS_INLINE void x8_add_block(float *restrict t, const int32_t *restrict sums,
                                          float factor)
{
    for (uint32_t i = 0; i < 64; i++)
        t[i] += (float)sums[i] * factor;
}

/* An x8_tile_fn by the level's own multiplying, block by block. */
static TN_ALWAYS_INLINE void x8_tile_by_level(const struct gemm_level *level, float *y,
                                              size_t y_stride, const uint8_t *panel,
                                              uint32_t n_blocks, const struct x8 *x,
                                              size_t x_bytes, const float *scales, uint32_t n)
{
    _Alignas(64) int32_t sums[X8_MOST_INPUTS][GEMM_PANEL_ROWS];
    _Alignas(64) float t[X8_MOST_INPUTS][GEMM_PANEL_ROWS] = {{0}};
    for (uint32_t k = 0; k < n_blocks; k++, panel += TN_X8_BLOCK * GEMM_PANEL_ROWS) {
        int32_t x_sum[X8_MOST_INPUTS];
        for (uint32_t i = 0; i < n; i++)
            x_sum[i] = -x8_next(x, x_bytes, i).starts[k];
        level->multiply(sums[0], GEMM_PANEL_ROWS, panel, X8_BLOCK_GROUPS, x->q + k * TN_X8_BLOCK,
                        x_bytes, x_sum, n);
        for (uint32_t i = 0; i < n; i++)
            x8_add_block(t[i], sums[i], x8_next(x, x_bytes, i).factors[k]);
    }
    for (uint32_t i = 0; i < n; i++)
        x8_add(y + i * y_stride, t[i], scales);
}

/* Inputs, and what is added to. */
struct x8_batch {
    const uint8_t *x8;
    uint32_t n_tokens, cols;
    float *dst;
    size_t dst_stride;
};

/* Rows [row, row + 64) and columns [col, col + 4 * n_groups). */
static TN_ALWAYS_INLINE void x8_panel(x8_tile_fn *tile, uint32_t tile_tokens,
                                      const struct x8_batch *b, const struct tn_scaled_ternary *m,
                                      const uint8_t *panel, uint32_t row, uint32_t col,
                                      uint32_t n_groups, struct gemm_fetch *fetch)
{
    const size_t x_bytes = TN_X8_BYTES(b->cols);
    const uint32_t n_cols = tn_x16_run(m), end = TN_MIN(col + 4 * n_groups, m->w.cols);
    for (; col < end; col += n_cols, panel += (size_t)n_cols * GEMM_PANEL_ROWS) {
        _Alignas(64) float scales[GEMM_PANEL_ROWS];
        x16_scales(scales, m,
                   tn_scale_index(m->w.rows, m->w.cols, m->group, row, col / m->group));
        for (uint32_t t = 0; t < b->n_tokens; t += tile_tokens) {
            const struct x8 x = x8_of(b->x8 + t * x_bytes, b->cols, col);
            gemm_fetch_part(fetch);
            tile(b->dst + t * b->dst_stride, b->dst_stride, panel, n_cols / TN_X8_BLOCK, &x,
                 x_bytes, scales, TN_MIN(tile_tokens, b->n_tokens - t));
        }
    }
}

static TN_ALWAYS_INLINE void x8_gemm(const struct gemm_level *level, x8_tile_fn *tile,
                                     uint32_t tile_tokens, gemm_unpack_fn *unpack, float *dst,
                                     size_t dst_stride, const struct tn_scaled_ternary *m,
                                     uint32_t row_begin, uint32_t row_end, const void *x8,
                                     uint32_t n_tokens, uint8_t *panel)
{
    const struct tn_ternary *w = &m->w;
    const uint32_t padded = tn_div_ceil_u32(w->cols, TERN_T2_COL_ALIGN) * TERN_T2_COL_ALIGN;
    struct x8_batch b = {x8, n_tokens, w->cols, dst, dst_stride};
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
            x8_panel(tile, tile_tokens, &b, m, panel, row, col, n_groups, &fetch);
        }
    }
}

#define X8_GEMM_DEFINE_TILE(isa, tile, tile_tokens)                                                \
    void tn_gemm_t2_x8_##isa(float *dst, size_t dst_stride, const struct tn_scaled_ternary *m,     \
                             uint32_t row_begin, uint32_t row_end, const void *x8,                 \
                             uint32_t n_tokens, void *scratch)                                     \
    {                                                                                              \
        x8_gemm(&level, tile, tile_tokens, unpack_t2, dst, dst_stride, m, row_begin, row_end, x8,  \
                n_tokens, scratch);                                                                \
    }

/* For levels without a tile of their own. */
#define X8_GEMM_DEFINE(isa)                                                                        \
    _Static_assert(TILE_TOKENS <= X8_MOST_INPUTS, "a tile fits");                                  \
    static void x8_tile(float *y, size_t y_stride, const uint8_t *panel, uint32_t n_blocks,        \
                        const struct x8 *x, size_t x_bytes, const float *scales, uint32_t n)       \
    {                                                                                              \
        x8_tile_by_level(&level, y, y_stride, panel, n_blocks, x, x_bytes, scales, n);             \
    }                                                                                              \
    X8_GEMM_DEFINE_TILE(isa, x8_tile, TILE_TOKENS)

#endif
