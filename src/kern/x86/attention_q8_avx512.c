/* SPDX-License-Identifier: MIT
 *
 * Attention over a q8 cache, AVX-512 with VNNI: the loops of attention_q8_dot.h with two registers
 * of 16 lanes.  One `vpdpbusd` is 64 multiply-adds: 128 bytes of the cache cost 2 loads and for
 * each head and byte of the factor a broadcast and 2 dot products.  q . k keeps 4 heads x 2 = 8
 * accumulators, p . v 4 heads x 2 bytes x 2.
 */
#include "kern/kern.h"
#include "kern/x86/lanes_avx512.h"

#define LANES 16u
#define VECS 2u
#define PV_HEADS 4
#define VEC_REGISTER "v"

#include "kern/attention_q8_dot.h"

static TN_ALWAYS_INLINE ivec load_bytes(const uint8_t *p)
{
    return (ivec)_mm512_loadu_si512(p);
}

static TN_ALWAYS_INLINE ivec dot(ivec sum, ivec bytes, ivec factors)
{
    return (ivec)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)bytes, (__m512i)factors);
}

static TN_ALWAYS_INLINE int32_t excess_of(const int8_t *factors, uint32_t n)
{
    __m128i sum = _mm_setzero_si128();
    for (uint32_t k = 0; k < n; k += 16)
        sum = _mm_dpbusd_epi32(sum, _mm_set1_epi8((char)128),
                               _mm_loadu_si128((const __m128i *)(factors + k)));
    sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4E));
    return _mm_cvtsi128_si32(_mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xB1)));
}

static TN_ALWAYS_INLINE fvec f32_of_f16(const uint16_t *p)
{
    return (fvec)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}

static TN_ALWAYS_INLINE void store_first_lanes(float *p, fvec v, uint32_t n)
{
    _mm512_mask_storeu_ps(p, n >= LANES ? 0xFFFF : tail_mask(n), (__m512)v);
}

#define F16_MAX 65504.0f

/* min(v, limit); NaN gives limit. */
static inline __m512 at_most(__m512 v, float limit)
{
    return _mm512_min_ps(v, _mm512_set1_ps(limit));
}

/* Adding this rounds |v| < 2^21 to an integer q and leaves q + 128 in the low 16 bits: one byte is
 * then the high digit, the other the low digit plus 128, which flips its top bit. */
#define ROUND_TO_BYTES (12582912.0f + 128.0f)
#define ROUND_TO_BYTES_BITS 0x4B400080u

/* The bytes of 2 x 16 sums: for every four sums their second bytes, then their first bytes. */
static inline __m512i split_bytes(__m512i a, __m512i b)
{
    const __m512i order = _mm512_set_epi64(0x7C7874707D797571, 0x6C6864606D696561,
                                           0x5C5854505D595551, 0x4C4844404D494541,
                                           0x3C3834303D393531, 0x2C2824202D292521,
                                           0x1C1814101D191511, 0x0C0804000D090501);
    return _mm512_xor_si512(_mm512_permutex2var_epi8(a, order, b),
                            _mm512_set1_epi64((int64_t)0x8080808000000000));
}

/* Rounds to i16 n <= TN_KV_BLOCK values (a multiple of 32) for each head; max holds their largest
 * magnitudes, at least 1e-30.  Zero stays zero: 0 * (32639 / a) is never NaN.  No product is below
 * -32639, and one above is NaN.  Meanwhile prefetches the lines from `ahead` on. */
