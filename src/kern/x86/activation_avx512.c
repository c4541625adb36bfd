/* SPDX-License-Identifier: MIT
 *
 * Activations, AVX-512: 16 values per instruction; the remaining ones are handled under a mask.
 */
#include <string.h>

#include "kern/gates.h"
#include "kern/kern.h"
#include "kern/tanh.h"
#include "kern/x86/exp_avx512.h"
#include "kern/x86/lanes_avx512.h"

/* rne(v) clamped to [-127, 127]; NaN gives 127. */
static inline __m128i round_i8(__m512 v)
{
    v = _mm512_min_ps(v, _mm512_set1_ps(127.0f));
    v = _mm512_max_ps(v, _mm512_set1_ps(-127.0f));
    return _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(v));
}

float tn_quant_i8_avx512(int8_t *q, const float *x, uint32_t n)
{
    __m512 max0 = _mm512_set1_ps(1e-5f);
    __m512 max1 = max0;
    uint32_t whole = n / 16 * 16;
    __mmask16 tail = tail_mask(n);
    uint32_t k = 0;
    for (; k + 32 <= n; k += 32) {
        max0 = max_abs(max0, _mm512_loadu_ps(x + k));
        max1 = max_abs(max1, _mm512_loadu_ps(x + k + 16));
    }
    if (k < whole)
        max0 = max_abs(max0, _mm512_loadu_ps(x + k));
    if (tail)
        max1 = max_abs(max1, _mm512_maskz_loadu_ps(tail, x + whole));
    float a = _mm512_reduce_max_ps(_mm512_max_ps(max0, max1));

    __m512 s = _mm512_set1_ps(127.0f / a);
    for (k = 0; k < whole; k += 16)
        _mm_storeu_si128((__m128i *)(q + k), round_i8(_mm512_mul_ps(_mm512_loadu_ps(x + k), s)));
    if (tail)
        _mm_mask_storeu_epi8(q + k, tail,
                             round_i8(_mm512_mul_ps(_mm512_maskz_loadu_ps(tail, x + k), s)));
    memset(q + n, 0, tn_kern_pad(n) - n);
    return a / 127.0f;
}

/* 1 / sqrt(mean(x^2) + eps) */
static float rms_factor(const float *x, uint32_t n, float eps)
{
    __m512 lanes = _mm512_setzero_ps();
    uint32_t k = 0;
    for (; k + 16 <= n; k += 16) {
        __m512 v = _mm512_loadu_ps(x + k);
        lanes = _mm512_add_ps(lanes, _mm512_mul_ps(v, v));
    }
    __mmask16 tail = tail_mask(n);
    if (tail) {
        __m512 v = _mm512_maskz_loadu_ps(tail, x + k);
        lanes = _mm512_add_ps(lanes, _mm512_mul_ps(v, v));
    }
    __m128 mean = _mm_set_ss(tree_sum(lanes) / (float)n + eps);
    return 1.0f / _mm_cvtss_f32(_mm_sqrt_ss(mean));
}

static inline __m512 normed(__m512 x, __m512 w, __m512 factor)
{
    return _mm512_mul_ps(w, _mm512_mul_ps(x, factor));
}

void tn_rms_norm_f32_avx512(float *dst, const float *x, const float *w, uint32_t n, float eps)
{
    __m512 factor = _mm512_set1_ps(rms_factor(x, n, eps));
    uint32_t k = 0;
    for (; k + 16 <= n; k += 16)
        _mm512_storeu_ps(dst + k,
                         normed(_mm512_loadu_ps(x + k), _mm512_loadu_ps(w + k), factor));
    __mmask16 tail = tail_mask(n);
    if (tail)
        _mm512_mask_storeu_ps(dst + k, tail,
                              normed(_mm512_maskz_loadu_ps(tail, x + k),
                                     _mm512_maskz_loadu_ps(tail, w + k), factor));
}

