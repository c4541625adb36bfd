/* SPDX-License-Identifier: MIT
 *
 * Activations, AVX2: 8 values per instruction; the remaining ones are loaded and stored under a
 * mask.
 */
#include <stdbool.h>
#include <string.h>

#include "kern/gates.h"
#include "kern/kern.h"
#include "kern/tanh.h"
#include "kern/x86/exp_avx2.h"
#include "kern/x86/lanes_avx2.h"

/* Stores the first n values of v (n as in first_lanes). */
static inline void store_first(float *p, __m256 v, int32_t n)
{
    if (n >= 8)
        _mm256_storeu_ps(p, v);
    else
        _mm256_maskstore_ps(p, first_lanes(n), v);
}

/* May write past n: q has room up to the padding, which is zeroed last. */
static inline void store_i8(int8_t *q, __m128i bytes)
{
    _mm_storel_epi64((__m128i *)q, bytes);
}

float tn_quant_i8_avx2(int8_t *q, const float *x, uint32_t n)
{
    __m256 max = _mm256_set1_ps(1e-5f);
    for (uint32_t k = 0; k < n; k += 8)
        max = max_abs(max, load_first(x + k, (int32_t)(n - k)));
    float a = reduce_max(max);
    __m256 s = _mm256_set1_ps(127.0f / a);
    for (uint32_t k = 0; k < n; k += 8)
        store_i8(q + k, round_i8(_mm256_mul_ps(load_first(x + k, (int32_t)(n - k)), s)));
    memset(q + n, 0, tn_kern_pad(n) - n);
    return a / 127.0f;
}

