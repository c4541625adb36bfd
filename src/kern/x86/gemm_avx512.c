/* SPDX-License-Identifier: MIT
 *
 * Ternary matrix times many int8 vectors for AVX-512 VNNI.
 *
 * The panels of gemm_panel.h have the order that `vpdpbusd` takes: 4 vectors of 16 rows per group.
 * 4 vectors x up to 6 tokens are 24 accumulators; per group 4 + 6 loads feed 24 dot products of 64
 * multiply-adds.
 */
#include <immintrin.h>

#include "kern/gemm_panel.h"
#include "kern/x16_gemm.h"
#include "kern/x86/dots_avx512.h"
#include "kern/x86/gemm_few_avx512.h"
#include "kern/x8_gemm.h"

/* `vpdpbusd` takes unsigned codes. */
static TN_ALWAYS_INLINE __m512i panel_bytes(__m512i codes)
{
    return codes;
}

#include "kern/x86/gemm_unpack_avx512.h"

/* ---- multiplying ---- */

#define TILE_TOKENS 6u

int32_t tn_sum_i8_avx512(const int8_t *x, uint32_t n)
{
    const __m512i one = _mm512_set1_epi8(1);
    __m512i sum = _mm512_setzero_si512();
    for (uint32_t i = 0; i < n; i += 64)
        sum = _mm512_dpbusd_epi32(sum, one, _mm512_load_si512(x + i));
    return _mm512_reduce_add_epi32(sum);
}

/* Loads four columns of 64 rows and keeps them in registers: gcc would load them again for each
 * input, and the loads would take longer than the products. */
static TN_ALWAYS_INLINE void load_group(__m512i w[4], const uint8_t *panel)
{
#pragma GCC unroll 4
    for (uint32_t i = 0; i < 4; i++) {
        w[i] = _mm512_load_si512(panel + 64 * i);
        __asm__("" : "+v"(w[i]));
    }
}

/* Sums of 64 rows += a group times the input's four columns at x. */
static TN_ALWAYS_INLINE void multiply_group(__m512i sum[4], const __m512i w[4], const int8_t *x)
{
    const __m512i v = _mm512_set1_epi32((int)tn_load_u32(x));
#pragma GCC unroll 4
    for (uint32_t i = 0; i < 4; i++)
        sum[i] = add_dots(sum[i], w[i], v);
}

/* n (a constant) tokens x 64 rows; x_sum NULL: the sums continue from dst. */
static TN_ALWAYS_INLINE void multiply_tile(int32_t *dst, size_t dst_stride, const uint8_t *panel,
                                           uint32_t n_groups, const int8_t *x, size_t x_stride,
                                           const int32_t *x_sum, const uint32_t n)
{
    __m512i sum[TILE_TOKENS][4];
#pragma GCC unroll 6
    for (uint32_t t = 0; t < n; t++)
#pragma GCC unroll 4
        for (uint32_t i = 0; i < 4; i++)
            sum[t][i] = x_sum ? _mm512_set1_epi32(-x_sum[t])
                              : _mm512_load_si512(dst + t * dst_stride + 16 * i);
    for (uint32_t g = 0; g < n_groups; g++, panel += 256, x += 4) {
        __m512i w[4];
        load_group(w, panel);
#pragma GCC unroll 6
        for (uint32_t t = 0; t < n; t++)
            multiply_group(sum[t], w, x + t * x_stride);
    }
#pragma GCC unroll 6
    for (uint32_t t = 0; t < n; t++)
#pragma GCC unroll 4
        for (uint32_t i = 0; i < 4; i++)
            _mm512_store_si512(dst + t * dst_stride + 16 * i, sum[t][i]);
}

static void multiply(int32_t *dst, size_t dst_stride, const uint8_t *panel, uint32_t n_groups,
                     const int8_t *x, size_t x_stride, const int32_t *x_sum, uint32_t n_tokens)
{
#define TILE(n) multiply_tile(dst, dst_stride, panel, n_groups, x, x_stride, x_sum, n)
    SWITCH_6(n_tokens, TILE)
#undef TILE
}

static const struct gemm_level level = {512, TILE_TOKENS, multiply};

GEMM_DEFINE_ALL_FEW(avx512, FEW_TOKENS)

/* ---- inputs in 16 bits ---- */

/* 16 sums (two digits of two inputs) and 5 operands fit in registers. */
#define X16_TILE_TOKENS 2u

/* y of 16 rows += ((256 * high + low) * scales) * factor. */
static TN_ALWAYS_INLINE void x16_store(float *y, __m512i high, __m512i low, const float *scales,
                                       __m512 factor)
{
    const __m512 sum = _mm512_cvtepi32_ps(_mm512_add_epi32(_mm512_slli_epi32(high, 8), low));
    const __m512 v = _mm512_mul_ps(_mm512_mul_ps(sum, _mm512_load_ps(scales)), factor);
    _mm512_store_ps(y, _mm512_add_ps(_mm512_load_ps(y), v));
}

