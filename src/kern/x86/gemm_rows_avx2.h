/* SPDX-License-Identifier: MIT
 *
 * Multiplies a panel for gemm_avx2.c and gemm_avxvnni.c, 16 rows at a time: 2 vectors of 8 rows
 * times up to TILE_TOKENS inputs.  The including file defines before the include
 *
 *   TILE_TOKENS                   inputs whose sums stay in registers, and its TILE_SWITCH
 *   __m256i dot(sum, codes, x)    sum += codes times x, 4 bytes of each row
 *   __m256i sums_of(sum)          int32 sums of 8 rows
 *   __m256i start_at(start)       a value that sums_of turns into start, |start| <= 4064
 */
#ifndef TN_GEMM_ROWS_AVX2_H
#define TN_GEMM_ROWS_AVX2_H

#include <immintrin.h>

#include "kern/x16_gemm.h"
#include "kern/x8_gemm.h"

/* sum += n_groups of a panel times n (a constant) inputs. */
static TN_ALWAYS_INLINE void dot_rows(__m256i sum[][2], const uint8_t *panel, uint32_t n_groups,
                                      const int8_t *x, size_t x_stride, const uint32_t n)
{
    for (uint32_t g = 0; g < n_groups; g++, panel += 256, x += 4) {
        const __m256i w0 = _mm256_load_si256((const void *)panel);
        const __m256i w1 = _mm256_load_si256((const void *)(panel + 32));
#pragma GCC unroll 6
        for (uint32_t t = 0; t < n; t++) {
            const __m256i v = _mm256_set1_epi32((int)tn_load_u32(x + t * x_stride));
            sum[t][0] = dot(sum[t][0], w0, v);
            sum[t][1] = dot(sum[t][1], w1, v);
        }
    }
}

static TN_ALWAYS_INLINE void multiply_rows(int32_t *dst, size_t dst_stride, const uint8_t *panel,
                                           uint32_t n_groups, const int8_t *x, size_t x_stride,
                                           const int32_t *x_sum, const uint32_t n)
{
    __m256i sum[TILE_TOKENS][2];
#pragma GCC unroll 6
    for (uint32_t t = 0; t < n; t++)
        sum[t][0] = sum[t][1] = _mm256_setzero_si256();
    dot_rows(sum, panel, n_groups, x, x_stride, n);
#pragma GCC unroll 6
    for (uint32_t t = 0; t < n; t++)
        for (uint32_t j = 0; j < 2; j++) {
            __m256i *out = (__m256i *)(void *)(dst + t * dst_stride + 8 * j);
            const __m256i first = x_sum ? _mm256_set1_epi32(-x_sum[t]) : _mm256_load_si256(out);
            _mm256_store_si256(out, _mm256_add_epi32(first, sums_of(sum[t][j])));
        }
}

/* The multiply function of struct gemm_level. */
static void multiply(int32_t *dst, size_t dst_stride, const uint8_t *panel, uint32_t n_groups,
                     const int8_t *x, size_t x_stride, const int32_t *x_sum, uint32_t n_tokens)
{
#define ROWS(n)                                                                                    \
    multiply_rows(dst + r, dst_stride, panel + 4 * r, n_groups, x, x_stride, x_sum, n)
    for (uint32_t r = 0; r < GEMM_PANEL_ROWS; r += 16)
        TILE_SWITCH(n_tokens, ROWS)
#undef ROWS
}

/* ---- inputs in 16 bits ---- */

/* y of 8 rows += ((256 * high + low - x_sum) * scales) * factor. */
static TN_ALWAYS_INLINE void x16_store(float *y, __m256i high, __m256i low, int32_t x_sum,
                                       const float *scales, float factor)
{
    const __m256i sum = _mm256_add_epi32(_mm256_slli_epi32(high, 8), low);
    const __m256 v = _mm256_cvtepi32_ps(_mm256_sub_epi32(sum, _mm256_set1_epi32(x_sum)));
    const __m256 scaled = _mm256_mul_ps(_mm256_mul_ps(v, _mm256_load_ps(scales)),
                                        _mm256_set1_ps(factor));
    _mm256_store_ps(y, _mm256_add_ps(_mm256_load_ps(y), scaled));
}

