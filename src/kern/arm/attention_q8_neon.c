/* SPDX-License-Identifier: MIT
 *
 * Attention over a q8 cache, NEON.  Sums are exact in int32, so their order is free; smlal adds
 * four int16 products.
 *
 * Sums:  q . k at most 64 * 128 * 32767 < 2^29;  p . v at most 256 * 128 * 32767 < 2^31.
 */
#include <string.h>

#include "base/half.h"
#include "kern/arm/lanes_neon.h"
#include "kern/kern.h"

#define BLOCK 64u     /* values that share a scale */
#define MAX_BLOCKS 8u /* of a row in attn_qk; longer ones, which no model has, are left to ref */
#define F16_MAX 65504.0f

/* i16 of n values (kern.h). Returns a / 32767. */
static float round_i16(int16_t *dst, const float *x, uint32_t n)
{
    float32x4_t max = vdupq_n_f32(1e-30f);
    for (uint32_t k = 0; k < n; k += 4)
        max = max_abs(max, load_first(x + k, n - k));
    float a = vmaxvq_f32(max);
    float s = 32767.0f / a;
    for (uint32_t k = 0; k < n; k += 4) {
        float32x4_t v = clamp(vmulq_n_f32(load_first(x + k, n - k), s), 32767.0f);
        int16_t four[4];
        vst1_s16(four, vmovn_s32(vcvtnq_s32_f32(v)));
        memcpy(dst + k, four, TN_MIN(n - k, 4) * sizeof *dst);
    }
    return a / 32767.0f;
}

/* Up to 4 rounded queries. */
struct queries {
    int16_t q16[4][MAX_BLOCKS * BLOCK];
    float scales[4][MAX_BLOCKS];
};

/* Scores of one key; n_q is a constant of at most 4 where this is inlined. */
static TN_ALWAYS_INLINE void qk_tile(float *s, size_t s_stride, const struct queries *q,
                                     uint32_t n_q, const int8_t *key, const uint16_t *scales,
                                     uint32_t dim, float factor)
{
    float score[4] = {0};
    for (uint32_t start = 0; start < dim; start += BLOCK) {
        uint32_t b = start / BLOCK, end = TN_MIN(dim, start + BLOCK);
        int32x4_t sum[4][2];
        for (uint32_t h = 0; h < 4; h++)
            sum[h][0] = sum[h][1] = vdupq_n_s32(0);
        for (uint32_t d = start; d < end; d += 8) {
            int16x8_t k = vmovl_s8(vld1_s8(key + d));
            for (uint32_t h = 0; h < n_q; h++) {
                int16x8_t query = vld1q_s16(q->q16[h] + d);
                sum[h][0] = vmlal_s16(sum[h][0], vget_low_s16(k), vget_low_s16(query));
                sum[h][1] = vmlal_high_s16(sum[h][1], k, query);
            }
        }
        float k_scale = tn_f16_to_f32(scales[b]);
        for (uint32_t h = 0; h < n_q; h++) {
            int32_t dot = vaddvq_s32(vaddq_s32(sum[h][0], sum[h][1]));
            score[h] += (float)dot * k_scale * q->scales[h][b];
        }
    }
    for (uint32_t h = 0; h < n_q; h++)
        s[h * s_stride] = score[h] * factor;
}

void tn_attn_qk_q8_neon(float *s, size_t s_stride, const float *q, uint32_t n_q, const void *k,
                        const uint16_t *k_scales, uint32_t n_pos, uint32_t dim, float factor)
{
    if (dim > MAX_BLOCKS * BLOCK) {
        tn_attn_qk_q8_ref(s, s_stride, q, n_q, k, k_scales, n_pos, dim, factor);
        return;
    }
    const size_t n_blocks = (dim + BLOCK - 1) / BLOCK;
    for (uint32_t h = 0; h < n_q; h += 4) {
        struct queries queries;
        uint32_t n = TN_MIN(4, n_q - h);
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t d = 0; d < dim; d += BLOCK)
                queries.scales[i][d / BLOCK] = round_i16(
                    queries.q16[i] + d, q + (size_t)(h + i) * dim + d, TN_MIN(BLOCK, dim - d));
        for (uint32_t t = 0; t < n_pos; t++) {
            float *score = s + h * s_stride + t;
            const int8_t *key = (const int8_t *)k + (size_t)t * dim;
            const uint16_t *scales = k_scales + t * n_blocks;
            if (n == 4)
                qk_tile(score, s_stride, &queries, 4, key, scales, dim, factor);
            else
                qk_tile(score, s_stride, &queries, n, key, scales, dim, factor);
        }
    }
}