/* n (a constant) inputs. */
static TN_ALWAYS_INLINE void x16_inputs(const struct scaled_batch *b, const uint8_t *run,
                                        uint32_t col, uint32_t n_cols, const float *scales,
                                        const uint32_t n)
{
    __m512i high[X16_TILE_TOKENS][4], low[X16_TILE_TOKENS][4];
    struct x16 x[X16_TILE_TOKENS];
#pragma GCC unroll 2
    for (uint32_t i = 0; i < n; i++) {
        x[i] = x16_of(b->inputs + i * b->input_bytes, b->cols);
        high[i][0] = high[i][1] = high[i][2] = high[i][3] = _mm512_setzero_si512();
        low[i][0] = low[i][1] = low[i][2] = low[i][3] =
            _mm512_set1_epi32(-x16_sum(&x[i], col, n_cols));
    }
    for (uint32_t c = col; c < col + n_cols; c += 4, run += 256) {
        __m512i w[4];
        load_group(w, run);
#pragma GCC unroll 2
        for (uint32_t i = 0; i < n; i++) {
            multiply_group(high[i], w, x[i].high + c);
            multiply_group(low[i], w, x[i].low + c);
        }
    }
#pragma GCC unroll 2
    for (uint32_t i = 0; i < n; i++) {
        const __m512 factor = _mm512_set1_ps(x[i].factors[col / TN_X16_BLOCK]);
        float *y = b->dst + i * b->dst_stride;
#pragma GCC unroll 4
        for (uint32_t j = 0; j < 4; j++)
            x16_store(y + 16 * j, high[i][j], low[i][j], scales + 16 * j, factor);
    }
}

static void x16_tile(const struct scaled_batch *b, const uint8_t *run, uint32_t col,
                     uint32_t n_cols, const float *scales, uint32_t n)
{
    if (n == 1)
        x16_inputs(b, run, col, n_cols, scales, 1);
    else
        x16_inputs(b, run, col, n_cols, scales, 2);
}

X16_GEMM_DEFINE_TILE(avx512, x16_tile, X16_TILE_TOKENS)

/* ---- inputs in 8 bits ---- */

/* 12 sums in int32, 12 in f32 and 5 operands fit in registers. */
#define X8_TILE_TOKENS 3u

/* n (a constant) inputs. */
static TN_ALWAYS_INLINE void x8_inputs(const struct scaled_batch *b, const uint8_t *run,
                                       uint32_t col, uint32_t n_cols, const float *scales,
                                       const uint32_t n)
{
    const size_t x_bytes = b->input_bytes;
    const struct x8 first = x8_of(b->inputs, b->cols, col);
    __m512 y[X8_TILE_TOKENS][4];
#pragma GCC unroll 3
    for (uint32_t i = 0; i < n; i++)
        y[i][0] = y[i][1] = y[i][2] = y[i][3] = _mm512_setzero_ps();
    for (uint32_t k = 0; k < n_cols / TN_X8_BLOCK; k++) {
        __m512i sum[X8_TILE_TOKENS][4];
        const int8_t *q = first.q + k * TN_X8_BLOCK;
#pragma GCC unroll 3
        for (uint32_t i = 0; i < n; i++)
            sum[i][0] = sum[i][1] = sum[i][2] = sum[i][3] =
                _mm512_set1_epi32(x8_next(&first, x_bytes, i).starts[k]);
#pragma GCC unroll 8
        for (uint32_t g = 0; g < X8_BLOCK_GROUPS; g++, run += 256, q += 4) {
            __m512i w[4];
            load_group(w, run);
#pragma GCC unroll 3
            for (uint32_t i = 0; i < n; i++)
                multiply_group(sum[i], w, q + i * x_bytes);
        }
#pragma GCC unroll 3
        for (uint32_t i = 0; i < n; i++) {
            const __m512 f = _mm512_set1_ps(x8_next(&first, x_bytes, i).factors[k]);
#pragma GCC unroll 4
            for (uint32_t j = 0; j < 4; j++)
                y[i][j] = _mm512_add_ps(y[i][j], _mm512_mul_ps(_mm512_cvtepi32_ps(sum[i][j]), f));
        }
    }
#pragma GCC unroll 3
    for (uint32_t i = 0; i < n; i++)
#pragma GCC unroll 4
        for (uint32_t j = 0; j < 4; j++) {
            float *out = b->dst + i * b->dst_stride + 16 * j;
            const __m512 scaled = _mm512_mul_ps(y[i][j], _mm512_load_ps(scales + 16 * j));
            _mm512_store_ps(out, _mm512_add_ps(_mm512_load_ps(out), scaled));
        }
}

static void x8_tile(const struct scaled_batch *b, const uint8_t *run, uint32_t col, uint32_t n_cols,
                    const float *scales, uint32_t n)
{
    if (n == 1)
        x8_inputs(b, run, col, n_cols, scales, 1);
    else if (n == 2)
        x8_inputs(b, run, col, n_cols, scales, 2);
    else
        x8_inputs(b, run, col, n_cols, scales, 3);
}

X8_GEMM_DEFINE_TILE(avx512, x8_tile, X8_TILE_TOKENS)
