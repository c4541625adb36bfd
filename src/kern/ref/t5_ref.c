/* SPDX-License-Identifier: MIT
 *
 * Unpacking of T5 in portable C: the specification of unpack_t5 (kern.h), with the logic of t5.h on
 * words of 64 bits.
 */
#include "kern/kern.h"
#include "kern/prefetch.h"
#include "kern/t5.h"

T5_UNPACK_DEFINE(ref)
