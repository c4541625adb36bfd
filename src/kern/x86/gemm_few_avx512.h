/* SPDX-License-Identifier: MIT
 *
 * T2 times 2 to 8 int8 vectors with AVX-512 VNNI, for gemm_avx512.c: the weights are read once, in
 * file order, and nothing is stored between unpacking and multiplying.
 *
 * Four groups are interleaved as in quads_avx512.h; each field of the bytes is shifted down and
 * multiplied by the inputs that few_prepare has combined.  For 64 rows x 16 columns 36 instructions
 * unpack, and each vector takes 16: 0.035 and 0.016 per weight.
 */
#ifndef TN_GEMM_FEW_AVX512_H
#define TN_GEMM_FEW_AVX512_H

#include <immintrin.h>

#include "kern/gemm_few.h"
#include "kern/switch.h"
#include "kern/x86/dots_avx512.h"
#include "kern/x86/quads_avx512.h"

#define FEW_RUN_QUADS (T2_RUN_GROUPS / 4)
#define FEW_X_DWORDS 4u /* for four groups and a vector */

/* Runs whose inputs are prepared together. */
#define FEW_RUNS 32u
_Static_assert(FEW_RUNS * FEW_RUN_QUADS * FEW_TOKENS * FEW_X_DWORDS * 4 <= TN_GEMM_SCRATCH_BYTES,
               "the prepared inputs fit the scratch memory");

/* dst [n_runs][FEW_RUN_QUADS][n][FEW_X_DWORDS]: for each of the four codes of a byte the inputs of
 * four groups. */
static inline void few_prepare(int32_t *dst, const int8_t *x, size_t x_stride, uint32_t n_runs,
                               uint32_t n)
{
    for (uint32_t q = 0; q < n_runs * FEW_RUN_QUADS; q++)
        for (uint32_t t = 0; t < n; t++, dst += FEW_X_DWORDS) {
            const __m128i v = _mm_load_si128((const void *)(x + t * x_stride + 16 * q));
            _mm_store_si128((void *)dst, _mm_shuffle_epi8(v, quads_order()));
        }
}

/* Half of the sums of one run (32), for n (a constant) vectors. */
static TN_ALWAYS_INLINE void few_multiply(__m512i sum[][2], const __m512i v[2], const int32_t *x,
                                          const uint32_t n)
{
    const __m512i code = _mm512_set1_epi8(3);
#pragma GCC unroll 4
    for (uint32_t k = 0; k < 4; k++) {
        const __m512i c0 = _mm512_and_si512(_mm512_srli_epi16(v[0], 2 * k), code);
        const __m512i c1 = _mm512_and_si512(_mm512_srli_epi16(v[1], 2 * k), code);
#pragma GCC unroll 8
        for (uint32_t t = 0; t < n; t++) {
            const __m512i xt = _mm512_set1_epi32(x[FEW_X_DWORDS * t + k]);
            sum[t][0] = add_dots(sum[t][0], c0, xt);
            sum[t][1] = add_dots(sum[t][1], c1, xt);
        }
    }
}

/* One run of a tile, n_halves (a constant) halves from `first` on, times n (a constant) vectors. */
static TN_ALWAYS_INLINE void few_run(int32_t *dst, size_t dst_stride, const uint8_t *run,
                                     const int32_t *x, const uint32_t first,
                                     const uint32_t n_halves, const uint32_t n)
{
    __m512i sum[2][FEW_TOKENS][2];
#pragma GCC unroll 2
    for (uint32_t h = 0; h < n_halves; h++)
#pragma GCC unroll 8
        for (uint32_t t = 0; t < n; t++)
#pragma GCC unroll 2
            for (uint32_t i = 0; i < 2; i++)
                sum[h][t][i] =
                    _mm512_load_si512(dst + t * dst_stride + 32 * (first + h) + 16 * i);
    for (uint32_t q = 0; q < FEW_RUN_QUADS; q++, run += 256, x += FEW_X_DWORDS * n) {
#pragma GCC unroll 4
        for (uint32_t i = 0; i < 4 && first == 0; i++)
            tn_request(run + 64 * i, TN_PREFETCH_OF(T2_FEW));
#pragma GCC unroll 2
        for (uint32_t h = 0; h < n_halves; h++) {
            __m512i v[2];
            quads_half(v, run, first + h);
            few_multiply(sum[h], v, x, n);
        }
    }
#pragma GCC unroll 2
    for (uint32_t h = 0; h < n_halves; h++)
#pragma GCC unroll 8
        for (uint32_t t = 0; t < n; t++)
#pragma GCC unroll 2
            for (uint32_t i = 0; i < 2; i++)
                _mm512_store_si512(dst + t * dst_stride + 32 * (first + h) + 16 * i,
                                   sum[h][t][i]);
}

/* n is a constant.  The sums of more than four vectors fit the registers only for half of the
 * rows. */
static TN_ALWAYS_INLINE void few_halves(int32_t *dst, size_t dst_stride, const uint8_t *run,
                                        const int32_t *x, const uint32_t n)
{
    const uint32_t n_halves = n > 4 ? 1 : 2;
#pragma GCC unroll 2
    for (uint32_t first = 0; first < 2; first += n_halves)
        few_run(dst, dst_stride, run, x, first, n_halves, n);
}

static inline void few_tile(int32_t *dst, size_t dst_stride, const uint8_t *run, const int32_t *x,
                            uint32_t n_tokens)
{
#define TILE(n) few_halves(dst, dst_stride, run, x, n)
    SWITCH_8(n_tokens, TILE)
#undef TILE
}

/* Puts 64 sums into natural order. */
static inline void few_sort(int32_t *dst)
{
    const __m512i v[4] = {_mm512_load_si512(dst), _mm512_load_si512(dst + 16),
                          _mm512_load_si512(dst + 32), _mm512_load_si512(dst + 48)};
    quads_store(dst, v);
}

static const struct few_level few_level = {FEW_RUNS, FEW_RUN_QUADS * FEW_X_DWORDS, few_prepare,
                                           few_tile};

/* gemm_t2_i8 for n_tokens <= FEW_TOKENS. */
static void few_t2(int32_t *dst, size_t dst_stride, const struct tn_ternary *w, uint32_t row_begin,
                   uint32_t row_end, const int8_t *x, size_t x_stride, const int32_t *x_sum,
                   uint32_t n_tokens, void *scratch)
{
    few_gemm(&few_level, dst, dst_stride, w, row_begin, row_end, x, x_stride, x_sum, n_tokens,
             scratch);
    for (uint32_t t = 0; t < n_tokens; t++)
        for (uint32_t r = row_begin; r < TN_MIN(row_end, w->rows); r += TERN_T2_TILE_ROWS)
            few_sort(dst + t * dst_stride + (r - row_begin));
}

#endif
