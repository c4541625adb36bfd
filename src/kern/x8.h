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

/* x [TN_X8_BLOCK]; returns the factor. */
static TN_ALWAYS_INLINE float quant_x8_block(int8_t *restrict q, int32_t *restrict start,
                                             int32_t *restrict halves, const float *restrict x)
{
    const float largest = x16_largest(x, TN_X8_BLOCK), a = largest > 1e-30f ? largest : 1e-30f;
    const float s = (float)X8_MOST / a;
    int32_t v[TN_X8_BLOCK];
    for (uint32_t k = 0; k < TN_X8_BLOCK; k++)
        v[k] = x16_round(x[k] * s, X8_MOST);
    for (uint32_t k = 0; k < TN_X8_BLOCK; k++)
        q[k] = (int8_t)v[k];
    for (uint32_t i = 0; i < 2; i++) {
        int32_t sum = 0;
        for (uint32_t k = 0; k < 16; k++)
            sum -= v[16 * i + k];
        halves[i] = sum;
    }
    *start = halves[0] + halves[1];
    return a / (float)X8_MOST;
}

static TN_ALWAYS_INLINE void quant_x8(void *memory, const float *x, uint32_t n)
{
    const uint32_t padded = tn_kern_pad(n);
    int8_t *q = memory;
    float *factors = (float *)(void *)(q + padded);
    int32_t *starts = (int32_t *)(void *)(q + padded / 8 * 9);
    int32_t *halves = (int32_t *)(void *)(q + padded / 8 * 10);
    for (uint32_t k = 0; k < padded; k += TN_X8_BLOCK, halves += 2) {
        float last[TN_X8_BLOCK];
        const float *block = x + k;
        if (n < k + TN_X8_BLOCK) { /* zeros past the end */
            const uint32_t left = n > k ? n - k : 0;
            memcpy(last, x + (left ? k : 0), left * sizeof *x);
            memset(last + left, 0, (TN_X8_BLOCK - left) * sizeof *x);
            block = last;
        }
        *factors++ = quant_x8_block(q + k, starts++, halves, block);
    }
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
                                              const struct x8 *x, uint32_t n)                      \
    {                                                                                              \
        for (uint32_t t = 0; t < n; t++)                                                           \
            x8_sum_tile(sum[t], tile, n_blocks, &d[t], &x[t]);                                     \
    }

#define X8_INPUTS_DEFINE(isa)                                                                      \
    void tn_quant_x8_##isa(void *x8, const float *x, uint32_t n)                                   \
    {                                                                                              \
        quant_x8(x8, x, n);                                                                        \
    }

#endif
