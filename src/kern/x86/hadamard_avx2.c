/* SPDX-License-Identifier: MIT
 *
 * The Walsh-Hadamard transform in AVX2.  Inside a vector a butterfly is the swapped vector plus
 * the vector itself with the signs of the second halves changed: a + b first, then a - b.
 */
#include <immintrin.h>

#include "kern/hadamard.h"
#include "kern/kern.h"

typedef __m256 vec_t;
#define LANES 8u
#define load _mm256_loadu_ps
#define store _mm256_storeu_ps
#define add _mm256_add_ps
#define sub _mm256_sub_ps
#define mul _mm256_mul_ps
#define splat _mm256_set1_ps

static inline vec_t lanes(vec_t v)
{
    const vec_t minus = splat(-0.0f), zero = _mm256_setzero_ps();
    v = add(_mm256_permute_ps(v, 0xB1), _mm256_xor_ps(v, _mm256_blend_ps(zero, minus, 0xAA)));
    v = add(_mm256_permute_ps(v, 0x4E), _mm256_xor_ps(v, _mm256_blend_ps(zero, minus, 0xCC)));
    return add(_mm256_permute2f128_ps(v, v, 1),
               _mm256_xor_ps(v, _mm256_blend_ps(zero, minus, 0xF0)));
}

HADAMARD_DEFINE(avx2)
