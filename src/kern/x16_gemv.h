/* SPDX-License-Identifier: MIT
 *
 * The loop of gemv_t2_x16.  Private to x16_<isa>.c, which defines before the include:
 *
 *   struct digits   the digits of up to 128 columns of an input in the level's order
 *   take_digits     fills it from n_cols columns, 64 or 128
 *   sum_tile        sum[i] = sum of code * q, i < 64, over n_groups groups of 4 columns of a tile;
 *                   requests a line for each group
 *   sum_tiles       sum_tile for n inputs, 2 to TN_X16_FEW
 */
#ifndef TN_X16_GEMV_H
#define TN_X16_GEMV_H

#include "kern/tiles.h"
#include "kern/x16.h"

/* A band of 64 to 256 rows times n inputs.  The digits of a run stay in the first-level cache for
 * its tiles.  The caller provides digits [n] and sum [n].  unpacked: as for tiles_at. */
static TN_ALWAYS_INLINE void x16_band(float *y, size_t y_stride, const struct tn_scaled_ternary *m,
                                      uint32_t row, const struct x16 *x, uint32_t n,
                                      struct digits *digits, int32_t (*sum)[64],
                                      uint8_t *unpacked)
{
    const struct tn_ternary *w = &m->w;
    const uint32_t n_tiles = t2_band_tiles(w, row), n_cols = tn_x16_run(m);
    const size_t first_scale = (size_t)row * tn_n_groups(w->cols, m->group);
    for (uint32_t t = 0; t < n; t++)
        memset(y + t * y_stride, 0, n_tiles * TERN_T2_TILE_ROWS * sizeof *y);
    for (uint32_t col = 0; col < w->cols; col += n_cols) {
        const struct tiles tiles = tiles_at(w, row, col, TN_PREFETCH_OF(T2_X16), unpacked);
        size_t at = first_scale + (size_t)(col / m->group) * n_tiles * 64;
        for (uint32_t t = 0; t < n; t++)
            take_digits(&digits[t], x[t].high + col, x[t].low + col, n_cols);
        for (uint32_t i = 0; i < n_tiles; i++, at += 64) {
            _Alignas(64) float scales[64];
            const struct tile tile = tile_at(&tiles, i);
            if (n == 1)
                sum_tile(sum[0], tile.codes, n_cols / 4, digits, tile.lines);
            else
                sum_tiles(sum, tile.codes, n_cols / 4, digits, n, tile.lines);
            tn_request(x16_scale_at(m, at), TN_PREFETCH_OF(SCALES));
            x16_scales(scales, m, at);
            for (uint32_t t = 0; t < n; t++)
                x16_add(y + t * y_stride + TERN_T2_TILE_ROWS * i, sum[t],
                        x16_sum(&x[t], col, n_cols), scales, x[t].factors[col / TN_X16_BLOCK]);
        }
    }
}

static TN_ALWAYS_INLINE void x16_gemv(float *dst, const struct tn_scaled_ternary *m,
                                      uint32_t row_begin, uint32_t row_end, const void *x16,
                                      uint8_t *unpacked)
{
    const struct x16 x = x16_of(x16, m->w.cols);
    struct digits digits;
    _Alignas(64) int32_t sum[1][64];
    for (uint32_t row = row_begin; row < row_end; row += TERN_T2_BAND_ROWS)
        x16_band(dst + (row - row_begin), 0, m, row, &x, 1, &digits, sum, unpacked);
}

static TN_ALWAYS_INLINE void x16_gemv_few(float *dst, size_t dst_stride,
                                          const struct tn_scaled_ternary *m, uint32_t row_begin,
                                          uint32_t row_end, const uint8_t *x16, uint32_t n,
                                          uint8_t *unpacked)
{
    struct x16 x[TN_X16_FEW];
    struct digits digits[TN_X16_FEW];
    _Alignas(64) int32_t sum[TN_X16_FEW][64];
    for (uint32_t t = 0; t < n; t++)
        x[t] = x16_of(x16 + t * TN_X16_BYTES(m->w.cols), m->w.cols);
    for (uint32_t row = row_begin; row < row_end; row += TERN_T2_BAND_ROWS)
        x16_band(dst + (row - row_begin), dst_stride, m, row, x, n, digits, sum, unpacked);
}

#endif
