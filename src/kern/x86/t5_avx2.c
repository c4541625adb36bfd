/* SPDX-License-Identifier: MIT
 *
 * unpack_t5 for AVX2: compiles the logic of kern/t5.h for words of 32 bytes, a vector type of the
 * compiler.
 */
#define T5_WORD_BYTES 32

#include "kern/kern.h"
#include "kern/prefetch.h"
#include "kern/t5.h"

T5_UNPACK_DEFINE(avx2)
