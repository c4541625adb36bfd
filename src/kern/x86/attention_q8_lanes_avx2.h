/* SPDX-License-Identifier: MIT
 *
 * Vectors and rounding for attention over a q8 cache with 256-bit registers.  Only for
 * attention_q8_avx2.c and attention_q8_avxvnni.c.
 */
#ifndef TN_ATTENTION_Q8_LANES_AVX2_H
#define TN_ATTENTION_Q8_LANES_AVX2_H

#include "kern/kern.h"
#include "kern/x86/lanes_avx2.h"

#define LANES 8u

#include "kern/attention_q8_heads.h"

static TN_ALWAYS_INLINE fvec f32_of_f16(const uint16_t *p)
{
    return (fvec)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
}

static TN_ALWAYS_INLINE void store_first_lanes(float *p, fvec v, uint32_t n)
{
    if (n >= LANES)
        _mm256_storeu_ps(p, (__m256)v);
    else
        _mm256_maskstore_ps(p, first_lanes((int32_t)n), (__m256)v);
}

/* min(v, limit); NaN gives limit. */
static inline __m256 at_most(__m256 v, float limit)
{
    return _mm256_min_ps(v, _mm256_set1_ps(limit));
}

static inline int32_t reduce_add(__m128i v)
{
    v = _mm_add_epi32(v, _mm_shuffle_epi32(v, 0x4E));
    return _mm_cvtsi128_si32(_mm_add_epi32(v, _mm_shuffle_epi32(v, 0xB1)));
}

/* w[t] = p[t] * scales[t], t < n_pos, zero-padded to a multiple of 16; returns the largest
 * magnitude, at least 1e-30. */
static float weigh(float w[TN_KV_BLOCK], const float *p, const uint16_t *scales, uint32_t n_pos)
{
    __m256 max = _mm256_set1_ps(1e-30f);
    const uint32_t n_padded = (n_pos + 15) / 16 * 16;
    uint32_t t = 0;
    for (; t + 8 <= n_pos; t += 8) {
        __m256 scale = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(scales + t)));
        __m256 weight = _mm256_mul_ps(_mm256_loadu_ps(p + t), scale);
        _mm256_storeu_ps(w + t, weight);
        max = max_abs(max, weight);
    }
    for (; t < n_padded; t += 8) {
        const int32_t left = (int32_t)(n_pos - t);
        __m256 scale = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(scales + t)));
        __m256 weight = _mm256_mul_ps(load_first(p + t, left), scale);
        /* Past the end the scale may be any value. */
        weight = _mm256_and_ps(weight, _mm256_castsi256_ps(first_lanes(left)));
        _mm256_storeu_ps(w + t, weight);
        max = max_abs(max, weight);
    }
    return reduce_max(max);
}

/* Eight weights times s = 32639 / a, rounded to i16.  Zero stays zero: 0 * s is never NaN.  No
 * product is below -32639, and one above is NaN. */
static inline __m256i round_8(const float *w, __m256 s)
{
    return _mm256_cvtps_epi32(at_most(_mm256_mul_ps(_mm256_loadu_ps(w), s), (float)TN_I16_MAX));
}

#endif
