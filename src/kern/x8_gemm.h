/* SPDX-License-Identifier: MIT
 *
 * The tile of gemm_t2_x8, one block of 32 columns at a time.  Private to gemm_<isa>.c, which
 * includes it after defining `level` and unpack_t2.
 */
#ifndef TN_X8_GEMM_H
#define TN_X8_GEMM_H

#include "kern/scaled_gemm.h"
#include "kern/x8.h"

/* Input i of a tile. */
static TN_ALWAYS_INLINE struct x8 x8_next(const struct x8 *x, size_t x_bytes, uint32_t i)
{
    const size_t n = i * (x_bytes / sizeof *x->factors);
    return (struct x8){x->q + i * x_bytes, x->factors + n, x->starts + n};
}

#define X8_MOST_INPUTS 8u /* inputs of a multiply call */

/* t of 64 rows += sums * factor. */
static TN_ALWAYS_INLINE void x8_add_block(float *restrict t, const int32_t *restrict sums,
                                          float factor)
{
    for (uint32_t i = 0; i < 64; i++)
        t[i] += (float)sums[i] * factor;
}

/* A scaled_tile_fn that uses the level's multiply, block by block. */
static TN_ALWAYS_INLINE void x8_tile_by_level(const struct gemm_level *level,
                                              const struct scaled_batch *b, const uint8_t *run,
                                              uint32_t col, uint32_t n_cols, const float *scales,
                                              uint32_t n)
{
    _Alignas(64) int32_t sums[X8_MOST_INPUTS][GEMM_PANEL_ROWS];
    _Alignas(64) float y[X8_MOST_INPUTS][GEMM_PANEL_ROWS] = {{0}};
    const struct x8 x = x8_of(b->inputs, b->cols, col);
    for (uint32_t k = 0; k < n_cols / TN_X8_BLOCK; k++, run += TN_X8_BLOCK * GEMM_PANEL_ROWS) {
        int32_t x_sum[X8_MOST_INPUTS];
        for (uint32_t i = 0; i < n; i++)
            x_sum[i] = -x8_next(&x, b->input_bytes, i).starts[k];
        level->multiply(sums[0], GEMM_PANEL_ROWS, run, X8_BLOCK_GROUPS, x.q + k * TN_X8_BLOCK,
                        b->input_bytes, x_sum, n);
        for (uint32_t i = 0; i < n; i++)
            x8_add_block(y[i], sums[i], x8_next(&x, b->input_bytes, i).factors[k]);
    }
    for (uint32_t i = 0; i < n; i++)
        x8_add(b->dst + i * b->dst_stride, y[i], scales);
}

#define X8_GEMM_DEFINE_TILE(isa, tile, tile_tokens)                                                \
    SCALED_GEMM_DEFINE(isa, x8, TN_X8_BYTES, tile, tile_tokens)

/* For levels that have no tile of x8. */
#define X8_GEMM_DEFINE(isa)                                                                        \
    _Static_assert(TILE_TOKENS <= X8_MOST_INPUTS, "a tile fits");                                  \
    static void x8_tile(const struct scaled_batch *b, const uint8_t *run, uint32_t col,            \
                        uint32_t n_cols, const float *scales, uint32_t n)                          \
    {                                                                                              \
        x8_tile_by_level(&level, b, run, col, n_cols, scales, n);                                  \
    }                                                                                              \
    X8_GEMM_DEFINE_TILE(isa, x8_tile, TILE_TOKENS)

#endif
