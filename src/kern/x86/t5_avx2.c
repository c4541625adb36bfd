/* SPDX-License-Identifier: MIT
 *
 * Unpacking of T5 for AVX2: words of 32 bytes.
 */
#include <stdint.h>

typedef uint64_t word_t __attribute__((vector_size(32), may_alias));

#include "kern/kern.h"
#include "kern/prefetch.h"
#include "kern/t5.h"

T5_UNPACK_DEFINE(avx2)
