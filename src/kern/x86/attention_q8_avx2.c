/* SPDX-License-Identifier: MIT
 *
 * Attention over a q8 cache, AVX2, with the loops of attention_q8_words.h.
 *
 * 16 bytes, four lanes, are widened to words and multiplied with four factors by `vpmaddwd`, which
 * leaves two sums per lane; these are added at the end of a tile.  8 lanes x up to 4 query heads
 * are 8 accumulators: per 32 bytes 2 loads, 4 broadcasts and 8 vpmaddwd and vpaddd.  The bytes are
 * 128 too large: 128 times the sum of the factors is subtracted.
 *
 * Sums are exact in int32: of 256 products at most 256 * 128 * 32639 < 2^30; before that
 * subtraction at most 256 * 255 * 32639 < 2^31.
 */
#include <string.h>

#include "kern/x86/attention_q8_lanes_avx2.h"
#include "kern/x86/lanes_avx2.h"

#define F16_MAX 65504.0f

/* Up to TN_KV_BLOCK factors of up to 4 heads, zero-padded to a multiple of 16. */
struct factors {
    int16_t x16[4][TN_KV_BLOCK];
    int32_t excess[4]; /* 128 times the sum */
    float scale[4];
};

#include "kern/attention_q8_words.h"

/* 128 times the sum of n words, n a multiple of 16. */
static int32_t excess_of(const int16_t *x16, uint32_t n)
{
    __m128i sum = _mm_setzero_si128();
    for (uint32_t k = 0; k < n; k += 8)
        sum = _mm_add_epi32(sum, _mm_madd_epi16(_mm_loadu_si128((const __m128i *)(x16 + k)),
                                                _mm_set1_epi16(128)));
    return reduce_add(sum);
}

static TN_ALWAYS_INLINE __m256i load_words(const uint8_t *p)
{
    return _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)p));
}

/* sum += v in place: gcc otherwise moves sums between registers. */
static TN_ALWAYS_INLINE void add_to(__m256i *sum, __m256i v)
{
    __asm__("vpaddd %1, %0, %0" : "+x"(*sum) : "x"(v));
}

static TN_ALWAYS_INLINE void dot_lanes(ivec dots[4], const uint8_t *lanes, uint32_t group_bytes,
                                       uint32_t n_groups, const struct factors *f, uint32_t n_q)
{
    __m256i sum[4][2];
    /* Unrolled this early so that all sums become registers. */
#pragma GCC unroll 4
    for (uint32_t h = 0; h < n_q; h++)
        sum[h][0] = sum[h][1] = _mm256_setzero_si256();
    for (uint32_t g = 0; g < n_groups; g++, lanes += group_bytes) {
        __m256i low = load_words(lanes), high = load_words(lanes + 16);
        tn_request(lanes, TN_PREFETCH_OF(KEYS));
#pragma GCC unroll 4
        for (uint32_t h = 0; h < n_q; h++) {
            int64_t four;
            memcpy(&four, f->x16[h] + 4 * g, sizeof four);
            __m256i factors = _mm256_set1_epi64x(four);
            add_to(&sum[h][0], _mm256_madd_epi16(low, factors));
            add_to(&sum[h][1], _mm256_madd_epi16(high, factors));
        }
    }
#pragma GCC unroll 4
    for (uint32_t h = 0; h < n_q; h++) {
        /* lanes 0 1 4 5 | 2 3 6 7 */
        __m256i all = _mm256_permute4x64_epi64(_mm256_hadd_epi32(sum[h][0], sum[h][1]), 0xD8);
        dots[h] = (ivec)_mm256_sub_epi32(all, _mm256_set1_epi32(f->excess[h]));
    }
}

static void take_query(struct factors *f, uint32_t h, const int8_t *q, uint16_t scale, uint32_t n)
{
    for (uint32_t k = 0; k < n; k += 16)
        _mm256_storeu_si256((__m256i *)(f->x16[h] + k),
                            _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(q + k))));
    f->excess[h] = excess_of(f->x16[h], n);
    f->scale[h] = _cvtsh_ss(scale);
}

static void round_weights(struct factors *dst, const float *p, size_t p_stride, uint32_t n_q,
                          const uint16_t *scales, uint32_t n_pos)
{
    const float limit = (float)TN_I16_MAX;
    const uint32_t n = (n_pos + 15) / 16 * 16;
    float w[TN_KV_BLOCK];
    for (uint32_t h = 0; h < n_q; h++) {
        float a = weigh(w, p + h * p_stride, scales, n_pos);
        __m256 s = _mm256_set1_ps(limit / a);
        for (uint32_t t = 0; t < n; t += 16) {
            /* lanes 0 1 4 5 | 2 3 6 7 of four words each */
            __m256i words = _mm256_packs_epi32(round_8(w + t, s), round_8(w + t + 8, s));
            _mm256_storeu_si256((__m256i *)(dst->x16[h] + t),
                                _mm256_permute4x64_epi64(words, 0xD8));
        }
        dst->excess[h] = excess_of(dst->x16[h], n);
        dst->scale[h] = a / limit;
    }
}

ATTENTION_Q8_DEFINE(avx2)

void tn_kv_store_q8_avx2(void *dst, uint16_t *scales, const float *x, uint32_t dim)
{
    int8_t *out = dst;
    for (uint32_t start = 0; start < dim; start += BLOCK) {
        uint32_t end = TN_MIN(dim, start + BLOCK);
        __m256 max = _mm256_setzero_ps();
        for (uint32_t d = start; d < end; d += 8)
            max = max_abs(max, _mm256_loadu_ps(x + d));
        float wanted = reduce_max(max) / 127.0f;
        uint16_t half = _cvtss_sh(TN_MIN(wanted, F16_MAX), _MM_FROUND_TO_NEAREST_INT);
        scales[start / BLOCK] = half;
        __m256 scale = _mm256_set1_ps(_cvtsh_ss(half));
        __m256 used = _mm256_cmp_ps(scale, _mm256_setzero_ps(), _CMP_GT_OQ);
        for (uint32_t d = start; d < end; d += 8) {
            __m256 v = _mm256_div_ps(_mm256_loadu_ps(x + d), scale);
            _mm_storel_epi64((__m128i *)(out + d), round_i8(_mm256_and_ps(used, v)));
        }
    }
}
