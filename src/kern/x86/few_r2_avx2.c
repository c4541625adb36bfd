/* SPDX-License-Identifier: MIT
 *
 * Rows of R2 times selected inputs for AVX2: `vpmaddubsw` multiplies the codes of one field of 32
 * bytes with 32 inputs and adds pairs.  The four fields of a line add at most 4 * 508 to an int16,
 * so that 16 lines fit before they are widened.  Per 128 columns 7 instructions unpack, each input
 * takes 8.
 */
#include <immintrin.h>

#include "kern/few_r2.h"

#define CHUNK_BLOCKS 8u
_Static_assert(CHUNK_BLOCKS * 2 * 4 * 508 <= 32767, "the sums of a chunk fit int16");

/* Adds one line of 32 bytes; `at` is the column of its first byte. */
static TN_ALWAYS_INLINE void add_line(__m256i *pairs, const uint8_t *line, const int8_t *const *x,
                                      size_t at, const uint32_t n)
{
    const __m256i bytes = _mm256_load_si256((const void *)line);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        const __m256i codes =
            _mm256_and_si256(_mm256_srli_epi16(bytes, 2 * i), _mm256_set1_epi8(3));
#pragma GCC unroll 4
        for (uint32_t k = 0; k < n; k++) {
            const __m256i v = _mm256_load_si256((const void *)(x[k] + at + 64 * i));
            pairs[k] = _mm256_add_epi16(pairs[k], _mm256_maddubs_epi16(codes, v));
            if (n > 2) /* otherwise gcc computes all products first and spills */
                __asm__("" : "+x"(pairs[k]));
        }
    }
}

static inline int32_t total(__m256i v)
{
    __m128i a = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    a = _mm_add_epi32(a, _mm_shuffle_epi32(a, 0x4E));
    return _mm_cvtsi128_si32(_mm_add_epi32(a, _mm_shuffle_epi32(a, 0xB1)));
}

static TN_ALWAYS_INLINE void sum_row(int32_t *sums, const struct few_r2_row *row,
                                     const int8_t *const *x, const uint32_t n)
{
    const __m256i one = _mm256_set1_epi16(1);
    __m256i sum[FEW_R2_MOST], pairs[FEW_R2_MOST];
#pragma GCC unroll 4
    for (uint32_t k = 0; k < n; k++)
        sum[k] = _mm256_setzero_si256();
    for (uint32_t begin = 0, b = 0; begin < row->n_blocks; begin += CHUNK_BLOCKS) {
#pragma GCC unroll 4
        for (uint32_t k = 0; k < n; k++)
            pairs[k] = _mm256_setzero_si256();
        for (; b < TN_MIN(begin + CHUNK_BLOCKS, row->n_blocks); b++) {
            tn_request_l2(row->far + 64 * b, TN_PREFETCH_OF(R2_FEW));
            tn_request_l1(row->near + 64 * b, TN_PREFETCH_OF(R2_FEW));
            add_line(pairs, row->row + 64 * b, x, 256 * b, n);
            add_line(pairs, row->row + 64 * b + 32, x, 256 * b + 32, n);
        }
#pragma GCC unroll 4
        for (uint32_t k = 0; k < n; k++)
            sum[k] = _mm256_add_epi32(sum[k], _mm256_madd_epi16(pairs[k], one));
    }
#pragma GCC unroll 4
    for (uint32_t k = 0; k < n; k++)
        sums[k] = total(sum[k]);
}

FEW_R2_DEFINE(avx2, sum_row)
