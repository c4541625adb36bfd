/* SPDX-License-Identifier: MIT
 *
 * The addition of `vpmaddubsw` products, shared by the loops of several kernels.  Only for
 * *_avx2.c.
 */
#ifndef TN_DOTS_AVX2_H
#define TN_DOTS_AVX2_H

#include <immintrin.h>

#include "base/compiler.h"

/* sum + two products of unsigned codes and signed x in each 16-bit lane.  Inline assembly keeps the
 * sum in its register: gcc would add products in pairs first and spill them, or copy sums that live
 * across an iteration. */
static TN_ALWAYS_INLINE __m256i add_pairs(__m256i sum, __m256i codes, __m256i x)
{
    sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(codes, x));
    __asm__("" : "+x"(sum));
    return sum;
}

#endif
