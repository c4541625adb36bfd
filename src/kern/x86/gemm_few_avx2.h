/* SPDX-License-Identifier: MIT
 *
 * T2 times 2 to 8 int8 vectors with AVX2, for gemm_avx2.c and gemm_avxvnni.c: the weights are read
 * once, in file order, and nothing is stored between unpacking and multiplying.
 *
 * Two groups of a tile, 4 columns each, are interleaved: a 16-bit lane then holds the bytes of one
 * row.  Field q of both bytes, shifted down and masked, is the codes of columns q and 4 + q, which
 * `vpmaddubsw` multiplies by a pair of inputs: a sum is at most 508, the 64 of a run fit int16. 32
 * rows are processed together, so that a broadcast pair is used twice: loading it takes as long as
 * multiplying.  For 32 rows x 8 columns 16 instructions unpack, and each vector takes 8 + 8 more:
 * 0.0625 per weight each.
 */
#ifndef TN_GEMM_FEW_AVX2_H
#define TN_GEMM_FEW_AVX2_H

#include <immintrin.h>

#include "kern/gemm_few.h"
#include "kern/gemm_panel.h"

#define FEW_TILE 4u      /* vectors that share the unpacked codes */
#define FEW_RUN_PAIRS (T2_RUN_GROUPS / 2)
#define FEW_X_DWORDS 4u  /* for a pair of groups and a vector */

/* Runs whose inputs are prepared together. */
#define FEW_RUNS 16u
_Static_assert(FEW_RUNS * FEW_RUN_PAIRS * FEW_TOKENS * FEW_X_DWORDS * 4 <= TN_GEMM_SCRATCH_BYTES,
               "the prepared inputs fit the scratch memory");

/* dst [n_runs][FEW_RUN_PAIRS][n][FEW_X_DWORDS]: for each of the four codes of a byte the inputs of
 * both groups, repeated twice. */
static inline void few_prepare(int32_t *dst, const int8_t *x, size_t x_stride, uint32_t n_runs,
                               uint32_t n)
{
    const __m128i order = _mm_setr_epi8(0, 4, 0, 4, 1, 5, 1, 5, 2, 6, 2, 6, 3, 7, 3, 7);
    for (uint32_t p = 0; p < n_runs * FEW_RUN_PAIRS; p++)
        for (uint32_t t = 0; t < n; t++, dst += FEW_X_DWORDS) {
            const __m128i v = _mm_loadl_epi64((const void *)(x + t * x_stride + 8 * p));
            _mm_store_si128((void *)dst, _mm_shuffle_epi8(v, order));
        }
}

/* dst[0..7] and dst[16..23] += the 16 sums. */
static TN_ALWAYS_INLINE void few_add(int32_t *dst, __m256i sum)
{
    __m256i *low = (__m256i *)(void *)dst, *high = (__m256i *)(void *)(dst + 16);
    const __m256i a = _mm256_cvtepi16_epi32(_mm256_castsi256_si128(sum));
    const __m256i b = _mm256_cvtepi16_epi32(_mm256_extracti128_si256(sum, 1));
    _mm256_store_si256(low, _mm256_add_epi32(_mm256_load_si256(low), a));
    _mm256_store_si256(high, _mm256_add_epi32(_mm256_load_si256(high), b));
}

static TN_ALWAYS_INLINE __m256i few_multiply(__m256i sum, __m256i codes, int32_t x)
{
    return _mm256_add_epi16(sum, _mm256_maddubs_epi16(codes, _mm256_set1_epi32(x)));
}

/* One run of 32 rows times n (a constant) vectors; the first pass prefetches the lines ahead. */
static TN_ALWAYS_INLINE void few_rows(int32_t *dst, size_t dst_stride, const uint8_t *run,
                                      bool is_first, const int32_t *x, uint32_t x_step,
                                      const uint32_t n)
{
    const __m256i m3 = _mm256_set1_epi8(3);
    __m256i sum[FEW_TILE][2];
#pragma GCC unroll 4
    for (uint32_t t = 0; t < n; t++)
        sum[t][0] = sum[t][1] = _mm256_setzero_si256();
    for (uint32_t p = 0; p < FEW_RUN_PAIRS; p++, run += 128, x += x_step) {
        const __m256i v = _mm256_load_si256((const void *)run);
        const __m256i w = _mm256_load_si256((const void *)(run + 64));
        const __m256i low = _mm256_unpacklo_epi8(v, w), high = _mm256_unpackhi_epi8(v, w);
        if (is_first) {
            tn_request(run, TN_PREFETCH_OF(T2_FEW));
            tn_request(run + 64, TN_PREFETCH_OF(T2_FEW));
        }
#pragma GCC unroll 4
        for (int q = 0; q < 4; q++) {
            const __m256i a = _mm256_and_si256(_mm256_srli_epi16(low, 2 * q), m3);
            const __m256i b = _mm256_and_si256(_mm256_srli_epi16(high, 2 * q), m3);
#pragma GCC unroll 4
            for (uint32_t t = 0; t < n; t++) {
                const int32_t xt = x[FEW_X_DWORDS * t + (uint32_t)q];
                sum[t][0] = few_multiply(sum[t][0], a, xt);
                sum[t][1] = few_multiply(sum[t][1], b, xt);
                /* Pins each sum to a register: otherwise gcc copies all of them every time. */
                __asm__("" : "+x"(sum[t][0]), "+x"(sum[t][1]));
            }
        }
    }
#pragma GCC unroll 4
    for (uint32_t t = 0; t < n; t++) {
        few_add(dst + t * dst_stride, sum[t][0]);
        few_add(dst + t * dst_stride + 8, sum[t][1]);
    }
}

/* One run of a tile. */
static inline void few_tile(int32_t *dst, size_t dst_stride, const uint8_t *run, const int32_t *x,
                            uint32_t n_tokens)
{
    const uint32_t x_step = FEW_X_DWORDS * n_tokens;
    for (uint32_t t = 0, n; t < n_tokens; t += n) {
        n = TN_MIN(n_tokens - t > FEW_TILE ? (n_tokens - t + 1) / 2 : n_tokens - t, FEW_TILE);
        int32_t *out = dst + t * dst_stride;
        const int32_t *xt = x + FEW_X_DWORDS * t;
        for (uint32_t i = 0; i < 2; i++, out += 32) {
            const uint8_t *rows = run + 32 * i;
            const bool is_first = t == 0 && i == 0;
#define ROWS(n) few_rows(out, dst_stride, rows, is_first, xt, x_step, n)
            SWITCH_4(n, ROWS)
#undef ROWS
        }
    }
}

static const struct few_level few_level = {FEW_RUNS, FEW_RUN_PAIRS * FEW_X_DWORDS, few_prepare,
                                           few_tile};

/* gemm_t2_i8 for n_tokens <= FEW_TOKENS. */
static void few_t2(int32_t *dst, size_t dst_stride, const struct tn_ternary *w, uint32_t row_begin,
                   uint32_t row_end, const int8_t *x, size_t x_stride, const int32_t *x_sum,
                   uint32_t n_tokens, void *scratch)
{
    few_gemm(&few_level, dst, dst_stride, w, row_begin, row_end, x, x_stride, x_sum, n_tokens,
             scratch);
}

#endif
