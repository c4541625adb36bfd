/* SPDX-License-Identifier: MIT
 *
 * Attention over a q8 cache in portable C: exact integer sums.  The specification of attn_qk_q8,
 * attn_pv_q8 and kv_store_q8 (kern.h).
 */
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "kern/kern.h"

#define BLOCK TN_KV_SCALE_VALUES
#define F16_MAX 65504.0f

/* Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits. */
#define ROUND_TO_INT 12582912.0f

/* rne(v) clamped to [-limit, limit]; NaN gives the limit. */
static int32_t round_clamped(float v, float limit)
{
    v = v < limit ? v : limit;
    v = v > -limit ? v : -limit;
    return (int32_t)(tn_f32_to_bits(v + ROUND_TO_INT) - tn_f32_to_bits(ROUND_TO_INT));
}

static float max_abs(const float *x, uint32_t n, float at_least)
{
    float a = at_least;
    for (uint32_t k = 0; k < n; k++)
        a = fabsf(x[k]) > a ? fabsf(x[k]) : a;
    return a;
}

/* Rounds to i16 as defined in kern.h; returns a / 32639. */
static float round_i16(int16_t *dst, const float *x, uint32_t n)
{
    const float limit = (float)TN_I16_MAX;
    float a = max_abs(x, n, 1e-30f);
    float s = limit / a;
    for (uint32_t k = 0; k < n; k++)
        dst[k] = (int16_t)round_clamped(x[k] * s, limit);
    return a / limit;
}

/* Adds the terms of columns [d, d + n), n <= 64, of one head to its scores. */
static void qk_block(float *score, const int8_t *q, float q_scale, const uint8_t *k,
                     const uint16_t *k_scales, uint32_t n_pos, uint32_t dim, uint32_t d, uint32_t n)
{
    for (uint32_t t = 0; t < n_pos; t++) {
        int32_t sum = 0; /* at most 64 * 128 * 128 = 2^20 */
        for (uint32_t j = 0; j < n; j++)
            sum += (k[tn_kv_q8_key_at(t, d + j, dim)] - 128) * q[d + j];
        score[t] += (float)sum * tn_f16_to_f32(k_scales[t]) * q_scale;
    }
}

void tn_attn_qk_q8_ref(float *s, size_t s_stride, const int8_t *q, const uint16_t *q_scales,
                       uint32_t n_q, const void *k, const uint16_t *k_scales, uint32_t n_pos,
                       uint32_t dim, float factor)
{
    for (uint32_t i = 0; i < n_q; i++) {
        float *score = s + i * s_stride;
        memset(score, 0, n_pos * sizeof score[0]);
        for (uint32_t d = 0; d < dim; d += BLOCK)
            qk_block(score, q + (size_t)i * dim, tn_f16_to_f32(*q_scales++), k,
                     k_scales + d / BLOCK * TN_KV_BLOCK, n_pos, dim, d, TN_MIN(BLOCK, dim - d));
        for (uint32_t t = 0; t < n_pos; t++)
            score[t] *= factor;
    }
}

/* Adds columns [d, d + n), n <= 64, of one head. */
static void pv_block(float *o, const float *p, const uint8_t *v, const uint16_t *v_scales,
                     uint32_t n_pos, uint32_t dim, uint32_t d, uint32_t n)
{
    float w[TN_KV_BLOCK];
    int16_t w16[TN_KV_BLOCK];
    for (uint32_t t = 0; t < n_pos; t++)
        w[t] = p[t] * tn_f16_to_f32(v_scales[t]);
    float w_scale = round_i16(w16, w, n_pos);
    for (uint32_t j = 0; j < n; j++) {
        int32_t sum = 0; /* at most 256 * 128 * 32639 < 2^30 */
        for (uint32_t t = 0; t < n_pos; t++)
            sum += (v[tn_kv_q8_value_at(t, d + j, dim)] - 128) * w16[t];
        o[d + j] = (float)sum * w_scale;
    }
}

void tn_attn_pv_q8_ref(float *o, const float *p, size_t p_stride, uint32_t n_q, const void *v,
                       const uint16_t *v_scales, uint32_t n_pos, uint32_t dim, const void *next)
{
    (void)next;
    for (uint32_t i = 0; i < n_q; i++)
        for (uint32_t d = 0; d < dim; d += BLOCK)
            pv_block(o + (size_t)i * dim, p + i * p_stride, v,
                     v_scales + d / BLOCK * TN_KV_BLOCK, n_pos, dim, d, TN_MIN(BLOCK, dim - d));
}

void tn_kv_store_q8_ref(void *dst, uint16_t *scales, const float *x, uint32_t dim)
{
    int8_t *out = dst;
    for (uint32_t d = 0; d < dim; d += BLOCK) {
        uint32_t n = TN_MIN(BLOCK, dim - d);
        float wanted = max_abs(x + d, n, 0.0f) / 127.0f;
        uint16_t half = tn_f32_to_f16(wanted < F16_MAX ? wanted : F16_MAX);
        float scale = tn_f16_to_f32(half);
        scales[d / BLOCK] = half;
        for (uint32_t j = 0; j < n; j++)
            out[d + j] = scale > 0.0f ? (int8_t)round_clamped(x[d + j] / scale, 127.0f) : 0;
    }
}
