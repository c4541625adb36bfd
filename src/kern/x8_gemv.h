/* SPDX-License-Identifier: MIT
 *
 * The loop of gemv_t2_x8.  Private to x8_<isa>.c, which defines before the include:
 *
 *   struct x8_digits  the values of up to 128 columns in the level's order
 *   x8_take           fills it from n_cols columns, 64 or 128
 *   x8_sum_tile       sum[i], i < 64: the sum over n_blocks blocks of a tile, each scaled with its
 *                     factor; prefetches the following bytes of the tile
 *   x8_sum_tiles      x8_sum_tile for n inputs, 2 to TN_X8_FEW
 */
#ifndef TN_X8_GEMV_H
#define TN_X8_GEMV_H

#include "kern/x8.h"

/* A band of 64 to 256 rows times n inputs.  The values of a run stay in the first-level cache for
 * its tiles.  The caller provides digits [n] and sum [n]. */
static TN_ALWAYS_INLINE void x8_band(float *y, size_t y_stride, const struct tn_scaled_ternary *m,
                                     uint32_t row, const uint8_t *x8, uint32_t n,
                                     struct x8_digits *digits, float (*sum)[64])
{
    const struct tn_ternary *w = &m->w;
    const uint32_t n_tiles = t2_band_tiles(w, row), n_cols = tn_x16_run(m);
    const size_t first_scale = (size_t)row * tn_n_groups(w->cols, m->group);
    for (uint32_t t = 0; t < n; t++)
        memset(y + t * y_stride, 0, n_tiles * TERN_T2_TILE_ROWS * sizeof *y);
    for (uint32_t col = 0; col < w->cols; col += n_cols) {
        const uint8_t *tile =
            t2_run(w, row, col / TERN_T2_COL_ALIGN) + col % TERN_T2_COL_ALIGN / 4 * 64;
        size_t at = first_scale + (size_t)(col / m->group) * n_tiles * 64;
        struct x8 x[TN_X8_FEW];
        for (uint32_t t = 0; t < n; t++) {
            x[t] = x8_of(x8 + t * TN_X8_BYTES(w->cols), w->cols, col);
            x8_take(&digits[t], &x[t], n_cols);
        }
        for (uint32_t i = 0; i < n_tiles; i++, tile += T2_RUN_BYTES, at += 64) {
            _Alignas(64) float scales[64];
            if (n == 1)
                x8_sum_tile(sum[0], tile, n_cols / TN_X8_BLOCK, digits, x);
            else
                x8_sum_tiles(sum, tile, n_cols / TN_X8_BLOCK, digits, x, n);
            tn_request(x16_scale_at(m, at), TN_PREFETCH_OF(SCALES));
            x16_scales(scales, m, at);
            for (uint32_t t = 0; t < n; t++)
                x8_add(y + t * y_stride + TERN_T2_TILE_ROWS * i, sum[t], scales);
        }
    }
}

static void x8_gemv(float *dst, const struct tn_scaled_ternary *m, uint32_t row_begin,
                    uint32_t row_end, const uint8_t *x8)
{
    struct x8_digits digits;
    _Alignas(64) float sum[1][64];
    for (uint32_t row = row_begin; row < row_end; row += TERN_T2_BAND_ROWS)
        x8_band(dst + (row - row_begin), 0, m, row, x8, 1, &digits, sum);
}

static void x8_gemv_few(float *dst, size_t dst_stride, const struct tn_scaled_ternary *m,
                        uint32_t row_begin, uint32_t row_end, const uint8_t *x8, uint32_t n)
{
    struct x8_digits digits[TN_X8_FEW];
    _Alignas(64) float sum[TN_X8_FEW][64];
    for (uint32_t row = row_begin; row < row_end; row += TERN_T2_BAND_ROWS)
        x8_band(dst + (row - row_begin), dst_stride, m, row, x8, n, digits, sum);
}

#define X8_GEMV_DEFINE(isa)                                                                        \
    void tn_gemv_t2_x8_##isa(float *dst, size_t dst_stride, const struct tn_scaled_ternary *m,     \
                             uint32_t row_begin, uint32_t row_end, const void *x8,                 \
                             uint32_t n_tokens)                                                    \
    {                                                                                              \
        if (n_tokens == 1)                                                                         \
            x8_gemv(dst, m, row_begin, row_end, x8);                                               \
        else                                                                                       \
            x8_gemv_few(dst, dst_stride, m, row_begin, row_end, x8, n_tokens);                     \
    }

#endif
