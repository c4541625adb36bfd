/* SPDX-License-Identifier: MIT
 *
 * Attention, portable C.  A cached row is first made f32, then used by every query head that
 * shares it.
 */
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "kern/exp.h"
#include "kern/kern.h"

#define Q8_BLOCK 64u     /* values that share a scale */
#define F16_MAX 65504.0f /* the largest finite f16 */

/* Where row t of the cache lies, and its 16 values from column d on as f32. */
typedef void load16_fn(float out[16], const void *rows, const uint16_t *scales, uint32_t dim,
                       uint32_t t, uint32_t d);

static TN_ALWAYS_INLINE void load16_f32(float out[16], const void *rows, const uint16_t *scales,
                                        uint32_t dim, uint32_t t, uint32_t d)
{
    (void)scales;
    memcpy(out, (const float *)rows + (size_t)t * dim + d, 16 * sizeof out[0]);
}

static TN_ALWAYS_INLINE void load16_f16(float out[16], const void *rows, const uint16_t *scales,
                                        uint32_t dim, uint32_t t, uint32_t d)
{
    (void)scales;
    const uint16_t *row = (const uint16_t *)rows + (size_t)t * dim + d;
    for (uint32_t j = 0; j < 16; j++)
        out[j] = tn_f16_to_f32(row[j]);
}

static TN_ALWAYS_INLINE void load16_q8(float out[16], const void *rows, const uint16_t *scales,
                                       uint32_t dim, uint32_t t, uint32_t d)
{
    const int8_t *row = (const int8_t *)rows + (size_t)t * dim + d;
    size_t blocks = (dim + Q8_BLOCK - 1) / Q8_BLOCK;
    float scale = tn_f16_to_f32(scales[t * blocks + d / Q8_BLOCK]);
    for (uint32_t j = 0; j < 16; j++)
        out[j] = (float)row[j] * scale;
}

#define MAX_QUERIES 64u /* query heads of one pass; more are taken in turns */

static TN_ALWAYS_INLINE void attn_qk(load16_fn *load16, float *s, size_t s_stride, const float *q,
                                     uint32_t n_q, const void *k, const uint16_t *k_scales,
                                     uint32_t n_pos, uint32_t dim, float factor)
{
    for (uint32_t first = 0; first < n_q; first += MAX_QUERIES) {
        uint32_t n = TN_MIN(n_q - first, MAX_QUERIES);
        for (uint32_t t = 0; t < n_pos; t++) {
            float lane[MAX_QUERIES][16];
            memset(lane, 0, n * sizeof lane[0]);
            for (uint32_t d = 0; d < dim; d += 16) {
                float key[16];
                load16(key, k, k_scales, dim, t, d);
                for (uint32_t i = 0; i < n; i++)
                    for (uint32_t j = 0; j < 16; j++)
                        lane[i][j] += key[j] * q[(size_t)(first + i) * dim + d + j];
            }
            for (uint32_t i = 0; i < n; i++)
                s[(first + i) * s_stride + t] = tn_tree_sum_f32(lane[i]) * factor;
        }
    }
}

static TN_ALWAYS_INLINE void attn_pv(load16_fn *load16, float *o, const float *p, size_t p_stride,
                                     uint32_t n_q, const void *v, const uint16_t *v_scales,
                                     uint32_t n_pos, uint32_t dim)
{
    memset(o, 0, (size_t)n_q * dim * sizeof o[0]);
    for (uint32_t t = 0; t < n_pos; t++) {
        for (uint32_t d = 0; d < dim; d += 16) {
            float value[16];
            load16(value, v, v_scales, dim, t, d);
            for (uint32_t i = 0; i < n_q; i++)
                for (uint32_t j = 0; j < 16; j++)
                    o[(size_t)i * dim + d + j] += p[i * p_stride + t] * value[j];
        }
    }
}

#define ATTENTION(type)                                                                            \
    void tn_attn_qk_##type##_ref(float *s, size_t s_stride, const float *q, uint32_t n_q,          \
                                 const void *k, const uint16_t *k_scales, uint32_t n_pos,          \
                                 uint32_t dim, float factor)                                       \
    {                                                                                              \
        attn_qk(load16_##type, s, s_stride, q, n_q, k, k_scales, n_pos, dim, factor);              \
    }                                                                                              \
    void tn_attn_pv_##type##_ref(float *o, const float *p, size_t p_stride, uint32_t n_q,          \
                                 const void *v, const uint16_t *v_scales, uint32_t n_pos,          \
                                 uint32_t dim)                                                     \
    {                                                                                              \
        attn_pv(load16_##type, o, p, p_stride, n_q, v, v_scales, n_pos, dim);                      \
    }
ATTENTION(f32)
ATTENTION(f16)
ATTENTION(q8)

float tn_max_f32_ref(const float *x, uint32_t n)
{
    float max = x[0];
    for (uint32_t k = 1; k < n; k++)
        max = x[k] > max ? x[k] : max;
    return max + 0.0f;
}

float tn_exp_sum_f32_ref(float *x, uint32_t n, float max)
{
    float lane[16] = {0};
    for (uint32_t k = 0; k < n; k++) {
        x[k] = tn_exp_f32(x[k] - max);
        lane[k % 16] += x[k];
    }
    return tn_tree_sum_f32(lane);
}

void tn_kv_store_f32_ref(void *dst, uint16_t *scales, const float *x, uint32_t dim)
{
    (void)scales;
    memcpy(dst, x, dim * sizeof x[0]);
}

static float clamp(float v, float limit)
{
    v = v < limit ? v : limit;
    return v > -limit ? v : -limit;
}

void tn_kv_store_f16_ref(void *dst, uint16_t *scales, const float *x, uint32_t dim)
{
    (void)scales;
    uint16_t *out = dst;
    for (uint32_t d = 0; d < dim; d++)
        out[d] = tn_f32_to_f16(clamp(x[d], F16_MAX));
}

void tn_kv_store_q8_ref(void *dst, uint16_t *scales, const float *x, uint32_t dim)
{
    const float round_to_int = 12582912.0f; /* 1.5 * 2^23 */
    int8_t *out = dst;
    for (uint32_t start = 0; start < dim; start += Q8_BLOCK) {
        uint32_t n = TN_MIN(dim - start, Q8_BLOCK);
        float a = 0.0f;
        for (uint32_t d = 0; d < n; d++)
            a = fabsf(x[start + d]) > a ? fabsf(x[start + d]) : a;
        uint16_t half = tn_f32_to_f16(clamp(a / 127.0f, F16_MAX));
        float scale = tn_f16_to_f32(half);
        scales[start / Q8_BLOCK] = half;
        for (uint32_t d = 0; d < n; d++) {
            float v = scale > 0.0f ? clamp(x[start + d] / scale, 127.0f) : 0.0f;
            out[start + d] =
                (int8_t)(tn_f32_to_bits(v + round_to_int) - tn_f32_to_bits(round_to_int));
        }
    }
}
