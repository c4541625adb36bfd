/* SPDX-License-Identifier: MIT
 *
 * Attention over f32 and f16 caches, and softmax, NEON.  The 16 lanes of the lane order are four
 * registers.
 *
 * q . k   a tile is 1 position x up to 4 query heads: 16 accumulators; a key is widened once.
 * p . v   a tile is 16 columns x up to 4 query heads in 16 registers, over a run of positions, so
 *         that memory is read in order.
 *
 * Per 4 values of the cache and query head: one multiplication and one addition, never fused.
 */
#include <string.h>

#include "kern/arm/exp_neon.h"
#include "kern/arm/lanes_neon.h"
#include "kern/kern.h"

#define F16_MAX 65504.0f
#define RUN_POSITIONS 32u /* positions per run of p . v */

/* Loads 4 cached values as f32. */
typedef float32x4_t load4_fn(const void *p);

static TN_ALWAYS_INLINE float32x4_t load4_f32(const void *p)
{
    return vld1q_f32(p);
}

static TN_ALWAYS_INLINE void set_zero(float32x4_t sum[4][4])
{
    for (uint32_t h = 0; h < 4; h++)
        for (uint32_t j = 0; j < 4; j++)
            sum[h][j] = vdupq_n_f32(0.0f);
}

/* Scores of one key; n_q is at most 4, a constant after inlining. */
static TN_ALWAYS_INLINE void qk_tile(float *s, size_t s_stride, load4_fn *load4, const char *key,
                                     size_t value_bytes, const float *q, uint32_t n_q, uint32_t dim,
                                     float factor)
{
    float32x4_t sum[4][4];
    set_zero(sum);
    for (uint32_t d = 0; d < dim; d += 16) {
        for (uint32_t j = 0; j < 4; j++) {
            float32x4_t k = load4(key + (d + 4 * j) * value_bytes);
            for (uint32_t h = 0; h < n_q; h++) {
                float32x4_t query = vld1q_f32(q + (size_t)h * dim + d + 4 * j);
                sum[h][j] = vaddq_f32(sum[h][j], vmulq_f32(k, query));
            }
        }
    }
    for (uint32_t h = 0; h < n_q; h++)
        s[h * s_stride] = tree_sum(sum[h]) * factor;
}

static TN_ALWAYS_INLINE void attn_qk(float *s, size_t s_stride, load4_fn *load4, const float *q,
                                     uint32_t n_q, const char *k, size_t value_bytes,
                                     uint32_t n_pos, uint32_t dim, float factor)
{
    for (uint32_t t = 0; t < n_pos; t++) {
        const char *key = k + (size_t)t * dim * value_bytes;
        uint32_t h = 0;
        for (; h + 4 <= n_q; h += 4)
            qk_tile(s + h * s_stride + t, s_stride, load4, key, value_bytes, q + (size_t)h * dim, 4,
                    dim, factor);
        for (; h < n_q; h++)
            qk_tile(s + h * s_stride + t, s_stride, load4, key, value_bytes, q + (size_t)h * dim, 1,
                    dim, factor);
    }
}

/* Adds n_pos positions to the first 16 columns of o and v; n_q is at most 4, a constant after
 * inlining. */
static TN_ALWAYS_INLINE void pv_tile(float *o, load4_fn *load4, const float *p, size_t p_stride,
                                     uint32_t n_q, const char *v, size_t value_bytes,
                                     uint32_t n_pos, uint32_t dim)
{
    float32x4_t sum[4][4];
    for (uint32_t h = 0; h < n_q; h++)
        for (uint32_t j = 0; j < 4; j++)
            sum[h][j] = vld1q_f32(o + (size_t)h * dim + 4 * j);
    for (uint32_t t = 0; t < n_pos; t++) {
        const char *row = v + (size_t)t * dim * value_bytes;
        for (uint32_t j = 0; j < 4; j++) {
            float32x4_t value = load4(row + 4 * j * value_bytes);
            for (uint32_t h = 0; h < n_q; h++)
                sum[h][j] = vaddq_f32(sum[h][j], vmulq_n_f32(value, p[h * p_stride + t]));
        }
    }
    for (uint32_t h = 0; h < n_q; h++)
        for (uint32_t j = 0; j < 4; j++)
            vst1q_f32(o + (size_t)h * dim + 4 * j, sum[h][j]);
}

