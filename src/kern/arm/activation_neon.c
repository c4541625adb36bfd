/* SPDX-License-Identifier: MIT
 *
 * Activations, NEON: 4 values per instruction; the remaining ones go through a small buffer.
 */
#include <string.h>

#include "kern/arm/exp_neon.h"
#include "kern/arm/lanes_neon.h"
#include "kern/gates.h"
#include "kern/kern.h"
#include "kern/tanh.h"

/* rne(v) clamped to [-127, 127]; NaN gives 127. */
static inline int16x4_t round_i8(float32x4_t v)
{
    return vmovn_s32(vcvtnq_s32_f32(clamp(v, 127.0f)));
}

/* Stores four bytes, possibly past n: q has room up to the padding, which is zeroed last. */
static inline void store_i8(int8_t *q, int16x4_t words)
{
    int8x8_t bytes = vmovn_s16(vcombine_s16(words, words));
    vst1_lane_s32((int32_t *)(void *)q, vreinterpret_s32_s8(bytes), 0);
}

float tn_quant_i8_neon(int8_t *q, const float *x, uint32_t n)
{
    float32x4_t max = vdupq_n_f32(1e-5f);
    for (uint32_t k = 0; k < n; k += 4)
        max = max_abs(max, load_first(x + k, n - k));
    float a = vmaxvq_f32(max);
    float s = 127.0f / a;
    for (uint32_t k = 0; k < n; k += 4)
        store_i8(q + k, round_i8(vmulq_n_f32(load_first(x + k, n - k), s)));
    memset(q + n, 0, tn_kern_pad(n) - n);
    return a / 127.0f;
}

/* 1 / sqrt(mean(x^2) + eps) */
static float rms_factor(const float *x, uint32_t n, float eps)
{
    float32x4_t lanes[4] = {vdupq_n_f32(0.0f), vdupq_n_f32(0.0f), vdupq_n_f32(0.0f),
                            vdupq_n_f32(0.0f)};
    uint32_t k = 0;
    for (; k + 16 <= n; k += 16) {
        for (uint32_t j = 0; j < 4; j++) {
            float32x4_t v = vld1q_f32(x + k + 4 * j);
            lanes[j] = vaddq_f32(lanes[j], vmulq_f32(v, v));
        }
    }
    for (uint32_t j = 0; k < n; k += 4, j++) {
        float32x4_t v = load_first(x + k, n - k);
        lanes[j] = vaddq_f32(lanes[j], vmulq_f32(v, v));
    }
    float32x2_t mean = vdup_n_f32(tree_sum(lanes) / (float)n + eps);
    return 1.0f / vget_lane_f32(vsqrt_f32(mean), 0);
}

static inline float32x4_t normed(const float *x, const float *w, uint32_t left, float factor)
{
    return vmulq_f32(load_first(w, left), vmulq_n_f32(load_first(x, left), factor));
}

void tn_rms_norm_f32_neon(float *dst, const float *x, const float *w, uint32_t n, float eps)
{
    float factor = rms_factor(x, n, eps);
    for (uint32_t k = 0; k < n; k += 4)
        store_first(dst + k, normed(x + k, w + k, n - k, factor), n - k);
}

float tn_rms_norm_quant_neon(int8_t *q, const float *x, const float *w, uint32_t n, float eps)
{
    float factor = rms_factor(x, n, eps);
    float32x4_t max = vdupq_n_f32(1e-5f);
    /* 0 * infinity is NaN in the lanes past the end; max_abs ignores it. */
    for (uint32_t k = 0; k < n; k += 4)
        max = max_abs(max, normed(x + k, w + k, n - k, factor));
    float a = vmaxvq_f32(max);
    float s = 127.0f / a;
    for (uint32_t k = 0; k < n; k += 4)
        store_i8(q + k, round_i8(vmulq_n_f32(normed(x + k, w + k, n - k, factor), s)));
    memset(q + n, 0, tn_kern_pad(n) - n);
    return a / 127.0f;
}

/* Four sums as f32 times scale. */
static inline float32x4_t scaled(const int32_t *sum, uint32_t left, float scale)
{
    int32_t four[4] = {0};
    if (left >= 4)
        return vmulq_n_f32(vcvtq_f32_s32(vld1q_s32(sum)), scale);
    memcpy(four, sum, left * sizeof *sum);
    return vmulq_n_f32(vcvtq_f32_s32(vld1q_s32(four)), scale);
}

void tn_scale_i32_f32_neon(float *dst, const int32_t *sum, uint32_t n, float scale)
{
    for (uint32_t k = 0; k < n; k += 4)
        store_first(dst + k, scaled(sum + k, n - k, scale), n - k);
}

void tn_add_i32_f32_neon(float *dst, const int32_t *sum, uint32_t n, float scale)
{
    for (uint32_t k = 0; k < n; k += 4) {
        float32x4_t v = scaled(sum + k, n - k, scale);
        store_first(dst + k, vaddq_f32(load_first(dst + k, n - k), v), n - k);
    }
}