/* The weights of up to 4 heads, rounded. */
struct weights {
    int16_t w16[4][TN_PV_CHUNK];
    float scale[4];
};

/* 16 columns, with which o and v begin; n_q is a constant of at most 4 where this is inlined. */
static TN_ALWAYS_INLINE void pv_tile(float *o, const int8_t *v, uint32_t n_pos, uint32_t dim,
                                     const struct weights *weights, uint32_t n_q)
{
    int32x4_t sum[4][4];
    for (uint32_t h = 0; h < 4; h++)
        for (uint32_t j = 0; j < 4; j++)
            sum[h][j] = vdupq_n_s32(0);
    for (uint32_t t = 0; t < n_pos; t++) {
        int8x16_t bytes = vld1q_s8(v + (size_t)t * dim);
        int16x8_t low = vmovl_s8(vget_low_s8(bytes)), high = vmovl_s8(vget_high_s8(bytes));
        for (uint32_t h = 0; h < n_q; h++) {
            int16_t w = weights->w16[h][t];
            sum[h][0] = vmlal_n_s16(sum[h][0], vget_low_s16(low), w);
            sum[h][1] = vmlal_high_n_s16(sum[h][1], low, w);
            sum[h][2] = vmlal_n_s16(sum[h][2], vget_low_s16(high), w);
            sum[h][3] = vmlal_high_n_s16(sum[h][3], high, w);
        }
    }
    for (uint32_t h = 0; h < n_q; h++) {
        for (uint32_t j = 0; j < 4; j++) {
            float *dst = o + (size_t)h * dim + 4 * j;
            float32x4_t term = vmulq_n_f32(vcvtq_f32_s32(sum[h][j]), weights->scale[h]);
            vst1q_f32(dst, vaddq_f32(vld1q_f32(dst), term));
        }
    }
}

/* At most 4 heads, TN_PV_CHUNK positions and one block of n_columns <= 64. */
static void pv_block(float *o, const float *p, size_t p_stride, uint32_t n_q, const int8_t *v,
                     const uint16_t *v_scales, uint32_t n_pos, uint32_t dim, uint32_t n_columns)
{
    const size_t n_blocks = (dim + BLOCK - 1) / BLOCK;
    struct weights weights;
    for (uint32_t h = 0; h < n_q; h++) {
        float w[TN_PV_CHUNK];
        for (uint32_t t = 0; t < n_pos; t++)
            w[t] = p[h * p_stride + t] * tn_f16_to_f32(v_scales[t * n_blocks]);
        weights.scale[h] = round_i16(weights.w16[h], w, n_pos);
    }
    for (uint32_t c = 0; c < n_columns; c += 16) {
        if (n_q == 4)
            pv_tile(o + c, v + c, n_pos, dim, &weights, 4);
        else
            pv_tile(o + c, v + c, n_pos, dim, &weights, n_q);
    }
}

void tn_attn_pv_q8_neon(float *o, const float *p, size_t p_stride, uint32_t n_q, const void *v,
                        const uint16_t *v_scales, uint32_t n_pos, uint32_t dim)
{
    const size_t n_blocks = (dim + BLOCK - 1) / BLOCK;
    memset(o, 0, (size_t)n_q * dim * sizeof o[0]);
    for (uint32_t t = 0; t < n_pos; t += TN_PV_CHUNK)
        for (uint32_t d = 0; d < dim; d += BLOCK)
            for (uint32_t h = 0; h < n_q; h += 4)
                pv_block(o + (size_t)h * dim + d, p + h * p_stride + t, p_stride,
                         TN_MIN(4, n_q - h), (const int8_t *)v + (size_t)t * dim + d,
                         v_scales + t * n_blocks + d / BLOCK, TN_MIN(TN_PV_CHUNK, n_pos - t), dim,
                         TN_MIN(BLOCK, dim - d));
}

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
