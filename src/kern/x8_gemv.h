/* SPDX-License-Identifier: MIT
 *
 * The loop of gemv_t2_x8.  Private to x8_<isa>.c, which defines before the include:
 *
 *   struct x8_digits  the values of up to 128 columns in the level's order
 *   x8_take           fills it from n_cols columns, 64 or 128
 *   x8_sum_tile       sum[i], i < 64: the sum over n_blocks blocks of a tile, each scaled with its
 *                     factor; requests a line for each group of 4 columns
 *   x8_sum_tiles      x8_sum_tile for n inputs, 2 to TN_X8_FEW
 */
#ifndef TN_X8_GEMV_H
#define TN_X8_GEMV_H

#include "kern/tiles.h"
#include "kern/x8.h"

/* A band of 64 to 256 rows times n inputs.  The values of a run stay in the first-level cache for
 * its tiles.  The caller provides digits [n] and sum [n].  unpacked: as for tiles_at. */
static TN_ALWAYS_INLINE void x8_band(float *y, size_t y_stride, const struct tn_scaled_ternary *m,
                                     uint32_t row, const uint8_t *x8, uint32_t n,
                                     struct x8_digits *digits, float (*sum)[64],
                                     uint8_t *unpacked)
{
    const struct tn_ternary *w = &m->w;
    const uint32_t n_tiles = t2_band_tiles(w, row), n_cols = tn_x16_run(m);
    const size_t first_scale = (size_t)row * tn_n_groups(w->cols, m->group);
    for (uint32_t t = 0; t < n; t++)
        memset(y + t * y_stride, 0, n_tiles * TERN_T2_TILE_ROWS * sizeof *y);
    for (uint32_t col = 0; col < w->cols; col += n_cols) {
        const struct tiles tiles = tiles_at(w, row, col, TN_PREFETCH_OF(T2_X8), unpacked);
        size_t at = first_scale + (size_t)(col / m->group) * n_tiles * 64;
        struct x8 x[TN_X8_FEW];
        for (uint32_t t = 0; t < n; t++) {
            x[t] = x8_of(x8 + t * TN_X8_BYTES(w->cols), w->cols, col);
            x8_take(&digits[t], &x[t], n_cols);
        }
        for (uint32_t i = 0; i < n_tiles; i++, at += 64) {
            _Alignas(64) float scales[64];
            const struct tile tile = tile_at(&tiles, i);
            if (n == 1)
                x8_sum_tile(sum[0], tile.codes, n_cols / TN_X8_BLOCK, digits, x, tile.lines);
            else
                x8_sum_tiles(sum, tile.codes, n_cols / TN_X8_BLOCK, digits, x, n,
                             tile.lines);
            tn_request(x16_scale_at(m, at), TN_PREFETCH_OF(SCALES));
            x16_scales(scales, m, at);
            for (uint32_t t = 0; t < n; t++)
                x8_add(y + t * y_stride + TERN_T2_TILE_ROWS * i, sum[t], scales);
        }
    }
}

static TN_ALWAYS_INLINE void x8_gemv(float *dst, const struct tn_scaled_ternary *m,
                                     uint32_t row_begin, uint32_t row_end, const uint8_t *x8,
                                     uint8_t *unpacked)
{
    struct x8_digits digits;
    _Alignas(64) float sum[1][64];
    for (uint32_t row = row_begin; row < row_end; row += TERN_T2_BAND_ROWS)
        x8_band(dst + (row - row_begin), 0, m, row, x8, 1, &digits, sum, unpacked);
}

static TN_ALWAYS_INLINE void x8_gemv_few(float *dst, size_t dst_stride,
                                         const struct tn_scaled_ternary *m, uint32_t row_begin,
                                         uint32_t row_end, const uint8_t *x8, uint32_t n,
                                         uint8_t *unpacked)
{
    struct x8_digits digits[TN_X8_FEW];
    _Alignas(64) float sum[TN_X8_FEW][64];
    for (uint32_t row = row_begin; row < row_end; row += TERN_T2_BAND_ROWS)
        x8_band(dst + (row - row_begin), dst_stride, m, row, x8, n, digits, sum, unpacked);
}

#endif