float tn_rms_norm_quant_avx512(int8_t *q, const float *x, const float *w, uint32_t n, float eps)
{
    __m512 factor = _mm512_set1_ps(rms_factor(x, n, eps));
    __m512 max = _mm512_set1_ps(1e-5f);
    __mmask16 tail = tail_mask(n);
    __m512 last = _mm512_setzero_ps();
    uint32_t k = 0;
    for (; k + 16 <= n; k += 16)
        max = max_abs(max, normed(_mm512_loadu_ps(x + k), _mm512_loadu_ps(w + k), factor));
    if (tail) {
        last = normed(_mm512_maskz_loadu_ps(tail, x + k), _mm512_maskz_loadu_ps(tail, w + k),
                      factor);
        /* 0 * infinity is NaN in the lanes past the end; max_abs ignores it. */
        max = max_abs(max, last);
    }
    float a = _mm512_reduce_max_ps(max);

    __m512 s = _mm512_set1_ps(127.0f / a);
    for (k = 0; k + 16 <= n; k += 16) {
        __m512 v = normed(_mm512_loadu_ps(x + k), _mm512_loadu_ps(w + k), factor);
        _mm_storeu_si128((__m128i *)(q + k), round_i8(_mm512_mul_ps(v, s)));
    }
    if (tail)
        _mm_mask_storeu_epi8(q + k, tail, round_i8(_mm512_mul_ps(last, s)));
    memset(q + n, 0, tn_kern_pad(n) - n);
    return a / 127.0f;
}

void tn_scale_i32_f32_avx512(float *dst, const int32_t *sum, uint32_t n, float scale)
{
    __m512 factor = _mm512_set1_ps(scale);
    uint32_t k = 0;
    for (; k + 16 <= n; k += 16)
        _mm512_storeu_ps(dst + k,
                         _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_loadu_si512(sum + k)), factor));
    __mmask16 tail = tail_mask(n);
    if (tail) {
        __m512i last = _mm512_maskz_loadu_epi32(tail, sum + k);
        _mm512_mask_storeu_ps(dst + k, tail, _mm512_mul_ps(_mm512_cvtepi32_ps(last), factor));
    }
}

void tn_add_i32_f32_avx512(float *dst, const int32_t *sum, uint32_t n, float scale)
{
    __m512 factor = _mm512_set1_ps(scale);
    uint32_t k = 0;
    for (; k + 16 <= n; k += 16) {
        __m512 v = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_loadu_si512(sum + k)), factor);
        _mm512_storeu_ps(dst + k, _mm512_add_ps(_mm512_loadu_ps(dst + k), v));
    }
    __mmask16 tail = tail_mask(n);
    if (tail) {
        __m512i last = _mm512_maskz_loadu_epi32(tail, sum + k);
        __m512 v = _mm512_mul_ps(_mm512_cvtepi32_ps(last), factor);
        _mm512_mask_storeu_ps(dst + k, tail,
                              _mm512_add_ps(_mm512_maskz_loadu_ps(tail, dst + k), v));
    }
}

/* gate > 0 ? gate^2 * up : +0 */
static inline __m512 relu2_mul(__m512 gate, __m512 up)
{
    __mmask16 positive = _mm512_cmp_ps_mask(gate, _mm512_setzero_ps(), _CMP_GT_OQ);
    return _mm512_maskz_mul_ps(positive, _mm512_mul_ps(gate, gate), up);
}

void tn_relu2_mul_f32_avx512(float *dst, const float *gate, const float *up, uint32_t n)
{
    uint32_t k = 0;
    for (; k + 16 <= n; k += 16)
        _mm512_storeu_ps(dst + k, relu2_mul(_mm512_loadu_ps(gate + k), _mm512_loadu_ps(up + k)));
    __mmask16 tail = tail_mask(n);
    if (tail)
        _mm512_mask_storeu_ps(dst + k, tail,
                              relu2_mul(_mm512_maskz_loadu_ps(tail, gate + k),
                                        _mm512_maskz_loadu_ps(tail, up + k)));
}

/* e(z) as defined in gates.h. */
typedef __m512 exponent_fn(__m512 z);

static TN_ALWAYS_INLINE __m512 silu_exponent(__m512 z)
{
    return _mm512_xor_ps(z, _mm512_set1_ps(-0.0f));
}

static TN_ALWAYS_INLINE __m512 gelu_exponent(__m512 z)
{
    const __m512 cube = _mm512_mul_ps(_mm512_mul_ps(z, z), z);
    const __m512 inner = _mm512_add_ps(z, _mm512_mul_ps(_mm512_set1_ps(TN_GELU_CUBE), cube));
    return _mm512_mul_ps(_mm512_set1_ps(TN_GELU_FACTOR), inner);
}

