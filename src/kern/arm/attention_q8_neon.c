/* SPDX-License-Identifier: MIT
 *
 * Attention over a q8 cache, NEON, with the loops of attention_q8_words.h.
 *
 * The four bytes of a lane are widened to words and multiplied by four factors with smlal; the four
 * sums of a lane are added at the end of a tile.  Per 16 bytes 4 instructions widen, and each query
 * head takes 2 loads of factors and 4 smlal.
 *
 * Sums are exact in int32: of 256 products at most 256 * 128 * 32639 < 2^30.
 */
#include <string.h>

#include "base/half.h"
#include "kern/arm/attention_q8_lanes_neon.h"
#include "kern/arm/lanes_neon.h"

#define F16_MAX 65504.0f

/* Up to TN_KV_BLOCK factors of up to 4 heads, zero-padded to a multiple of 8. */
struct factors {
    int16_t x16[4][TN_KV_BLOCK];
    float scale[4];
};

#include "kern/attention_q8_words.h"

static TN_ALWAYS_INLINE void dot_lanes(ivec dots[4], const uint8_t *lanes, uint32_t group_bytes,
                                       uint32_t n_groups, const struct factors *f, uint32_t n_q)
{
    int32x4_t sum[4][4];
    for (uint32_t h = 0; h < 4; h++)
        for (uint32_t j = 0; j < 4; j++)
            sum[h][j] = vdupq_n_s32(0);
    for (uint32_t g = 0; g < n_groups; g++, lanes += group_bytes) {
        /* Bytes are 128 too large: flipping the top bit makes them signed. */
        int8x16_t bytes = vreinterpretq_s8_u8(veorq_u8(vld1q_u8(lanes), vdupq_n_u8(0x80)));
        int16x8_t low = vmovl_s8(vget_low_s8(bytes)), high = vmovl_s8(vget_high_s8(bytes));
        for (uint32_t h = 0; h < n_q; h++) {
            int16x4_t factors = vld1_s16(f->x16[h] + 4 * g);
            int16x8_t twice = vcombine_s16(factors, factors);
            sum[h][0] = vmlal_s16(sum[h][0], vget_low_s16(low), factors);
            sum[h][1] = vmlal_high_s16(sum[h][1], low, twice);
            sum[h][2] = vmlal_s16(sum[h][2], vget_low_s16(high), factors);
            sum[h][3] = vmlal_high_s16(sum[h][3], high, twice);
        }
    }
    for (uint32_t h = 0; h < n_q; h++)
        dots[h] = (ivec)vpaddq_s32(vpaddq_s32(sum[h][0], sum[h][1]),
                                   vpaddq_s32(sum[h][2], sum[h][3]));
}

static void take_query(struct factors *f, uint32_t h, const int8_t *q, uint16_t scale, uint32_t n)
{
    for (uint32_t k = 0; k < n; k += 8)
        vst1q_s16(f->x16[h] + k, vmovl_s8(vld1_s8(q + k)));
    f->scale[h] = tn_f16_to_f32(scale);
}

static void round_weights(struct factors *dst, const float *p, size_t p_stride, uint32_t n_q,
                          const uint16_t *scales, uint32_t n_pos)
{
    const float limit = (float)TN_I16_MAX;
    float w[TN_KV_BLOCK];
    for (uint32_t h = 0; h < n_q; h++) {
        float a = weigh(w, p + h * p_stride, scales, n_pos);
        for (uint32_t t = 0; t < n_pos; t += 8)
            vst1q_s16(dst->x16[h] + t, round_8(w + t, limit / a));
        dst->scale[h] = a / limit;
    }
}

ATTENTION_Q8_DEFINE(neon)

void tn_kv_store_q8_neon(void *dst, uint16_t *scales, const float *x, uint32_t dim)
{
    int8_t *out = dst;
    for (uint32_t start = 0; start < dim; start += BLOCK) {
        uint32_t end = TN_MIN(dim, start + BLOCK);
        float32x4_t max = vdupq_n_f32(0.0f);
        for (uint32_t d = start; d < end; d += 4)
            max = max_abs(max, vld1q_f32(x + d));
        float wanted = vmaxvq_f32(max) / 127.0f;
        uint16_t half = tn_f32_to_f16(TN_MIN(wanted, F16_MAX));
        float scale = tn_f16_to_f32(half);
        scales[start / BLOCK] = half;
        for (uint32_t d = start; d < end; d += 8) {
            int16x4_t words[2];
            for (uint32_t j = 0; j < 2; j++) {
                float32x4_t v = vdivq_f32(vld1q_f32(x + d + 4 * j), vdupq_n_f32(scale));
                words[j] = vmovn_s32(vcvtnq_s32_f32(clamp(v, 127.0f)));
            }
            int8x8_t q = vmovn_s16(vcombine_s16(words[0], words[1]));
            vst1_s8(out + d, scale > 0.0f ? q : vdup_n_s8(0));
        }
    }
}
