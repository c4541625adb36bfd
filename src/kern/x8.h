/* SPDX-License-Identifier: MIT
 *
 * Ternary products of 8-bit inputs with a factor for every 32 columns: the code that all levels
 * share. Private to x8_<isa>.c and gemm_<isa>.c; as with x16.h, each level compiles its own copy.
 *
 * A level supplies
 *   gemv: struct x8_digits, x8_take (loads the values of a run of columns in the level's order) and
 *         x8_sum_tile (64 rows of a run)
 *   gemm: a tile, or the one of x8_gemm.h
 */
#ifndef TN_X8_H
#define TN_X8_H

#include "kern/x16.h"

#define X8_BLOCK_GROUPS (TN_X8_BLOCK / 4)
#define X8_RUN_BLOCKS (128u / TN_X8_BLOCK) /* per long run */
#define X8_MOST 127

/* An input, from some block on. */
struct x8 {
    const int8_t *q;
    const float *factors;  /* of blocks of TN_X8_BLOCK columns */
    const int32_t *starts; /* minus the sum of each block */
};

static TN_ALWAYS_INLINE struct x8 x8_of(const void *memory, uint32_t cols, uint32_t col)
{
    const uint8_t *q = memory;
    const uint32_t padded = tn_kern_pad(cols), block = col / TN_X8_BLOCK;
    const float *factors = (const float *)(const void *)(q + padded);
    const int32_t *starts = (const int32_t *)(const void *)(q + padded / 8 * 9);
    return (struct x8){(const int8_t *)q + col, factors + block, starts + block};
}

/* ---- rounding ---- */

_Static_assert(X8_RUN_BLOCKS * TN_X8_BLOCK == TN_X16_BLOCK, "a run is a block of x16");

/* Four blocks, x [TN_X16_BLOCK]; factors and starts [4], minus_16 [8]. */
static TN_ALWAYS_INLINE void quant_x8_run(int8_t *restrict q, float *restrict factors,
                                          int32_t *restrict starts, int32_t *restrict minus_16,
                                          const float *restrict x)
{
    float s[X8_RUN_BLOCKS];
    int32_t v[TN_X16_BLOCK];
    for (uint32_t b = 0; b < X8_RUN_BLOCKS; b++)
        s[b] = x16_largest(x + b * TN_X8_BLOCK, TN_X8_BLOCK);
    for (uint32_t b = 0; b < X8_RUN_BLOCKS; b++) {
        const float a = s[b] > 1e-30f ? s[b] : 1e-30f;
        factors[b] = a / (float)X8_MOST;
        s[b] = (float)X8_MOST / a;
    }
    for (uint32_t b = 0; b < X8_RUN_BLOCKS; b++)
        for (uint32_t k = b * TN_X8_BLOCK; k < (b + 1) * TN_X8_BLOCK; k++)
            v[k] = x16_round(x[k] * s[b], X8_MOST);
    for (uint32_t k = 0; k < TN_X16_BLOCK; k++)
        q[k] = (int8_t)v[k];
    x16_minus_sums(minus_16, v);
    x16_add_pairs(starts, minus_16, X8_RUN_BLOCKS);
}

static TN_ALWAYS_INLINE void quant_x8(void *memory, const float *x, uint32_t n)
{
    const uint32_t padded = tn_kern_pad(n);
    int8_t *q = memory;
    float *factors = (float *)(void *)(q + padded);
    int32_t *starts = (int32_t *)(void *)(q + padded / 8 * 9);
    int32_t *minus_16 = (int32_t *)(void *)(q + padded / 8 * 10);
    float last[TN_X16_BLOCK];
    for (uint32_t k = 0; k < padded; k += TN_X16_BLOCK)
        quant_x8_run(q + k, factors + k / TN_X8_BLOCK, starts + k / TN_X8_BLOCK, minus_16 + k / 16,
                     x16_block(last, x, k, n));
}

/* ---- 64 rows ---- */

/* y += t * scales. */
static TN_ALWAYS_INLINE void x8_add(float *restrict y, const float *restrict t,
                                    const float *restrict scales)
{
    for (uint32_t i = 0; i < 64; i++)
        y[i] += t[i] * scales[i];
}

/* x8_sum_tiles of x8_gemv.h for levels where several inputs gain only from the cached weights. */
#define X8_TILE_BY_TILE                                                                            \
    static TN_ALWAYS_INLINE void x8_sum_tiles(float (*sum)[64], const uint8_t *tile,               \
                                              uint32_t n_blocks, const struct x8_digits *d,        \
                                              const struct x8 *x, uint32_t n, struct lines lines)  \
    {                                                                                              \
        for (uint32_t t = 0; t < n; t++)                                                           \
            x8_sum_tile(sum[t], tile, n_blocks, &d[t], &x[t], lines);                              \
    }

#define X8_INPUTS_DEFINE(isa)                                                                      \
    void tn_quant_x8_##isa(void *x8, const float *x, uint32_t n)                                   \
    {                                                                                              \
        quant_x8(x8, x, n);                                                                        \
    }

#endif
