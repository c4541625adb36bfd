/* SPDX-License-Identifier: MIT
 *
 * Ternary matrix times many int8 vectors for AVX-VNNI (the 256-bit `vpdpbusd` of CPUs without
 * AVX-512).  2 vectors of 8 rows x up to 6 tokens: 12 dot products of 32 multiply-adds and 2 + 6
 * loads per group.
 */
#include "kern/x86/gemm_few_avx2.h"
#include "kern/x86/gemm_unpack_avx2.h"

#define TILE_TOKENS 6u
#define TILE_SWITCH SWITCH_6

static TN_ALWAYS_INLINE __m256i dot(__m256i sum, __m256i codes, __m256i x)
{
    sum = _mm256_dpbusd_avx_epi32(sum, codes, x);
    __asm__("" : "+x"(sum)); /* as in dots_avx512.h */
    return sum;
}

static TN_ALWAYS_INLINE __m256i sums_of(__m256i sum)
{
    return sum;
}

static TN_ALWAYS_INLINE __m256i start_at(int32_t start)
{
    return _mm256_set1_epi32(start);
}

#include "kern/x86/gemm_rows_avx2.h"

static const struct gemm_level level = {512, TILE_TOKENS, multiply};

GEMM_DEFINE_ALL_FEW(avxvnni, FEW_TOKENS)
X16_GEMM_DEFINE_TILE(avxvnni, x16_tile, TILE_TOKENS / 2)
X8_GEMM_DEFINE_TILE(avxvnni, x8_tile, TILE_TOKENS)
