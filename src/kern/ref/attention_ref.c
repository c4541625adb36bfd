/* SPDX-License-Identifier: MIT
 *
 * Attention over f32 and f16 caches, and softmax, in portable C: the specification.  A cached row
 * is converted to f32 once, then used by every query head that shares it.
 */
#include <string.h>

#include "base/half.h"
#include "kern/exp.h"
#include "kern/kern.h"

#define F16_MAX 65504.0f /* the largest finite f16 */

/* Loads 16 cached values as f32. */
typedef void load16_fn(float out[16], const void *p);

static TN_ALWAYS_INLINE void load16_f32(float out[16], const void *p)
{
    memcpy(out, p, 16 * sizeof out[0]);
}

static TN_ALWAYS_INLINE void load16_f16(float out[16], const void *p)
{
    for (uint32_t j = 0; j < 16; j++)
        out[j] = tn_f16_to_f32(((const uint16_t *)p)[j]);
}

#define MAX_QUERIES 64u /* query heads per pass; more need several passes */

static TN_ALWAYS_INLINE void attn_qk(load16_fn *load16, size_t value_bytes, float *s,
                                     size_t s_stride, const float *q, uint32_t n_q,
                                     const char *k, uint32_t n_pos, uint32_t dim, float factor)
{
    for (uint32_t first = 0; first < n_q; first += MAX_QUERIES) {
        uint32_t n = TN_MIN(n_q - first, MAX_QUERIES);
        for (uint32_t t = 0; t < n_pos; t++) {
            float lane[MAX_QUERIES][16];
            memset(lane, 0, n * sizeof lane[0]);
            for (uint32_t d = 0; d < dim; d += 16) {
                float key[16];
                load16(key, k + ((size_t)t * dim + d) * value_bytes);
                for (uint32_t i = 0; i < n; i++)
                    for (uint32_t j = 0; j < 16; j++)
                        lane[i][j] += key[j] * q[(size_t)(first + i) * dim + d + j];
            }
            for (uint32_t i = 0; i < n; i++)
                s[(first + i) * s_stride + t] = tn_tree_sum_f32(lane[i]) * factor;
        }
    }
}

static TN_ALWAYS_INLINE void attn_pv(load16_fn *load16, size_t value_bytes, float *o,
                                     const float *p, size_t p_stride, uint32_t n_q, const char *v,
                                     uint32_t n_pos, uint32_t dim)
{
    memset(o, 0, (size_t)n_q * dim * sizeof o[0]);
    for (uint32_t t = 0; t < n_pos; t++) {
        for (uint32_t d = 0; d < dim; d += 16) {
            float value[16];
            load16(value, v + ((size_t)t * dim + d) * value_bytes);
            for (uint32_t i = 0; i < n_q; i++)
                for (uint32_t j = 0; j < 16; j++)
                    o[(size_t)i * dim + d + j] += p[i * p_stride + t] * value[j];
        }
    }
}

#define ATTENTION(type, value_bytes)                                                               \
    void tn_attn_qk_##type##_ref(float *s, size_t s_stride, const float *q, uint32_t n_q,          \
                                 const void *k, uint32_t n_pos, uint32_t dim, float factor)        \
    {                                                                                              \
        attn_qk(load16_##type, value_bytes, s, s_stride, q, n_q, k, n_pos, dim, factor);           \
    }                                                                                              \
    void tn_attn_pv_##type##_ref(float *o, const float *p, size_t p_stride, uint32_t n_q,          \
                                 const void *v, uint32_t n_pos, uint32_t dim)                      \
    {                                                                                              \
        attn_pv(load16_##type, value_bytes, o, p, p_stride, n_q, v, n_pos, dim);                   \
    }
ATTENTION(f32, 4)
ATTENTION(f16, 2)

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
