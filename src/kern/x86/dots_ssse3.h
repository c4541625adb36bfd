/* SPDX-License-Identifier: MIT
 *
 * The addition of `pmaddubsw` products, shared by the loops of several kernels.  Only for
 * *_ssse3.c.
 */
#ifndef TN_DOTS_SSSE3_H
#define TN_DOTS_SSSE3_H

#include <tmmintrin.h>

#include "base/compiler.h"

/* sum + two products of unsigned codes and signed x in each 16-bit lane.  Inline assembly, because
 * gcc would add the sum to the products and copy it back every time. */
static TN_ALWAYS_INLINE __m128i add_pairs(__m128i sum, __m128i codes, __m128i x)
{
    __asm__("paddw %1, %0" : "+x"(sum) : "x"(_mm_maddubs_epi16(codes, x)));
    return sum;
}

#endif
