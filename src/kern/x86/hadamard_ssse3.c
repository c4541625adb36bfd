/* SPDX-License-Identifier: MIT
 *
 * The Walsh-Hadamard transform in SSE.  Inside a vector a butterfly is the swapped vector plus
 * the vector itself with the signs of the second halves changed: a + b first, then a - b.
 */
#include <tmmintrin.h>

#include "kern/hadamard.h"
#include "kern/kern.h"

typedef __m128 vec_t;
#define LANES 4u
#define load _mm_loadu_ps
#define store _mm_storeu_ps
#define add _mm_add_ps
#define sub _mm_sub_ps
#define mul _mm_mul_ps
#define splat _mm_set1_ps

static inline vec_t lanes(vec_t v)
{
    const vec_t odd = _mm_setr_ps(0.0f, -0.0f, 0.0f, -0.0f);
    const vec_t upper = _mm_setr_ps(0.0f, 0.0f, -0.0f, -0.0f);
    v = add(_mm_shuffle_ps(v, v, 0xB1), _mm_xor_ps(v, odd));
    return add(_mm_shuffle_ps(v, v, 0x4E), _mm_xor_ps(v, upper));
}

HADAMARD_DEFINE(ssse3)
