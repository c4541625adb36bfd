/* SPDX-License-Identifier: MIT
 *
 * The selection of bits of kern/t5.h for AVX-512, which has an instruction for it.  GCC 12 does not
 * find it where the mask is a constant.  Only for *_avx512.c.
 */
#ifndef TN_SELECT_AVX512_H
#define TN_SELECT_AVX512_H

#include <immintrin.h>

#define T5_SELECT(mask, a, b) \
    ((word_t)_mm512_ternarylogic_epi64((__m512i)(b), (__m512i)(a), (__m512i)(mask), 0xd8))

#endif
