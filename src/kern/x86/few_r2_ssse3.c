/* SPDX-License-Identifier: MIT
 *
 * Rows of R2 times selected inputs for SSSE3: `pmaddubsw` multiplies the codes of one field of 16
 * bytes with 16 inputs and adds pairs.  The four fields of a line add at most 4 * 508 to an int16,
 * so that 16 lines fit before they are widened.
 */
#include <tmmintrin.h>

#include "kern/few_r2.h"

#define CHUNK_BLOCKS 4u
_Static_assert(CHUNK_BLOCKS * 4 * 4 * 508 <= 32767, "the sums of a chunk fit int16");

/* Adds one line of 16 bytes; `at` is the column of its first byte. */
static TN_ALWAYS_INLINE void add_line(__m128i *pairs, const uint8_t *line, const int8_t *const *x,
                                      size_t at, const uint32_t n)
{
    const __m128i bytes = _mm_load_si128((const void *)line);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        const __m128i codes = _mm_and_si128(_mm_srli_epi16(bytes, 2 * i), _mm_set1_epi8(3));
#pragma GCC unroll 4
        for (uint32_t k = 0; k < n; k++)
            pairs[k] = _mm_add_epi16(
                pairs[k],
                _mm_maddubs_epi16(codes, _mm_load_si128((const void *)(x[k] + at + 64 * i))));
    }
}

static inline int32_t total(__m128i v)
{
    v = _mm_add_epi32(v, _mm_shuffle_epi32(v, 0x4E));
    return _mm_cvtsi128_si32(_mm_add_epi32(v, _mm_shuffle_epi32(v, 0xB1)));
}

static TN_ALWAYS_INLINE void sum_row(int32_t *sums, const struct few_r2_row *row,
                                     const int8_t *const *x, const uint32_t n)
{
    const __m128i one = _mm_set1_epi16(1);
    __m128i sum[FEW_R2_MOST], pairs[FEW_R2_MOST];
    for (uint32_t k = 0; k < n; k++)
        sum[k] = _mm_setzero_si128();
    for (uint32_t begin = 0, b = 0; begin < row->n_blocks; begin += CHUNK_BLOCKS) {
        for (uint32_t k = 0; k < n; k++)
            pairs[k] = _mm_setzero_si128();
        for (; b < TN_MIN(begin + CHUNK_BLOCKS, row->n_blocks); b++) {
            tn_request_l1(row->near + 64 * b, TN_PREFETCH_OF(R2_FEW));
            for (uint32_t j = 0; j < 64; j += 16)
                add_line(pairs, row->row + 64 * b + j, x, 256 * b + j, n);
        }
        for (uint32_t k = 0; k < n; k++)
            sum[k] = _mm_add_epi32(sum[k], _mm_madd_epi16(pairs[k], one));
    }
    for (uint32_t k = 0; k < n; k++)
        sums[k] = total(sum[k]);
}

FEW_R2_DEFINE(ssse3, sum_row)
