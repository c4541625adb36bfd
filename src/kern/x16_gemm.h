/* SPDX-License-Identifier: MIT
 *
 * The tile of gemm_t2_x16: the two digits of an input are multiplied as two inputs.  Private to
 * gemm_<isa>.c, which includes it after defining `level` and unpack_t2.
 */
#ifndef TN_X16_GEMM_H
#define TN_X16_GEMM_H

#include "kern/scaled_gemm.h"

#define X16_MOST_INPUTS 8u /* inputs of a multiply call, counting digits */

/* y of 64 rows += (256 * high + low - x_sum) * scales * factor. */
static TN_ALWAYS_INLINE void x16_add_digits(float *restrict y, const int32_t *restrict high,
                                            const int32_t *restrict low, int32_t x_sum,
                                            const float *restrict scales, float factor)
{
    for (uint32_t i = 0; i < 64; i++)
        y[i] += ((float)(high[i] * 256 + low[i] - x_sum) * scales[i]) * factor;
}

/* A scaled_tile_fn that uses the level's multiply. */
static TN_ALWAYS_INLINE void x16_tile_by_level(const struct gemm_level *level,
                                               const struct scaled_batch *b, const uint8_t *run,
                                               uint32_t col, uint32_t n_cols, const float *scales,
                                               uint32_t n)
{
    static const int32_t zeros[X16_MOST_INPUTS];
    _Alignas(64) int32_t sums[X16_MOST_INPUTS][GEMM_PANEL_ROWS];
    const uint8_t *first = b->inputs;
    level->multiply(sums[0], GEMM_PANEL_ROWS, run, n_cols / 4, (const int8_t *)first + col,
                    b->input_bytes / 2, zeros, 2 * n);
    for (uint32_t i = 0; i < n; i++) {
        const struct x16 x = x16_of(first + i * b->input_bytes, b->cols);
        x16_add_digits(b->dst + i * b->dst_stride, sums[2 * i], sums[2 * i + 1],
                       x16_sum(&x, col, n_cols), scales, x.factors[col / TN_X16_BLOCK]);
    }
}

#define X16_GEMM_DEFINE_TILE(isa, tile, tile_tokens)                                               \
    SCALED_GEMM_DEFINE(isa, x16, TN_X16_BYTES, tile, tile_tokens)

/* For levels that have no tile of x16. */
#define X16_GEMM_DEFINE(isa)                                                                       \
    _Static_assert(TILE_TOKENS % 2 == 0 && TILE_TOKENS <= X16_MOST_INPUTS, "whole inputs");        \
    static TN_ALWAYS_INLINE void x16_tile(const struct scaled_batch *b, const uint8_t *run,        \
                                          uint32_t col, uint32_t n_cols, const float *scales,      \
                                          uint32_t n)                                              \
    {                                                                                              \
        x16_tile_by_level(&level, b, run, col, n_cols, scales, n);                                 \
    }                                                                                              \
    X16_GEMM_DEFINE_TILE(isa, x16_tile, TILE_TOKENS / 2)

#endif
