/* SPDX-License-Identifier: MIT
 *
 * The Walsh-Hadamard transform in portable C: the specification of hadamard_f32 (kern.h), with the
 * butterflies of hadamard.h on single floats.
 */
#include "kern/hadamard.h"
#include "kern/kern.h"

void tn_hadamard_f32_ref(float *x, uint32_t n, uint32_t block)
{
    const float scale = tn_hadamard_scale(block);
    for (uint32_t i = 0; i < n; i += block)
        tn_hadamard_block(x + i, block, scale);
}