/* The lanes in `mask` of n <= 4 registers; n is a constant after inlining. */
static TN_ALWAYS_INLINE void gate_16(float *dst, const float *gate, const float *up, uint32_t n,
                                     __mmask16 mask, exponent_fn *exponent)
{
    __m512 z[4], e[4];
    for (uint32_t i = 0; i < n; i++) {
        z[i] = _mm512_maskz_loadu_ps(mask, gate + 16 * i);
        e[i] = exponent(z[i]);
    }
    exp_any_16(e, n);
    for (uint32_t i = 0; i < n; i++) {
        const __m512 v = _mm512_div_ps(z[i], _mm512_add_ps(_mm512_set1_ps(1.0f), e[i]));
        _mm512_mask_storeu_ps(dst + 16 * i, mask,
                              _mm512_mul_ps(v, _mm512_maskz_loadu_ps(mask, up + 16 * i)));
    }
}

static TN_ALWAYS_INLINE void gate_all(float *dst, const float *gate, const float *up, uint32_t n,
                                      exponent_fn *exponent)
{
    uint32_t k = 0;
    for (; k + 64 <= n; k += 64)
        gate_16(dst + k, gate + k, up + k, 4, 0xFFFF, exponent);
    for (; k + 16 <= n; k += 16)
        gate_16(dst + k, gate + k, up + k, 1, 0xFFFF, exponent);
    if (k < n)
        gate_16(dst + k, gate + k, up + k, 1, tail_mask(n), exponent);
}

void tn_silu_mul_f32_avx512(float *dst, const float *gate, const float *up, uint32_t n)
{
    gate_all(dst, gate, up, n, silu_exponent);
}

void tn_gelu_mul_f32_avx512(float *dst, const float *gate, const float *up, uint32_t n)
{
    gate_all(dst, gate, up, n, gelu_exponent);
}

/* tn_tanh_f32 (kern/tanh.h), given exp(2 |x|). */
static TN_ALWAYS_INLINE __m512 tanh_16(__m512 x, __m512 e)
{
    const __m512 sign = _mm512_set1_ps(-0.0f), one = _mm512_set1_ps(1.0f);
    const __m512 a = _mm512_andnot_ps(sign, x), s = _mm512_mul_ps(x, x);
    const __m512 quotient = _mm512_div_ps(_mm512_set1_ps(2.0f), _mm512_add_ps(e, one));
    __m512 large = _mm512_andnot_ps(sign, _mm512_sub_ps(one, quotient));
    large = _mm512_or_ps(large, _mm512_and_ps(sign, x));
    __m512 p = _mm512_set1_ps(TN_TANH_P4);
    p = _mm512_add_ps(_mm512_mul_ps(p, s), _mm512_set1_ps(TN_TANH_P3));
    p = _mm512_add_ps(_mm512_mul_ps(p, s), _mm512_set1_ps(TN_TANH_P2));
    p = _mm512_add_ps(_mm512_mul_ps(p, s), _mm512_set1_ps(TN_TANH_P1));
    p = _mm512_add_ps(_mm512_mul_ps(p, s), _mm512_set1_ps(TN_TANH_P0));
    const __mmask16 is_small =
        _mm512_cmp_ps_mask(a, _mm512_set1_ps(TN_TANH_SMALL), _CMP_LT_OQ);
    return _mm512_mask_add_ps(large, is_small, x, _mm512_mul_ps(_mm512_mul_ps(x, s), p));
}

/* The lanes in `mask` of n <= 4 registers; n is a constant after inlining. */
static TN_ALWAYS_INLINE void cap_16(float *x, uint32_t n, __mmask16 mask, __m512 cap)
{
    __m512 z[4], e[4];
    for (uint32_t i = 0; i < n; i++) {
        z[i] = _mm512_div_ps(_mm512_maskz_loadu_ps(mask, x + 16 * i), cap);
        const __m512 a = _mm512_andnot_ps(_mm512_set1_ps(-0.0f), z[i]);
        e[i] = _mm512_add_ps(a, a);
    }
    exp_any_16(e, n);
    for (uint32_t i = 0; i < n; i++)
        _mm512_mask_storeu_ps(x + 16 * i, mask, _mm512_mul_ps(cap, tanh_16(z[i], e[i])));
}

