/* SPDX-License-Identifier: MIT
 *
 * Unpacking of T5: the specification.
 */
#include <stdint.h>

typedef uint64_t word_t __attribute__((may_alias));

#include "kern/kern.h"
#include "kern/prefetch.h"
#include "kern/t5.h"

T5_UNPACK_DEFINE(ref)
