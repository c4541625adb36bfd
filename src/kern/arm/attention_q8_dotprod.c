/* SPDX-License-Identifier: MIT
 *
 * Attention over a q8 cache, NEON with dot products: the loops of attention_q8_dot.h with four
 * registers of 4 lanes.  One `sdot` is 16 multiply-adds: 64 bytes of the cache cost 4 loads, 4 eor
 * and for each head and byte of the factor a broadcast and 4 dot products.  q . k keeps 4 heads x 4
 * = 16 accumulators, p . v 2 heads x 2 bytes x 4.
 */
#include "kern/arm/attention_q8_lanes_neon.h"
#include "kern/arm/lanes_neon.h"
#include "kern/kern.h"

#define VECS 4u
#define PV_HEADS 2
#define VEC_REGISTER "w"

#include "kern/attention_q8_dot.h"

/* The bytes are 128 too large: flipping the top bit makes them signed. */
static TN_ALWAYS_INLINE ivec load_bytes(const uint8_t *p)
{
    return (ivec)veorq_u8(vld1q_u8(p), vdupq_n_u8(0x80));
}

static TN_ALWAYS_INLINE ivec dot(ivec sum, ivec bytes, ivec factors)
{
    return (ivec)vdotq_s32((int32x4_t)sum, (int8x16_t)bytes, (int8x16_t)factors);
}

static TN_ALWAYS_INLINE int32_t excess_of(const int8_t *factors, uint32_t n)
{
    (void)factors, (void)n;
    return 0;
}

static TN_ALWAYS_INLINE void round_weights(struct weights *dst, const float *p, size_t p_stride,
                                           uint32_t n_q, const uint16_t *scales, uint32_t n_pos,
                                           const uint8_t *ahead)
{
    const float limit = (float)TN_I16_MAX;
    float w[TN_KV_BLOCK];
    (void)ahead;
    for (uint32_t h = 0; h < n_q; h++) {
        float a = weigh(w, p + h * p_stride, scales, n_pos);
        for (uint32_t t = 0; t < n_pos; t += 8) {
            /* 256 high + low, |low| <= 128 */
            int16x8_t words = round_8(w + t, limit / a);
            int32x2_t low = vreinterpret_s32_s8(vmovn_s16(words));
            int32x2_t high = vreinterpret_s32_s8(vrshrn_n_s16(words, 8));
            int32x2x2_t groups = vzip_s32(high, low);
            vst1_s8(dst->bytes[h] + 2 * t, vreinterpret_s8_s32(groups.val[0]));
            vst1_s8(dst->bytes[h] + 2 * t + 8, vreinterpret_s8_s32(groups.val[1]));
        }
        dst->start[h] = 0;
        dst->scale[h] = a / limit;
    }
}

ATTENTION_Q8_DEFINE(dotprod)
