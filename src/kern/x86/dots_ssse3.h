/* SPDX-License-Identifier: MIT
 *
 * What the loops over `pmaddubsw` share.  Only for *_ssse3.c.
 */
#ifndef TN_DOTS_SSSE3_H
#define TN_DOTS_SSSE3_H

#include <tmmintrin.h>

#include "base/compiler.h"

/* sum + two products of unsigned codes and signed x in each 16-bit lane.  gcc would add to the
 * products, and copy the sum back every time. */
static TN_ALWAYS_INLINE __m128i add_pairs(__m128i sum, __m128i codes, __m128i x)
{
    __asm__("paddw %1, %0" : "+x"(sum) : "x"(_mm_maddubs_epi16(codes, x)));
    return sum;
}

#endif
