/* SPDX-License-Identifier: MIT
 *
 * What the loops over `vpdpbusd` share.  Only for *_avx512.c.
 */
#ifndef TN_DOTS_AVX512_H
#define TN_DOTS_AVX512_H

#include <immintrin.h>

#include "base/compiler.h"

/* sum + four products of unsigned codes and signed x in each 32-bit lane.  The sum stays in its
 * register: gcc else copies sums that live across an iteration, each time, which takes as many
 * instructions as a third of the products. */
static TN_ALWAYS_INLINE __m512i add_dots(__m512i sum, __m512i codes, __m512i x)
{
    sum = _mm512_dpbusd_epi32(sum, codes, x);
    __asm__("" : "+v"(sum));
    return sum;
}

#endif