static TN_ALWAYS_INLINE void pv_run(float *o, load4_fn *load4, const float *p, size_t p_stride,
                                    uint32_t n_q, const char *v, size_t value_bytes,
                                    uint32_t n_pos, uint32_t dim)
{
    for (uint32_t d = 0; d < dim; d += 16) {
        uint32_t h = 0;
        for (; h + 4 <= n_q; h += 4)
            pv_tile(o + (size_t)h * dim + d, load4, p + h * p_stride, p_stride, 4,
                    v + d * value_bytes, value_bytes, n_pos, dim);
        for (; h < n_q; h++)
            pv_tile(o + (size_t)h * dim + d, load4, p + h * p_stride, p_stride, 1,
                    v + d * value_bytes, value_bytes, n_pos, dim);
    }
}

static TN_ALWAYS_INLINE void attn_pv(float *o, load4_fn *load4, const float *p, size_t p_stride,
                                     uint32_t n_q, const char *v, size_t value_bytes,
                                     uint32_t n_pos, uint32_t dim)
{
    memset(o, 0, (size_t)n_q * dim * sizeof *o);
    for (uint32_t t = 0; t < n_pos; t += RUN_POSITIONS)
        pv_run(o, load4, p + t, p_stride, n_q, v + (size_t)t * dim * value_bytes, value_bytes,
               TN_MIN(RUN_POSITIONS, n_pos - t), dim);
}

#define ATTENTION(type, value_bytes)                                                               \
    void tn_attn_qk_##type##_neon(float *s, size_t s_stride, const float *q, uint32_t n_q,         \
                                  const void *k, uint32_t n_pos, uint32_t dim, float factor)       \
    {                                                                                              \
        attn_qk(s, s_stride, load4_##type, q, n_q, k, value_bytes, n_pos, dim, factor);            \
    }                                                                                              \
    void tn_attn_pv_##type##_neon(float *o, const float *p, size_t p_stride, uint32_t n_q,         \
                                  const void *v, uint32_t n_pos, uint32_t dim)                     \
    {                                                                                              \
        attn_pv(o, load4_##type, p, p_stride, n_q, v, value_bytes, n_pos, dim);                    \
    }
ATTENTION(f32, 4)
ATTENTION(f16, 2)

float tn_max_f32_neon(const float *x, uint32_t n)
{
    float32x4_t max = vdupq_n_f32(x[0]);
    uint32_t k = 0;
    for (; k + 4 <= n; k += 4)
        max = vmaxq_f32(max, vld1q_f32(x + k));
    float top = vmaxvq_f32(max);
    for (; k < n; k++)
        top = x[k] > top ? x[k] : top;
    return top + 0.0f;
}

float tn_exp_sum_f32_neon(float *x, uint32_t n, float max)
{
    float32x4_t lanes[4] = {vdupq_n_f32(0.0f), vdupq_n_f32(0.0f), vdupq_n_f32(0.0f),
                            vdupq_n_f32(0.0f)};
    for (uint32_t k = 0; k < n; k += 4) {
        float32x4_t y = exp_4(vsubq_f32(load_first(x + k, n - k), vdupq_n_f32(max)));
        store_first(x + k, y, n - k);
        lanes[k / 4 % 4] = vaddq_f32(lanes[k / 4 % 4], load_first(x + k, n - k));
    }
    return tree_sum(lanes);
}

void tn_kv_store_f16_neon(void *dst, uint16_t *scales, const float *x, uint32_t dim)
{
    (void)scales;
    uint16_t *out = dst;
    for (uint32_t d = 0; d < dim; d += 4) {
        float16x4_t half = vcvt_f16_f32(clamp(vld1q_f32(x + d), F16_MAX));
        vst1_u16(out + d, vreinterpret_u16_f16(half));
    }
}
