/* SPDX-License-Identifier: MIT
 *
 * Attention over a q8 cache, AVX-VNNI: the loops of attention_q8_dot.h with two registers of 8
 * lanes.  One `vpdpbusd` is 32 multiply-adds: 64 bytes of the cache cost 2 loads and for each head
 * and byte of the factor a broadcast and 2 dot products.  q . k keeps 4 heads x 2 = 8 accumulators,
 * p . v 2 heads x 2 bytes x 2.
 */
#include "kern/kern.h"
#include "kern/x86/attention_q8_lanes_avx2.h"
#include "kern/x86/lanes_avx2.h"

#define VECS 2u
#define PV_HEADS 2
#define VEC_REGISTER "x"

#include "kern/attention_q8_dot.h"

static TN_ALWAYS_INLINE ivec load_bytes(const uint8_t *p)
{
    return (ivec)_mm256_loadu_si256((const __m256i *)p);
}

static TN_ALWAYS_INLINE ivec dot(ivec sum, ivec bytes, ivec factors)
{
    return (ivec)_mm256_dpbusd_avx_epi32((__m256i)sum, (__m256i)bytes, (__m256i)factors);
}

static TN_ALWAYS_INLINE int32_t excess_of(const int8_t *factors, uint32_t n)
{
    __m128i sum = _mm_setzero_si128();
    for (uint32_t k = 0; k < n; k += 16)
        sum = _mm_dpbusd_avx_epi32(sum, _mm_set1_epi8((char)128),
                                   _mm_loadu_si128((const __m128i *)(factors + k)));
    return reduce_add(sum);
}

/* The bytes of 16 integers 256 high + low, |low| <= 128: high bytes of four, low bytes of four, and
 * so on.  128 is added to each first: its bytes are then high and low + 128, which flips the top
 * bit of low. */
static inline __m256i split_bytes(__m256i a, __m256i b)
{
    /* The second and first bytes of four integers, moved to the front or the back of their half. */
    const __m256i to_front = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(1, 5, 9, 13, 0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1));
    const __m256i to_back = _mm256_permute4x64_epi64(to_front, 0xB1);
    const __m256i half = _mm256_set1_epi32(128);
    __m256i bytes =
        _mm256_or_si256(_mm256_shuffle_epi8(_mm256_add_epi32(a, half), to_front),
                        _mm256_shuffle_epi8(_mm256_add_epi32(b, half), to_back));
    return _mm256_xor_si256(_mm256_permute4x64_epi64(bytes, 0xD8),
                            _mm256_set1_epi64x((int64_t)0x8080808000000000));
}

static TN_ALWAYS_INLINE void round_weights(struct weights *dst, const float *p, size_t p_stride,
                                           uint32_t n_q, const uint16_t *scales, uint32_t n_pos,
                                           const uint8_t *ahead)
{
    const float limit = (float)TN_I16_MAX;
    float w[TN_KV_BLOCK];
    for (uint32_t h = 0; h < n_q; h++) {
        float a = weigh(w, p + h * p_stride, scales, n_pos);
        __m256 s = _mm256_set1_ps(limit / a);
        __m256i sum = _mm256_setzero_si256();
        for (uint32_t t = 0; t < n_pos; t += 16) {
            __m256i q0 = round_8(w + t, s), q1 = round_8(w + t + 8, s);
            sum = _mm256_add_epi32(sum, _mm256_add_epi32(q0, q1));
            _mm256_storeu_si256((__m256i *)(dst->bytes[h] + 2 * t), split_bytes(q0, q1));
            tn_request_at(ahead + (h * TN_KV_BLOCK + t) * 4, TN_PREFETCH_OF(VALUES));
        }
        dst->start[h] = -128 * reduce_add(_mm_add_epi32(_mm256_castsi256_si128(sum),
                                                        _mm256_extracti128_si256(sum, 1)));
        dst->scale[h] = a / limit;
    }
}

ATTENTION_Q8_DEFINE(avxvnni)
