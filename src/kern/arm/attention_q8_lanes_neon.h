/* SPDX-License-Identifier: MIT
 *
 * Vectors and rounding for attention over a q8 cache.  Only for attention_q8_neon.c and
 * attention_q8_dotprod.c.
 */
#ifndef TN_ATTENTION_Q8_LANES_NEON_H
#define TN_ATTENTION_Q8_LANES_NEON_H

#include "kern/arm/lanes_neon.h"
#include "kern/kern.h"

#define LANES 4u

#include "kern/attention_q8_heads.h"

static TN_ALWAYS_INLINE fvec f32_of_f16(const uint16_t *p)
{
    return (fvec)load4_f16(p);
}

static TN_ALWAYS_INLINE void store_first_lanes(float *p, fvec v, uint32_t n)
{
    store_first(p, (float32x4_t)v, n);
}

/* w[t] = p[t] * scales[t], t < n_pos, zero-padded to a multiple of 8; returns the largest
 * magnitude, at least 1e-30. */
static float weigh(float w[TN_KV_BLOCK], const float *p, const uint16_t *scales, uint32_t n_pos)
{
    const uint32_t n_padded = (n_pos + 7) / 8 * 8;
    float32x4_t max = vdupq_n_f32(1e-30f);
    uint32_t t = 0;
    for (; t + 4 <= n_pos; t += 4) {
        float32x4_t weight = vmulq_f32(vld1q_f32(p + t), load4_f16(scales + t));
        vst1q_f32(w + t, weight);
        max = max_abs(max, weight);
    }
    for (; t < n_padded; t += 4) {
        float32x4_t weight = vdupq_n_f32(0.0f);
        if (t < n_pos) {
            /* Past the end the scale may be any value. */
            float four[4];
            vst1q_f32(four, load4_f16(scales + t));
            weight = vmulq_f32(load_first(p + t, n_pos - t), load_first(four, n_pos - t));
        }
        vst1q_f32(w + t, weight);
        max = max_abs(max, weight);
    }
    return vmaxvq_f32(max);
}

/* Eight weights times s = 32639 / a, rounded to i16.  Zero stays zero: 0 * s is never NaN. */
static inline int16x8_t round_8(const float *w, float s)
{
    const float limit = (float)TN_I16_MAX;
    int32x4_t low = vcvtnq_s32_f32(clamp(vmulq_n_f32(vld1q_f32(w), s), limit));
    int32x4_t high = vcvtnq_s32_f32(clamp(vmulq_n_f32(vld1q_f32(w + 4), s), limit));
    return vcombine_s16(vmovn_s32(low), vmovn_s32(high));
}

#endif
