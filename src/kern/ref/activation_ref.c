/* SPDX-License-Identifier: MIT
 *
 * Activations in portable C: the specification of the operations between two ternary products
 * (rounding to int8, norms, gates, rope, lists).  Every other level must return these bits.
 */
#include <math.h>
#include <string.h>

#include "base/bits.h"
#include "kern/gates.h"
#include "kern/kern.h"
#include "kern/tanh.h"

/* Adding 1.5 * 2^23 rounds to the nearest even integer and leaves it in the low bits. */
#define ROUND_TO_INT 12582912.0f

/* rne(v) clamped to [-127, 127]; NaN gives 127. */
static int8_t round_i8(float v)
{
    v = v < 127.0f ? v : 127.0f;
    v = v > -127.0f ? v : -127.0f;
    return (int8_t)(tn_f32_to_bits(v + ROUND_TO_INT) - tn_f32_to_bits(ROUND_TO_INT));
}

static float max_abs(float so_far, float v)
{
    float a = fabsf(v);
    return a > so_far ? a : so_far;
}

float tn_quant_i8_ref(int8_t *q, const float *x, uint32_t n)
{
    float a = 1e-5f;
    for (uint32_t k = 0; k < n; k++)
        a = max_abs(a, x[k]);
    float s = 127.0f / a;
    for (uint32_t k = 0; k < n; k++)
        q[k] = round_i8(x[k] * s);
    memset(q + n, 0, tn_kern_pad(n) - n);
    return a / 127.0f;
}

/* 1 / sqrt(mean(x^2) + eps) */
static float rms_factor(const float *x, uint32_t n, float eps)
{
    float lane[16] = {0};
    uint32_t k = 0;
    for (; k + 16 <= n; k += 16)
        for (uint32_t j = 0; j < 16; j++)
            lane[j] += x[k + j] * x[k + j];
    for (uint32_t j = 0; k + j < n; j++)
        lane[j] += x[k + j] * x[k + j];
    float mean = tn_tree_sum_f32(lane) / (float)n;
    return 1.0f / sqrtf(mean + eps);
}

void tn_rms_norm_f32_ref(float *dst, const float *x, const float *w, uint32_t n, float eps)
{
    float factor = rms_factor(x, n, eps);
    for (uint32_t k = 0; k < n; k++)
        dst[k] = w[k] * (x[k] * factor);
}

float tn_rms_norm_quant_ref(int8_t *q, const float *x, const float *w, uint32_t n, float eps)
{
    float factor = rms_factor(x, n, eps);
    float a = 1e-5f;
    for (uint32_t k = 0; k < n; k++)
        a = max_abs(a, w[k] * (x[k] * factor));
    float s = 127.0f / a;
    for (uint32_t k = 0; k < n; k++)
        q[k] = round_i8(w[k] * (x[k] * factor) * s);
    memset(q + n, 0, tn_kern_pad(n) - n);
    return a / 127.0f;
}

void tn_scale_i32_f32_ref(float *dst, const int32_t *sum, uint32_t n, float scale)
{
    for (uint32_t k = 0; k < n; k++)
        dst[k] = (float)sum[k] * scale;
}

void tn_add_i32_f32_ref(float *dst, const int32_t *sum, uint32_t n, float scale)
{
    for (uint32_t k = 0; k < n; k++)
        dst[k] += (float)sum[k] * scale;
}

void tn_relu2_mul_f32_ref(float *dst, const float *gate, const float *up, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++)
        dst[k] = gate[k] > 0.0f ? (gate[k] * gate[k]) * up[k] : 0.0f;
}

void tn_silu_mul_f32_ref(float *dst, const float *gate, const float *up, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++)
        dst[k] = tn_gate_f32(gate[k], tn_silu_exponent(gate[k]), up[k]);
}

void tn_gelu_mul_f32_ref(float *dst, const float *gate, const float *up, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++)
        dst[k] = tn_gate_f32(gate[k], tn_gelu_exponent(gate[k]), up[k]);
}

void tn_cap_f32_ref(float *x, uint32_t n, float cap)
{
    for (uint32_t k = 0; k < n; k++)
        x[k] = cap * tn_tanh_f32(x[k] / cap);
}

void tn_rope_f32_ref(float *x, const float *cos, const float *sin, uint32_t n_heads,
                     uint32_t head_dim, uint32_t stride)
{
    uint32_t half = head_dim / 2;
    for (uint32_t i = 0; i < n_heads; i++) {
        float *lo = x + (size_t)i * stride;
        float *hi = lo + half;
        for (uint32_t j = 0; j < half; j++) {
            float a = lo[j];
            float b = hi[j];
            lo[j] = a * cos[j] - b * sin[j];
            hi[j] = b * cos[j] + a * sin[j];
        }
    }
}

uint32_t tn_list_positive_f32_ref(uint32_t *dst, float *x, uint32_t n)
{
    uint32_t n_found = 0;
    for (uint32_t i = 0; i < n; i++) { /* no branches: they would be unpredictable */
        dst[n_found] = i;
        n_found += x[i] > 0.0f;
        x[i] = x[i] > 0.0f ? x[i] : 0.0f;
    }
    return n_found;
}

uint32_t tn_list_nonzero_i8_ref(uint32_t *dst, const int8_t *x, uint32_t n)
{
    uint32_t n_found = 0;
    for (uint32_t i = 0; i < n; i++) {
        dst[n_found] = i;
        n_found += x[i] != 0;
    }
    return n_found;
}
