/* SPDX-License-Identifier: MIT
 *
 * tn_exp_f32 (kern/exp.h) of 4 values: the same operations in the same order.  Only for *_neon.c.
 */
#ifndef TN_EXP_NEON_H
#define TN_EXP_NEON_H

#include <arm_neon.h>

#include "kern/exp.h"

static inline float32x4_t exp_4(float32x4_t x)
{
    const float32x4_t magic = vdupq_n_f32(TN_EXP_ROUND);
    float32x4_t rounded = vaddq_f32(vmulq_n_f32(x, TN_EXP_LOG2E), magic);
    float32x4_t n = vsubq_f32(rounded, magic);
    float32x4_t r = vsubq_f32(x, vmulq_n_f32(n, TN_EXP_LN2_HI));
    r = vsubq_f32(r, vmulq_n_f32(n, TN_EXP_LN2_LO));
    float32x4_t p = vdupq_n_f32(TN_EXP_P4);
    p = vaddq_f32(vmulq_f32(p, r), vdupq_n_f32(TN_EXP_P3));
    p = vaddq_f32(vmulq_f32(p, r), vdupq_n_f32(TN_EXP_P2));
    p = vaddq_f32(vmulq_f32(p, r), vdupq_n_f32(TN_EXP_P1));
    p = vaddq_f32(vmulq_f32(p, r), vdupq_n_f32(TN_EXP_P0));
    p = vaddq_f32(vmulq_f32(vmulq_f32(r, r), p), r);
    p = vaddq_f32(p, vdupq_n_f32(1.0f));
    uint32x4_t exponent = vshlq_n_u32(vreinterpretq_u32_f32(rounded), 23);
    uint32x4_t y = vaddq_u32(vreinterpretq_u32_f32(p), exponent);

    uint32x4_t finite = vcleq_f32(x, vdupq_n_f32(TN_EXP_MAX));
    float32x4_t infinite = vaddq_f32(x, vdupq_n_f32(__builtin_inff()));
    y = vbslq_u32(finite, y, vreinterpretq_u32_f32(infinite));
    uint32x4_t flushed = vcltq_f32(x, vdupq_n_f32(TN_EXP_MIN));
    return vreinterpretq_f32_u32(vbicq_u32(y, flushed));
}

#endif
