/* SPDX-License-Identifier: MIT
 *
 * The Walsh-Hadamard transform in AVX-512.  Inside a vector a butterfly is the swapped vector plus
 * the vector itself with the signs of the second halves changed: a + b first, then a - b.
 */
#include <immintrin.h>

#include "kern/hadamard.h"
#include "kern/kern.h"

typedef __m512 vec_t;
#define LANES 16u
#define load _mm512_loadu_ps
#define store _mm512_storeu_ps
#define add _mm512_add_ps
#define sub _mm512_sub_ps
#define mul _mm512_mul_ps
#define splat _mm512_set1_ps

static inline vec_t lanes(vec_t v)
{
    const vec_t minus = splat(-0.0f);
    v = add(_mm512_permute_ps(v, 0xB1), _mm512_mask_xor_ps(v, 0xAAAA, v, minus));
    v = add(_mm512_permute_ps(v, 0x4E), _mm512_mask_xor_ps(v, 0xCCCC, v, minus));
    v = add(_mm512_shuffle_f32x4(v, v, 0xB1), _mm512_mask_xor_ps(v, 0xF0F0, v, minus));
    return add(_mm512_shuffle_f32x4(v, v, 0x4E), _mm512_mask_xor_ps(v, 0xFF00, v, minus));
}

HADAMARD_DEFINE(avx512)
