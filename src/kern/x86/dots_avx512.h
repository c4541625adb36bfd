/* SPDX-License-Identifier: MIT
 *
 * The addition of `vpdpbusd` products, shared by the loops of several kernels.  Only for
 * *_avx512.c.
 */
#ifndef TN_DOTS_AVX512_H
#define TN_DOTS_AVX512_H

#include <immintrin.h>

#include "base/compiler.h"

/* sum + four products of unsigned codes and signed x in each 32-bit lane.  Inline assembly keeps
 * the sum in its register: gcc would copy sums that live across an iteration every time, which
 * takes a third as many instructions as the products. */
static TN_ALWAYS_INLINE __m512i add_dots(__m512i sum, __m512i codes, __m512i x)
{
    sum = _mm512_dpbusd_epi32(sum, codes, x);
    __asm__("" : "+v"(sum));
    return sum;
}

#endif
