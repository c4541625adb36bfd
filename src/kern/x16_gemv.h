/* SPDX-License-Identifier: MIT
 *
 * The loop of gemv_t2_x16.  Private to x16_<isa>.c: it is included behind what it calls,
 *
 *   struct digits   the digits of up to 128 columns in the order that the level wants
 *   take_digits     fills it from n_cols columns, 64 or 128
 *   sum_tile        sum[i] = sum of code * q, i < 64, over n_groups groups of 4 columns of a tile
 *                   and asks for the bytes of the tile X16_AHEAD_BYTES further
 */
#ifndef TN_X16_GEMV_H
#define TN_X16_GEMV_H

#include "kern/x16.h"

/* Scales that are asked for early: those of two or four runs of a band. */
#define X16_SCALES_AHEAD 1024u

/* A band of 64 to 256 rows.  The digits of a run stay in the first-level cache for its tiles. */
static TN_ALWAYS_INLINE void x16_band(float *y, const struct tn_scaled_ternary *m, uint32_t row,
                                      const struct x16 *x)
{
    const struct tn_ternary *w = &m->w;
    const uint32_t n_tiles = t2_band_tiles(w, row), n_cols = tn_x16_run(m);
    const size_t first_scale = (size_t)row * tn_n_groups(w->cols, m->group);
    memset(y, 0, n_tiles * TERN_T2_TILE_ROWS * sizeof *y);
    for (uint32_t col = 0; col < w->cols; col += n_cols) {
        const uint8_t *tile =
            t2_run(w, row, col / TERN_T2_COL_ALIGN) + col % TERN_T2_COL_ALIGN / 4 * 64;
        size_t at = first_scale + (size_t)(col / m->group) * n_tiles * 64;
        struct digits digits;
        take_digits(&digits, x->high + col, x->low + col, n_cols);
        for (uint32_t t = 0; t < n_tiles; t++, tile += T2_RUN_BYTES, at += 64) {
            _Alignas(64) int32_t sum[64];
            _Alignas(64) float scales[64];
            sum_tile(sum, tile, n_cols / 4, &digits);
            TN_PREFETCH((const uint8_t *)m->scales + at * (m->is_f16 ? 2 : 4) + X16_SCALES_AHEAD);
            x16_scales(scales, m, at);
            x16_add(y + TERN_T2_TILE_ROWS * t, sum, x16_sum(x, col, n_cols), scales,
                    x->factors[col / TN_X16_BLOCK]);
        }
    }
}

#define X16_GEMV_DEFINE(isa)                                                                       \
    void tn_gemv_t2_x16_##isa(float *dst, const struct tn_scaled_ternary *m, uint32_t row_begin,   \
                              uint32_t row_end, const void *x16)                                   \
    {                                                                                              \
        const struct x16 x = x16_of(x16, m->w.cols);                                               \
        for (uint32_t row = row_begin; row < row_end; row += TERN_T2_BAND_ROWS)                    \
            x16_band(dst + (row - row_begin), m, row, &x);                                         \
    }

#endif
