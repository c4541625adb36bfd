/* SPDX-License-Identifier: MIT
 *
 * Half floats converted with F16C, which every level from AVX2 on has.  Private to the kernels of
 * those levels, which load scales with it.
 */
#ifndef TN_HALVES_F16C_H
#define TN_HALVES_F16C_H

#include <immintrin.h>
#include <stdint.h>

/* Converts 64 halves. */
static inline void halves_64(float *dst, const uint16_t *h)
{
    for (uint32_t i = 0; i < 64; i += 8)
        _mm256_storeu_ps(dst + i, _mm256_cvtph_ps(_mm_loadu_si128((const void *)(h + i))));
}

#endif
