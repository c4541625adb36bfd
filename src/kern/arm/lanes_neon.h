/* SPDX-License-Identifier: MIT
 *
 * Lane-order sums and masks for the NEON float kernels: four registers hold the 16 lanes of the
 * LANE ORDER (kern.h).  Only for *_neon.c.  Products and sums are separate operations; contraction
 * is off, so the compiler does not fuse them.
 */
#ifndef TN_LANES_NEON_H
#define TN_LANES_NEON_H

#include <arm_neon.h>
#include <string.h>

#include "base/compiler.h"

/* Loads four halves as f32. */
static inline float32x4_t load4_f16(const void *p)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)));
}

/* Loads the first n values at p, zeros after them; n >= 1, all four from 4 on. */
static inline float32x4_t load_first(const float *p, uint32_t n)
{
    if (n >= 4)
        return vld1q_f32(p);
    float four[4] = {0};
    memcpy(four, p, n * sizeof *p);
    return vld1q_f32(four);
}

/* Stores the first n values of v. */
static inline void store_first(float *p, float32x4_t v, uint32_t n)
{
    if (n >= 4) {
        vst1q_f32(p, v);
        return;
    }
    float four[4];
    vst1q_f32(four, v);
    memcpy(p, four, n * sizeof *p);
}

/* The steps + 8, + 4 and + 2 of tn_tree_sum_f32. */
static inline float32x2_t tree_pair(const float32x4_t lanes[4])
{
    float32x4_t a = vaddq_f32(vaddq_f32(lanes[0], lanes[2]), vaddq_f32(lanes[1], lanes[3]));
    return vadd_f32(vget_low_f32(a), vget_high_f32(a));
}

static inline float tree_sum(const float32x4_t lanes[4])
{
    float32x2_t pair = tree_pair(lanes);
    return vget_lane_f32(vpadd_f32(pair, pair), 0);
}

/* max(so_far, |v|); ignores NaN. */
static inline float32x4_t max_abs(float32x4_t so_far, float32x4_t v)
{
    return vmaxnmq_f32(vabsq_f32(v), so_far);
}

/* Clamps to [-limit, limit]; NaN gives limit. */
static inline float32x4_t clamp(float32x4_t v, float limit)
{
    v = vminnmq_f32(v, vdupq_n_f32(limit));
    return vmaxnmq_f32(v, vdupq_n_f32(-limit));
}

#endif
