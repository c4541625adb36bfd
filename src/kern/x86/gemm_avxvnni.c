/* SPDX-License-Identifier: MIT
 *
 * Ternary matrix times many int8 vectors for AVX-VNNI (the 256-bit `vpdpbusd` of CPUs without
 * AVX-512).  2 vectors of 8 rows x up to 6 tokens: 12 dot products of 32 multiply-adds and 2 + 6
 * loads per group.
 */
#include "kern/x86/gemm_few_avx2.h"
#include "kern/x86/gemm_unpack_avx2.h"
#include "kern/x16_gemm.h"
#include "kern/x8_gemm.h"

#define TILE_TOKENS 6u

/* n (a constant) tokens x 16 rows. */
static TN_ALWAYS_INLINE void multiply_rows(int32_t *dst, size_t dst_stride, const uint8_t *panel,
                                           uint32_t n_groups, const int8_t *x, size_t x_stride,
                                           const int32_t *x_sum, const uint32_t n)
{
    __m256i sum[TILE_TOKENS][2];
#pragma GCC unroll 6
    for (uint32_t t = 0; t < n; t++)
        for (uint32_t i = 0; i < 2; i++)
            sum[t][i] = x_sum ? _mm256_set1_epi32(-x_sum[t])
                              : _mm256_load_si256((void *)(dst + t * dst_stride + 8 * i));
    for (uint32_t g = 0; g < n_groups; g++, panel += 256, x += 4) {
        const __m256i w0 = _mm256_load_si256((const void *)panel);
        const __m256i w1 = _mm256_load_si256((const void *)(panel + 32));
#pragma GCC unroll 6
        for (uint32_t t = 0; t < n; t++) {
            const __m256i v = _mm256_set1_epi32((int)tn_load_u32(x + t * x_stride));
            sum[t][0] = _mm256_dpbusd_avx_epi32(sum[t][0], w0, v);
            sum[t][1] = _mm256_dpbusd_avx_epi32(sum[t][1], w1, v);
        }
    }
#pragma GCC unroll 6
    for (uint32_t t = 0; t < n; t++)
        for (uint32_t i = 0; i < 2; i++)
            _mm256_store_si256((void *)(dst + t * dst_stride + 8 * i), sum[t][i]);
}

static void multiply(int32_t *dst, size_t dst_stride, const uint8_t *panel, uint32_t n_groups,
                     const int8_t *x, size_t x_stride, const int32_t *x_sum, uint32_t n_tokens)
{
#define ROWS(n)                                                                                    \
    multiply_rows(dst + r, dst_stride, panel + 4 * r, n_groups, x, x_stride, x_sum, n)
    for (uint32_t r = 0; r < GEMM_PANEL_ROWS; r += 16)
        SWITCH_6(n_tokens, ROWS)
#undef ROWS
}

static const struct gemm_level level = {512, TILE_TOKENS, multiply};

GEMM_DEFINE_ALL_FEW(avxvnni, FEW_TOKENS)
X16_GEMM_DEFINE(avxvnni)
X8_GEMM_DEFINE(avxvnni)