static TN_ALWAYS_INLINE void round_i16(struct weights *dst, float x[4][TN_KV_BLOCK], uint32_t n_q,
                                       uint32_t n, const __m512 max[4], const uint8_t *ahead)
{
    const float limit = (float)TN_I16_MAX;
    const __m512 magic = _mm512_set1_ps(ROUND_TO_BYTES);
    __m512 s[4];
    __m512i sum[4];
    for (uint32_t h = 0; h < n_q; h++) {
        float a = _mm512_reduce_max_ps(max[h]);
        s[h] = _mm512_set1_ps(limit / a);
        sum[h] = _mm512_set1_epi32((int32_t)(0u - n / 16 * ROUND_TO_BYTES_BITS));
        dst->scale[h] = a / limit;
    }
    for (uint32_t k = 0; k < n; k += 32) {
        for (uint32_t h = 0; h < n_q; h++) {
            __m512 a = _mm512_mul_ps(_mm512_loadu_ps(x[h] + k), s[h]);
            __m512 b = _mm512_mul_ps(_mm512_loadu_ps(x[h] + k + 16), s[h]);
            __m512i a_bits = _mm512_castps_si512(_mm512_add_ps(at_most(a, limit), magic));
            __m512i b_bits = _mm512_castps_si512(_mm512_add_ps(at_most(b, limit), magic));
            sum[h] = _mm512_add_epi32(sum[h], _mm512_add_epi32(a_bits, b_bits));
            _mm512_storeu_si512(dst->bytes[h] + 2 * k, split_bytes(a_bits, b_bits));
            tn_request_at(ahead + (k / 32 * n_q + h) * 64, TN_PREFETCH_OF(VALUES));
        }
    }
    for (uint32_t h = 0; h < n_q; h++)
        dst->start[h] = -128 * _mm512_reduce_add_epi32(sum[h]);
}

static TN_ALWAYS_INLINE void round_weights(struct weights *dst, const float *p, size_t p_stride,
                                           uint32_t n_q, const uint16_t *scales, uint32_t n_pos,
                                           const uint8_t *ahead)
{
    const uint32_t n = (n_pos + 31) / 32 * 32;
    float w[4][TN_KV_BLOCK];
    __m512 max[4];
    for (uint32_t h = 0; h < n_q; h++)
        max[h] = _mm512_set1_ps(1e-30f);
    for (uint32_t t = 0; t < n; t += 16) {
        const uint32_t left = n_pos - TN_MIN(n_pos, t);
        const __mmask16 mask = left >= 16 ? 0xFFFF : tail_mask(left);
        __m512 scale = (__m512)f32_of_f16(scales + t);
        for (uint32_t h = 0; h < n_q; h++) {
            __m512 weight = _mm512_maskz_loadu_ps(mask, p + h * p_stride + t);
            weight = _mm512_maskz_mul_ps(mask, weight, scale);
            _mm512_storeu_ps(w[h] + t, weight);
            max[h] = max_abs(max[h], weight);
        }
    }
    round_i16(dst, w, n_q, n, max, ahead);
}

ATTENTION_Q8_DEFINE(avx512)

void tn_kv_store_q8_avx512(void *dst, uint16_t *scales, const float *x, uint32_t dim)
{
    int8_t *out = dst;
    for (uint32_t start = 0; start < dim; start += BLOCK) {
        uint32_t end = TN_MIN(dim, start + BLOCK);
        __m512 max = _mm512_setzero_ps();
        for (uint32_t d = start; d < end; d += 16)
            max = max_abs(max, _mm512_loadu_ps(x + d));
        float wanted = _mm512_reduce_max_ps(max) / 127.0f;
        uint16_t half = _cvtss_sh(TN_MIN(wanted, F16_MAX), _MM_FROUND_TO_NEAREST_INT);
        scales[start / BLOCK] = half;
        __m512 scale = _mm512_set1_ps(_cvtsh_ss(half));
        __mmask16 used = _mm512_cmp_ps_mask(scale, _mm512_setzero_ps(), _CMP_GT_OQ);
        for (uint32_t d = start; d < end; d += 16) {
            __m512 v = at_most(_mm512_div_ps(_mm512_loadu_ps(x + d), scale), 127.0f);
            __m512i q = _mm512_cvtps_epi32(_mm512_max_ps(v, _mm512_set1_ps(-127.0f)));
            _mm_storeu_si128((__m128i *)(out + d), _mm512_maskz_cvtepi32_epi8(used, q));
        }
    }
}
