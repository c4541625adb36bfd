/* SPDX-License-Identifier: MIT
 *
 * The Walsh-Hadamard transform in NEON.  Inside a vector a butterfly is the swapped vector plus
 * the vector itself with the signs of the second halves changed: a + b first, then a - b.
 */
#include <arm_neon.h>

#include "kern/hadamard.h"
#include "kern/kern.h"

typedef float32x4_t vec_t;
#define LANES 4u
#define load vld1q_f32
#define store vst1q_f32
#define add vaddq_f32
#define sub vsubq_f32
#define mul vmulq_f32
#define splat vdupq_n_f32

/* v with the sign changed in the lanes whose highest bits are set in low (0, 1) and high (2, 3). */
static inline vec_t negate(vec_t v, uint64_t low, uint64_t high)
{
    const uint32x4_t minus = vreinterpretq_u32_u64(vcombine_u64(vcreate_u64(low),
                                                                vcreate_u64(high)));
    return vreinterpretq_f32_u32(veorq_u32(vreinterpretq_u32_f32(v), minus));
}

static inline vec_t lanes(vec_t v)
{
    const uint64_t second = UINT64_C(0x8000000000000000), both = UINT64_C(0x8000000080000000);
    v = add(vrev64q_f32(v), negate(v, second, second));
    return add(vextq_f32(v, v, 2), negate(v, 0, both));
}

HADAMARD_DEFINE(neon)