void tn_relu2_mul_f32_neon(float *dst, const float *gate, const float *up, uint32_t n)
{
    for (uint32_t k = 0; k < n; k += 4) {
        float32x4_t g = load_first(gate + k, n - k);
        float32x4_t v = vmulq_f32(vmulq_f32(g, g), load_first(up + k, n - k));
        uint32x4_t positive = vcgtq_f32(g, vdupq_n_f32(0.0f));
        v = vreinterpretq_f32_u32(vandq_u32(positive, vreinterpretq_u32_f32(v)));
        store_first(dst + k, v, n - k);
    }
}

/* e(z) as defined in gates.h. */
typedef float32x4_t exponent_fn(float32x4_t z);

static TN_ALWAYS_INLINE float32x4_t silu_exponent(float32x4_t z)
{
    return vnegq_f32(z);
}

static TN_ALWAYS_INLINE float32x4_t gelu_exponent(float32x4_t z)
{
    const float32x4_t cube = vmulq_f32(vmulq_f32(z, z), z);
    return vmulq_n_f32(vaddq_f32(z, vmulq_n_f32(cube, TN_GELU_CUBE)), TN_GELU_FACTOR);
}

static TN_ALWAYS_INLINE void gate_all(float *dst, const float *gate, const float *up, uint32_t n,
                                      exponent_fn *exponent)
{
    for (uint32_t k = 0; k < n; k += 4) {
        const float32x4_t z = load_first(gate + k, n - k), e = exp_4(exponent(z));
        const float32x4_t v = vdivq_f32(z, vaddq_f32(vdupq_n_f32(1.0f), e));
        store_first(dst + k, vmulq_f32(v, load_first(up + k, n - k)), n - k);
    }
}

void tn_silu_mul_f32_neon(float *dst, const float *gate, const float *up, uint32_t n)
{
    gate_all(dst, gate, up, n, silu_exponent);
}

void tn_gelu_mul_f32_neon(float *dst, const float *gate, const float *up, uint32_t n)
{
    gate_all(dst, gate, up, n, gelu_exponent);
}

/* tn_tanh_f32 (kern/tanh.h). */
static TN_ALWAYS_INLINE float32x4_t tanh_4(float32x4_t x)
{
    const float32x4_t one = vdupq_n_f32(1.0f), a = vabsq_f32(x), s = vmulq_f32(x, x);
    const float32x4_t e = vaddq_f32(exp_4(vaddq_f32(a, a)), one);
    const float32x4_t plain = vsubq_f32(one, vdivq_f32(vdupq_n_f32(2.0f), e));
    const float32x4_t large = vbslq_f32(vdupq_n_u32(0x80000000u), x, plain);
    float32x4_t p = vdupq_n_f32(TN_TANH_P4);
    p = vaddq_f32(vmulq_f32(p, s), vdupq_n_f32(TN_TANH_P3));
    p = vaddq_f32(vmulq_f32(p, s), vdupq_n_f32(TN_TANH_P2));
    p = vaddq_f32(vmulq_f32(p, s), vdupq_n_f32(TN_TANH_P1));
    p = vaddq_f32(vmulq_f32(p, s), vdupq_n_f32(TN_TANH_P0));
    const float32x4_t small = vaddq_f32(x, vmulq_f32(vmulq_f32(x, s), p));
    return vbslq_f32(vcltq_f32(a, vdupq_n_f32(TN_TANH_SMALL)), small, large);
}

void tn_cap_f32_neon(float *x, uint32_t n, float cap)
{
    const float32x4_t c = vdupq_n_f32(cap);
    for (uint32_t k = 0; k < n; k += 4) {
        const float32x4_t v = tanh_4(vdivq_f32(load_first(x + k, n - k), c));
        store_first(x + k, vmulq_f32(c, v), n - k);
    }
}

void tn_rope_f32_neon(float *x, const float *cos, const float *sin, uint32_t n_heads,
                      uint32_t head_dim, uint32_t stride)
{
    uint32_t half = head_dim / 2;
    for (uint32_t i = 0; i < n_heads; i++) {
        float *lo = x + (size_t)i * stride;
        float *hi = lo + half;
        for (uint32_t j = 0; j < half; j += 4) {
            uint32_t left = half - j;
            float32x4_t a = load_first(lo + j, left);
            float32x4_t b = load_first(hi + j, left);
            float32x4_t c = load_first(cos + j, left);
            float32x4_t s = load_first(sin + j, left);
            store_first(lo + j, vsubq_f32(vmulq_f32(a, c), vmulq_f32(b, s)), left);
            store_first(hi + j, vaddq_f32(vmulq_f32(b, c), vmulq_f32(a, s)), left);
        }
    }
}
