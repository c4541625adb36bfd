/* SPDX-License-Identifier: MIT
 *
 * unpack_t5 for AVX-512: compiles the logic of kern/t5.h for words of 64 bytes, a vector type of
 * the compiler.
 */
#include <immintrin.h>
#include <stdint.h>

typedef uint64_t word_t __attribute__((vector_size(64), may_alias));

/* The compiler does not find that three operands are enough where the mask is a constant. */
#define T5_SELECT(mask, a, b) \
    ((word_t)_mm512_ternarylogic_epi64((__m512i)(b), (__m512i)(a), (__m512i)(mask), 0xd8))

#include "kern/kern.h"
#include "kern/prefetch.h"
#include "kern/t5.h"

T5_UNPACK_DEFINE(avx512)