/* 1 / sqrt(mean(x^2) + eps) */
static float rms_factor(const float *x, uint32_t n, float eps)
{
    __m256 lanes[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    for (uint32_t k = 0; k < n; k += 16) {
        __m256 lo = load_first(x + k, (int32_t)(n - k));
        lanes[0] = _mm256_add_ps(lanes[0], _mm256_mul_ps(lo, lo));
        if (n - k > 8) {
            __m256 hi = load_first(x + k + 8, (int32_t)(n - k - 8));
            lanes[1] = _mm256_add_ps(lanes[1], _mm256_mul_ps(hi, hi));
        }
    }
    __m128 mean = _mm_set_ss(tree_sum(lanes) / (float)n + eps);
    return 1.0f / _mm_cvtss_f32(_mm_sqrt_ss(mean));
}

static inline __m256 normed(const float *x, const float *w, uint32_t left, __m256 factor)
{
    __m256 v = _mm256_mul_ps(load_first(x, (int32_t)left), factor);
    return _mm256_mul_ps(load_first(w, (int32_t)left), v);
}

void tn_rms_norm_f32_avx2(float *dst, const float *x, const float *w, uint32_t n, float eps)
{
    __m256 factor = _mm256_set1_ps(rms_factor(x, n, eps));
    for (uint32_t k = 0; k < n; k += 8)
        store_first(dst + k, normed(x + k, w + k, n - k, factor), (int32_t)(n - k));
}

float tn_rms_norm_quant_avx2(int8_t *q, const float *x, const float *w, uint32_t n, float eps)
{
    __m256 factor = _mm256_set1_ps(rms_factor(x, n, eps));
    __m256 max = _mm256_set1_ps(1e-5f);
    /* 0 * infinity is NaN in the lanes past the end; max_abs ignores it. */
    for (uint32_t k = 0; k < n; k += 8)
        max = max_abs(max, normed(x + k, w + k, n - k, factor));
    float a = reduce_max(max);
    __m256 s = _mm256_set1_ps(127.0f / a);
    for (uint32_t k = 0; k < n; k += 8)
        store_i8(q + k, round_i8(_mm256_mul_ps(normed(x + k, w + k, n - k, factor), s)));
    memset(q + n, 0, tn_kern_pad(n) - n);
    return a / 127.0f;
}

/* Eight sums as f32 times scale; zeros from lane `left` on. */
static inline __m256 scaled(const int32_t *sum, uint32_t left, __m256 scale)
{
    __m256i v = left >= 8 ? _mm256_loadu_si256((const __m256i *)sum)
                          : _mm256_maskload_epi32(sum, first_lanes((int32_t)left));
    return _mm256_mul_ps(_mm256_cvtepi32_ps(v), scale);
}

void tn_scale_i32_f32_avx2(float *dst, const int32_t *sum, uint32_t n, float scale)
{
    __m256 factor = _mm256_set1_ps(scale);
    for (uint32_t k = 0; k < n; k += 8)
        store_first(dst + k, scaled(sum + k, n - k, factor), (int32_t)(n - k));
}

void tn_add_i32_f32_avx2(float *dst, const int32_t *sum, uint32_t n, float scale)
{
    __m256 factor = _mm256_set1_ps(scale);
    for (uint32_t k = 0; k < n; k += 8) {
        int32_t left = (int32_t)(n - k);
        __m256 v = scaled(sum + k, n - k, factor);
        store_first(dst + k, _mm256_add_ps(load_first(dst + k, left), v), left);
    }
}

void tn_relu2_mul_f32_avx2(float *dst, const float *gate, const float *up, uint32_t n)
{
    for (uint32_t k = 0; k < n; k += 8) {
        int32_t left = (int32_t)(n - k);
        __m256 g = load_first(gate + k, left);
        __m256 v = _mm256_mul_ps(_mm256_mul_ps(g, g), load_first(up + k, left));
        __m256 positive = _mm256_cmp_ps(g, _mm256_setzero_ps(), _CMP_GT_OQ);
        store_first(dst + k, _mm256_and_ps(positive, v), left);
    }
}

/* e(z) as defined in gates.h. */
typedef __m256 exponent_fn(__m256 z);

static TN_ALWAYS_INLINE __m256 silu_exponent(__m256 z)
{
    return _mm256_xor_ps(z, _mm256_set1_ps(-0.0f));
}

static TN_ALWAYS_INLINE __m256 gelu_exponent(__m256 z)
{
    const __m256 cube = _mm256_mul_ps(_mm256_mul_ps(z, z), z);
    const __m256 inner = _mm256_add_ps(z, _mm256_mul_ps(_mm256_set1_ps(TN_GELU_CUBE), cube));
    return _mm256_mul_ps(_mm256_set1_ps(TN_GELU_FACTOR), inner);
}

static TN_ALWAYS_INLINE void gate_all(float *dst, const float *gate, const float *up, uint32_t n,
                                      exponent_fn *exponent)
{
    for (uint32_t k = 0; k < n; k += 8) {
        const int32_t left = (int32_t)(n - k);
        const __m256 z = load_first(gate + k, left), e = exp_8(exponent(z));
        const __m256 v = _mm256_div_ps(z, _mm256_add_ps(_mm256_set1_ps(1.0f), e));
        store_first(dst + k, _mm256_mul_ps(v, load_first(up + k, left)), left);
    }
}

void tn_silu_mul_f32_avx2(float *dst, const float *gate, const float *up, uint32_t n)
{
    gate_all(dst, gate, up, n, silu_exponent);
}

void tn_gelu_mul_f32_avx2(float *dst, const float *gate, const float *up, uint32_t n)
{
    gate_all(dst, gate, up, n, gelu_exponent);
}

/* tn_tanh_f32 (kern/tanh.h). */
static TN_ALWAYS_INLINE __m256 tanh_8(__m256 x)
{
    const __m256 sign = _mm256_set1_ps(-0.0f), one = _mm256_set1_ps(1.0f);
    const __m256 a = _mm256_andnot_ps(sign, x), s = _mm256_mul_ps(x, x);
    const __m256 e = _mm256_add_ps(exp_8(_mm256_add_ps(a, a)), one);
    __m256 large = _mm256_sub_ps(one, _mm256_div_ps(_mm256_set1_ps(2.0f), e));
    large = _mm256_or_ps(_mm256_andnot_ps(sign, large), _mm256_and_ps(sign, x));
    __m256 p = _mm256_set1_ps(TN_TANH_P4);
    p = _mm256_add_ps(_mm256_mul_ps(p, s), _mm256_set1_ps(TN_TANH_P3));
    p = _mm256_add_ps(_mm256_mul_ps(p, s), _mm256_set1_ps(TN_TANH_P2));
    p = _mm256_add_ps(_mm256_mul_ps(p, s), _mm256_set1_ps(TN_TANH_P1));
    p = _mm256_add_ps(_mm256_mul_ps(p, s), _mm256_set1_ps(TN_TANH_P0));
    const __m256 small = _mm256_add_ps(x, _mm256_mul_ps(_mm256_mul_ps(x, s), p));
    const __m256 is_small = _mm256_cmp_ps(a, _mm256_set1_ps(TN_TANH_SMALL), _CMP_LT_OQ);
    return _mm256_blendv_ps(large, small, is_small);
}

void tn_cap_f32_avx2(float *x, uint32_t n, float cap)
{
    const __m256 c = _mm256_set1_ps(cap);
    for (uint32_t k = 0; k < n; k += 8) {
        const int32_t left = (int32_t)(n - k);
        const __m256 v = tanh_8(_mm256_div_ps(load_first(x + k, left), c));
        store_first(x + k, _mm256_mul_ps(c, v), left);
    }
}

void tn_rope_f32_avx2(float *x, const float *cos, const float *sin, uint32_t n_heads,
                      uint32_t head_dim, uint32_t stride)
{
    uint32_t half = head_dim / 2;
    for (uint32_t i = 0; i < n_heads; i++) {
        float *lo = x + (size_t)i * stride;
        float *hi = lo + half;
        for (uint32_t j = 0; j < half; j += 8) {
            int32_t left = (int32_t)(half - j);
            __m256 a = load_first(lo + j, left);
            __m256 b = load_first(hi + j, left);
            __m256 c = load_first(cos + j, left);
            __m256 s = load_first(sin + j, left);
            store_first(lo + j, _mm256_sub_ps(_mm256_mul_ps(a, c), _mm256_mul_ps(b, s)), left);
            store_first(hi + j, _mm256_add_ps(_mm256_mul_ps(b, c), _mm256_mul_ps(a, s)), left);
        }
    }
}

/* ---- lists ---- */

/* Writes i + k for the bits k < 4 that are set in `chosen`, ascending, and returns their number.
 * Always stores four numbers; the rest is garbage. */
static TN_ALWAYS_INLINE uint32_t list_4(uint32_t *dst, uint32_t i, uint32_t chosen)
{
    static const uint8_t bits_set[16][4] = {
        {0}, {0},    {1},    {0, 1},    {2},    {0, 2},    {1, 2},    {0, 1, 2},
        {3}, {0, 3}, {1, 3}, {0, 1, 3}, {2, 3}, {0, 2, 3}, {1, 2, 3}, {0, 1, 2, 3},
    };
    const __m128i k = _mm_cvtepu8_epi32(_mm_loadu_si32(bits_set[chosen]));
    _mm_storeu_si128((void *)dst, _mm_add_epi32(k, _mm_set1_epi32((int)i)));
    return (uint32_t)__builtin_popcount(chosen);
}

uint32_t tn_list_positive_f32_avx2(uint32_t *dst, float *x, uint32_t n)
{
    const __m256 zero = _mm256_setzero_ps();
    uint32_t n_found = 0, i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m256 v = _mm256_loadu_ps(x + i);
        const uint32_t chosen = (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(v, zero, _CMP_GT_OQ));
        _mm256_storeu_ps(x + i, _mm256_max_ps(v, zero)); /* NaN and -0 become +0 */
        n_found += list_4(dst + n_found, i, chosen & 15);
        n_found += list_4(dst + n_found, i + 4, chosen >> 4);
    }
    for (; i < n; i++) {
        const bool is_positive = x[i] > 0.0f;
        dst[n_found] = i;
        n_found += is_positive;
        x[i] = is_positive ? x[i] : 0.0f;
    }
    return n_found;
}

uint32_t tn_list_nonzero_i8_avx2(uint32_t *dst, const int8_t *x, uint32_t n)
{
    uint32_t n_found = 0, i = 0;
    for (; i + 16 <= n; i += 16) {
        const __m128i v = _mm_loadu_si128((const void *)(x + i));
        const uint32_t zeros = (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(v, _mm_setzero_si128()));
        for (uint32_t k = 0; k < 16; k += 4)
            n_found += list_4(dst + n_found, i + k, ~zeros >> k & 15);
    }
    for (; i < n; i++) {
        dst[n_found] = i;
        n_found += x[i] != 0;
    }
    return n_found;
}