void tn_cap_f32_avx512(float *x, uint32_t n, float cap)
{
    const __m512 c = _mm512_set1_ps(cap);
    uint32_t k = 0;
    for (; k + 64 <= n; k += 64)
        cap_16(x + k, 4, 0xFFFF, c);
    for (; k + 16 <= n; k += 16)
        cap_16(x + k, 1, 0xFFFF, c);
    if (k < n)
        cap_16(x + k, 1, tail_mask(n), c);
}

/* Rotates the pairs (lo_j, hi_j) of the lanes in `mask`. */
static TN_ALWAYS_INLINE void rotate(float *lo, float *hi, const float *cos, const float *sin,
                                    __mmask16 mask)
{
    __m512 a = _mm512_maskz_loadu_ps(mask, lo);
    __m512 b = _mm512_maskz_loadu_ps(mask, hi);
    __m512 c = _mm512_maskz_loadu_ps(mask, cos);
    __m512 s = _mm512_maskz_loadu_ps(mask, sin);
    _mm512_mask_storeu_ps(lo, mask, _mm512_sub_ps(_mm512_mul_ps(a, c), _mm512_mul_ps(b, s)));
    _mm512_mask_storeu_ps(hi, mask, _mm512_add_ps(_mm512_mul_ps(b, c), _mm512_mul_ps(a, s)));
}

void tn_rope_f32_avx512(float *x, const float *cos, const float *sin, uint32_t n_heads,
                        uint32_t head_dim, uint32_t stride)
{
    uint32_t half = head_dim / 2;
    __mmask16 tail = tail_mask(half);
    for (uint32_t i = 0; i < n_heads; i++) {
        float *lo = x + (size_t)i * stride;
        uint32_t j = 0;
        for (; j + 16 <= half; j += 16)
            rotate(lo + j, lo + half + j, cos + j, sin + j, 0xFFFF);
        if (tail)
            rotate(lo + j, lo + half + j, cos + j, sin + j, tail);
    }
}

/* Stores those of the numbers i ... i + 15 whose bit is set in `chosen`, followed by zeros; returns
 * their number. */
static TN_ALWAYS_INLINE uint32_t list_16(uint32_t *dst, uint32_t i, __mmask16 chosen,
                                         __mmask16 present)
{
    const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i numbers = _mm512_add_epi32(_mm512_set1_epi32((int)i), lanes);
    /* Compressed in the register: compressing stores are slow on some processors.  At most as many
     * numbers were found as examined, so dst has room for all present lanes. */
    _mm512_mask_storeu_epi32(dst, present, _mm512_maskz_compress_epi32(chosen, numbers));
    return (uint32_t)__builtin_popcount(chosen);
}

static TN_ALWAYS_INLINE uint32_t list_positive_16(uint32_t *dst, float *x, uint32_t i,
                                                  __mmask16 present)
{
    const __m512 v = _mm512_maskz_loadu_ps(present, x + i);
    const __mmask16 chosen = _mm512_cmp_ps_mask(v, _mm512_setzero_ps(), _CMP_GT_OQ);
    _mm512_mask_storeu_ps(x + i, present, _mm512_maskz_mov_ps(chosen, v));
    return list_16(dst, i, chosen, present);
}

uint32_t tn_list_positive_f32_avx512(uint32_t *dst, float *x, uint32_t n)
{
    uint32_t n_found = 0, i = 0;
    for (; i + 16 <= n; i += 16)
        n_found += list_positive_16(dst + n_found, x, i, 0xFFFF);
    return n_found + list_positive_16(dst + n_found, x, i, tail_mask(n));
}

static TN_ALWAYS_INLINE uint32_t list_nonzero_16(uint32_t *dst, const int8_t *x, uint32_t i,
                                                 __mmask16 present)
{
    const __m128i v = _mm_maskz_loadu_epi8(present, x + i);
    return list_16(dst, i, _mm_test_epi8_mask(v, v), present);
}

uint32_t tn_list_nonzero_i8_avx512(uint32_t *dst, const int8_t *x, uint32_t n)
{
    uint32_t n_found = 0, i = 0;
    for (; i + 16 <= n; i += 16)
        n_found += list_nonzero_16(dst + n_found, x, i, 0xFFFF);
    return n_found + list_nonzero_16(dst + n_found, x, i, tail_mask(n));
}
