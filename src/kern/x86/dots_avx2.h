/* SPDX-License-Identifier: MIT
 *
 * What the loops over `vpmaddubsw` share.  Only for *_avx2.c.
 */
#ifndef TN_DOTS_AVX2_H
#define TN_DOTS_AVX2_H

#include <immintrin.h>

#include "base/compiler.h"

/* sum + two products of unsigned codes and signed x in each 16-bit lane.  The sum stays in its
 * register: gcc else adds products in pairs first, which then wait on the stack, or copies sums
 * that live across an iteration. */
static TN_ALWAYS_INLINE __m256i add_pairs(__m256i sum, __m256i codes, __m256i x)
{
    sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(codes, x));
    __asm__("" : "+x"(sum));
    return sum;
}

#endif