/* n (a constant) inputs of two digits. */
static TN_ALWAYS_INLINE void x16_rows(const struct scaled_batch *b, const uint8_t *run,
                                      uint32_t col, uint32_t n_cols, const float *scales,
                                      uint32_t row, const uint32_t n)
{
    __m256i sum[TILE_TOKENS][2];
#pragma GCC unroll 6
    for (uint32_t t = 0; t < 2 * n; t++)
        sum[t][0] = sum[t][1] = _mm256_setzero_si256();
    dot_rows(sum, run + 4 * row, n_cols / 4, (const int8_t *)b->inputs + col, b->input_bytes / 2,
             2 * n);
#pragma GCC unroll 3
    for (uint32_t i = 0; i < n; i++) {
        const struct x16 x = x16_of(b->inputs + i * b->input_bytes, b->cols);
        const int32_t x_sum = x16_sum(&x, col, n_cols);
        const float factor = x.factors[col / TN_X16_BLOCK];
        for (uint32_t j = 0; j < 2; j++)
            x16_store(b->dst + i * b->dst_stride + row + 8 * j, sums_of(sum[2 * i][j]),
                      sums_of(sum[2 * i + 1][j]), x_sum, scales + row + 8 * j, factor);
    }
}

static void x16_tile(const struct scaled_batch *b, const uint8_t *run, uint32_t col,
                     uint32_t n_cols, const float *scales, uint32_t n)
{
#define ROWS(n) x16_rows(b, run, col, n_cols, scales, r, n)
    for (uint32_t r = 0; r < GEMM_PANEL_ROWS; r += 16)
        switch (n) {
            SWITCH_CASE(1, ROWS)
            SWITCH_CASE(2, ROWS)
#if TILE_TOKENS >= 6
            SWITCH_CASE(3, ROWS)
#endif
        }
#undef ROWS
}

/* ---- inputs in 8 bits ---- */

/* n (a constant) inputs: t of 16 rows += the block's sums * factor. */
static TN_ALWAYS_INLINE void x8_block(float t[][16], const uint8_t *panel, const struct x8 *x,
                                      size_t x_bytes, const uint32_t n)
{
    __m256i sum[TILE_TOKENS][2];
#pragma GCC unroll 6
    for (uint32_t i = 0; i < n; i++)
        sum[i][0] = sum[i][1] = start_at(*x8_next(x, x_bytes, i).starts);
    dot_rows(sum, panel, X8_BLOCK_GROUPS, x->q, x_bytes, n);
#pragma GCC unroll 6
    for (uint32_t i = 0; i < n; i++) {
        const __m256 f = _mm256_set1_ps(*x8_next(x, x_bytes, i).factors);
        for (uint32_t j = 0; j < 2; j++) {
            const __m256 v = _mm256_mul_ps(_mm256_cvtepi32_ps(sums_of(sum[i][j])), f);
            _mm256_store_ps(t[i] + 8 * j, _mm256_add_ps(_mm256_load_ps(t[i] + 8 * j), v));
        }
    }
}

static TN_ALWAYS_INLINE void x8_rows(const struct scaled_batch *b, const uint8_t *run,
                                     uint32_t col, uint32_t n_cols, const float *scales,
                                     uint32_t row, const uint32_t n)
{
    _Alignas(32) float t[TILE_TOKENS][16];
    struct x8 x = x8_of(b->inputs, b->cols, col);
#pragma GCC unroll 6
    for (uint32_t i = 0; i < n; i++)
        memset(t[i], 0, sizeof t[i]);
    run += 4 * row;
    for (uint32_t k = 0; k < n_cols / TN_X8_BLOCK; k++, run += TN_X8_BLOCK * GEMM_PANEL_ROWS) {
        x8_block(t, run, &x, b->input_bytes, n);
        x = (struct x8){x.q + TN_X8_BLOCK, x.factors + 1, x.starts + 1};
    }
#pragma GCC unroll 6
    for (uint32_t i = 0; i < n; i++) {
        float *y = b->dst + i * b->dst_stride + row;
        for (uint32_t j = 0; j < 16; j += 8) {
            const __m256 v = _mm256_mul_ps(_mm256_load_ps(t[i] + j),
                                           _mm256_load_ps(scales + row + j));
            _mm256_store_ps(y + j, _mm256_add_ps(_mm256_load_ps(y + j), v));
        }
    }
}

static void x8_tile(const struct scaled_batch *b, const uint8_t *run, uint32_t col, uint32_t n_cols,
                    const float *scales, uint32_t n)
{
#define ROWS(n) x8_rows(b, run, col, n_cols, scales, r, n)
    for (uint32_t r = 0; r < GEMM_PANEL_ROWS; r += 16)
        TILE_SWITCH(n, ROWS)
#undef ROWS
}

#endif
