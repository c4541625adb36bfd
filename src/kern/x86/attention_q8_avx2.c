/* SPDX-License-Identifier: MIT
 *
 * Attention over a q8 cache, AVX2.  Sums are exact in int32, so their order is free; vpmaddwd
 * adds two int16 products in each of 8 lanes.
 *
 * q . k   a tile is 4 positions x up to 4 query heads, one block of 64 columns after the other.
 *         Per position, head and block: 4 vpmaddwd, 3 vpaddd and about 2 for the final sums.
 * p . v   16 columns after the other, positions in pairs: two rows are widened and interleaved so
 *         that a lane holds the same column of both.
 *         Per pair of positions and 16 columns: 4 shuffles, then 2 vpmaddwd, 2 vpaddd for each
 *         head.
 *
 * Sums:  q . k at most 64 * 128 * 32767 < 2^29;  p . v at most 256 * 128 * 32767 < 2^31.
 */
#include <string.h>

#include "kern/kern.h"
#include "kern/x86/lanes_avx2.h"

#define BLOCK 64u /* values that share a scale */
#define MAX_BLOCKS 8u /* of a row in attn_qk; longer ones, which no model has, are left to ref */
#define F16_MAX 65504.0f
/* Positions ahead whose line is fetched. */
#define PREFETCH_POSITIONS 32u

/* The cached rows of one key/value head. */
struct rows {
    const int8_t *data;
    const uint16_t *scales;
    uint32_t dim;
    uint32_t n_blocks; /* scales per row */
};

/* max(so_far, |v|) and [-limit, limit]; the instructions return their second operand where the
 * first is NaN. */
static inline __m256 max_abs(__m256 so_far, __m256 v)
{
    return _mm256_max_ps(_mm256_andnot_ps(_mm256_set1_ps(-0.0f), v), so_far);
}

static inline __m256 clamp(__m256 v, float limit)
{
    v = _mm256_min_ps(v, _mm256_set1_ps(limit));
    return _mm256_max_ps(v, _mm256_set1_ps(-limit));
}

static inline float reduce_max(__m256 v)
{
    __m128 a = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    a = _mm_max_ps(a, _mm_movehl_ps(a, a));
    return _mm_cvtss_f32(_mm_max_ss(a, _mm_shuffle_ps(a, a, 1)));
}

/* rne(v) of eight values as int16. */
static inline __m128i round_8(__m256 v)
{
    __m256i q = _mm256_cvtps_epi32(v);
    return _mm_packs_epi32(_mm256_castsi256_si128(q), _mm256_extracti128_si256(q, 1));
}

/* i16 of n values (kern.h); zeros up to the next multiple of 8. Returns a / 32767. */
static float round_i16(int16_t *dst, const float *x, uint32_t n)
{
    __m256 max = _mm256_set1_ps(1e-30f);
    for (uint32_t k = 0; k < n; k += 8)
        max = max_abs(max, load_first(x + k, (int32_t)(n - k)));
    float a = reduce_max(max);
    __m256 s = _mm256_set1_ps(32767.0f / a);
    for (uint32_t k = 0; k < n; k += 8) {
        __m256 v = clamp(_mm256_mul_ps(load_first(x + k, (int32_t)(n - k)), s), 32767.0f);
        /* Behind the end 0 * infinity may have given 32767. */
        v = _mm256_and_ps(v, _mm256_castsi256_ps(first_lanes((int32_t)(n - k))));
        _mm_storeu_si128((__m128i *)(dst + k), round_8(v));
    }
    return a / 32767.0f;
}

/* ---- q . k ---- */

/* Up to 4 rounded queries. */
struct queries {
    int16_t q16[4][MAX_BLOCKS * BLOCK];
    float scales[MAX_BLOCKS][4]; /* [block][head] */
};

static void round_queries(struct queries *dst, const float *q, uint32_t n_q, uint32_t dim)
{
    memset(dst->scales, 0, sizeof dst->scales);
    for (uint32_t h = 0; h < n_q; h++)
        for (uint32_t d = 0; d < dim; d += BLOCK)
            dst->scales[d / BLOCK][h] =
                round_i16(dst->q16[h] + d, q + (size_t)h * dim + d, TN_MIN(BLOCK, dim - d));
}

/* The terms of one position and the columns [d, d_end) of one block, element h for head h. */
static TN_ALWAYS_INLINE __m128 qk_block(const struct queries *q, const struct rows *k, uint32_t t,
                                        uint32_t n_q, uint32_t d, uint32_t d_end)
{
    const int8_t *key = k->data + (size_t)t * k->dim;
    uint32_t b = d / BLOCK;
    __m256i sum[4];
    for (uint32_t h = 0; h < 4; h++)
        sum[h] = _mm256_setzero_si256();
    for (; d < d_end; d += 16) {
        __m256i words = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(key + d)));
        for (uint32_t h = 0; h < n_q; h++) {
            __m256i query = _mm256_loadu_si256((const __m256i *)(q->q16[h] + d));
            sum[h] = _mm256_add_epi32(sum[h], _mm256_madd_epi16(words, query));
        }
    }
    __m256i all = _mm256_hadd_epi32(_mm256_hadd_epi32(sum[0], sum[1]),
                                    _mm256_hadd_epi32(sum[2], sum[3]));
    __m128i dots = _mm_add_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
    __m128 scale = _mm_set1_ps(_cvtsh_ss(k->scales[(size_t)t * k->n_blocks + b]));
    return _mm_mul_ps(_mm_mul_ps(_mm_cvtepi32_ps(dots), scale), _mm_loadu_ps(q->scales[b]));
}

/* n_pos is 4 or 1 and n_q at most 4, constants where this is inlined. */
static TN_ALWAYS_INLINE void qk_tile(float *s, size_t s_stride, const struct queries *q,
                                     const struct rows *k, uint32_t t, uint32_t n_pos, uint32_t n_q,
                                     float factor)
{
    __m128 score[4];
    for (uint32_t i = 0; i < 4; i++)
        score[i] = _mm_setzero_ps();
    for (uint32_t i = 0; i < n_pos; i++) {
        uint32_t d = 0;
        for (; d + BLOCK <= k->dim; d += BLOCK)
            score[i] = _mm_add_ps(score[i], qk_block(q, k, t + i, n_q, d, d + BLOCK));
        if (d < k->dim)
            score[i] = _mm_add_ps(score[i], qk_block(q, k, t + i, n_q, d, k->dim));
        score[i] = _mm_mul_ps(score[i], _mm_set1_ps(factor));
    }
    _MM_TRANSPOSE4_PS(score[0], score[1], score[2], score[3]);
    for (uint32_t h = 0; h < n_q; h++) {
        if (n_pos == 4)
            _mm_storeu_ps(s + h * s_stride + t, score[h]);
        else
            _mm_store_ss(s + h * s_stride + t, score[h]);
    }
}

static TN_ALWAYS_INLINE void qk_heads(float *s, size_t s_stride, const float *q, uint32_t n_q,
                                      const struct rows *k, uint32_t n_pos, float factor)
{
    struct queries queries;
    round_queries(&queries, q, n_q, k->dim);
    uint32_t t = 0;
    for (; t + 4 <= n_pos; t += 4) {
        const int8_t *ahead = k->data + (size_t)(t + PREFETCH_POSITIONS) * k->dim;
        for (uint32_t byte = 0; byte < 4 * k->dim; byte += 64)
            TN_PREFETCH(ahead + byte);
        qk_tile(s, s_stride, &queries, k, t, 4, n_q, factor);
    }
    for (; t < n_pos; t++)
        qk_tile(s, s_stride, &queries, k, t, 1, n_q, factor);
}

void tn_attn_qk_q8_avx2(float *s, size_t s_stride, const float *q, uint32_t n_q, const void *k,
                        const uint16_t *k_scales, uint32_t n_pos, uint32_t dim, float factor)
{
    if (dim > MAX_BLOCKS * BLOCK) {
        tn_attn_qk_q8_ref(s, s_stride, q, n_q, k, k_scales, n_pos, dim, factor);
        return;
    }
    struct rows rows = {k, k_scales, dim, (dim + BLOCK - 1) / BLOCK};
    uint32_t h = 0;
    for (; h + 4 <= n_q; h += 4)
        qk_heads(s + h * s_stride, s_stride, q + (size_t)h * dim, 4, &rows, n_pos, factor);
    if (h + 2 <= n_q) {
        qk_heads(s + h * s_stride, s_stride, q + (size_t)h * dim, 2, &rows, n_pos, factor);
        h += 2;
    }
    if (h < n_q)
        qk_heads(s + h * s_stride, s_stride, q + (size_t)h * dim, 1, &rows, n_pos, factor);
}

/* ---- p . v ---- */

/* The weights of up to 4 heads, rounded: pairs of positions side by side, zeros behind the end. */
struct weights {
    int16_t w16[4][TN_PV_CHUNK];
    float scale[4];
};

static void round_weights(struct weights *dst, const float *p, size_t p_stride, uint32_t n_q,
                          const struct rows *v, uint32_t n_pos)
{
    uint16_t halves[TN_PV_CHUNK] = {0};
    float w[TN_PV_CHUNK];
    for (uint32_t t = 0; t < n_pos; t++)
        halves[t] = v->scales[(size_t)t * v->n_blocks];
    for (uint32_t h = 0; h < n_q; h++) {
        for (uint32_t t = 0; t < n_pos; t += 8) {
            __m256 scales = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(halves + t)));
            __m256 weights = load_first(p + h * p_stride + t, (int32_t)(n_pos - t));
            _mm256_storeu_ps(w + t, _mm256_mul_ps(weights, scales));
        }
        dst->scale[h] = round_i16(dst->w16[h], w, n_pos);
    }
}

static TN_ALWAYS_INLINE __m256i load_words(const int8_t *p)
{
    return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)p));
}

/* Adds 16 columns of rows a and b with one pair of weights per head. */
static TN_ALWAYS_INLINE void pv_pair(__m256i sum[4][2], __m256i a, __m256i b,
                                     const struct weights *weights, uint32_t t, uint32_t n_q)
{
    __m256i low = _mm256_unpacklo_epi16(a, b);
    __m256i high = _mm256_unpackhi_epi16(a, b);
    for (uint32_t h = 0; h < n_q; h++) {
        int32_t pair;
        memcpy(&pair, &weights->w16[h][t], sizeof pair);
        __m256i both = _mm256_set1_epi32(pair);
        sum[h][0] = _mm256_add_epi32(sum[h][0], _mm256_madd_epi16(low, both));
        sum[h][1] = _mm256_add_epi32(sum[h][1], _mm256_madd_epi16(high, both));
    }
}

/* 16 columns of at most TN_PV_CHUNK positions; n_q is a constant of at most 4 where this is
 * inlined. */
static TN_ALWAYS_INLINE void pv_columns(float *o, const int8_t *v, uint32_t n_pos, uint32_t dim,
                                        const struct weights *weights, uint32_t n_q,
                                        uint32_t prefetch_bytes)
{
    __m256i sum[4][2];
    for (uint32_t h = 0; h < 4; h++)
        sum[h][0] = sum[h][1] = _mm256_setzero_si256();
    uint32_t t = 0;
    for (; t + 2 <= n_pos; t += 2) {
        const int8_t *row = v + (size_t)t * dim;
        const int8_t *ahead = row + (size_t)PREFETCH_POSITIONS * dim;
        for (uint32_t byte = 0; byte < prefetch_bytes; byte += 64)
            TN_PREFETCH(ahead + byte);
        pv_pair(sum, load_words(row), load_words(row + dim), weights, t, n_q);
    }
    if (t < n_pos)
        pv_pair(sum, load_words(v + (size_t)t * dim), _mm256_setzero_si256(), weights, t, n_q);
    for (uint32_t h = 0; h < n_q; h++) {
        __m256 scale = _mm256_set1_ps(weights->scale[h]);
        for (uint32_t half = 0; half < 2; half++) {
            __m256i columns = half == 0 ? _mm256_permute2x128_si256(sum[h][0], sum[h][1], 0x20)
                                        : _mm256_permute2x128_si256(sum[h][0], sum[h][1], 0x31);
            float *dst = o + (size_t)h * dim + 8 * half;
            __m256 term = _mm256_mul_ps(_mm256_cvtepi32_ps(columns), scale);
            _mm256_storeu_ps(dst, _mm256_add_ps(_mm256_loadu_ps(dst), term));
        }
    }
}

static TN_ALWAYS_INLINE void pv_block(float *o, const float *p, size_t p_stride, uint32_t n_q,
                                      const struct rows *v, uint32_t n_pos, uint32_t n_columns,
                                      uint32_t prefetch_bytes)
{
    struct weights weights;
    round_weights(&weights, p, p_stride, n_q, v, n_pos);
    for (uint32_t c = 0; c < n_columns; c += 16)
        pv_columns(o + c, v->data + c, n_pos, v->dim, &weights, n_q, c == 0 ? prefetch_bytes : 0);
}

void tn_attn_pv_q8_avx2(float *o, const float *p, size_t p_stride, uint32_t n_q, const void *v,
                        const uint16_t *v_scales, uint32_t n_pos, uint32_t dim)
{
    const size_t n_blocks = (dim + BLOCK - 1) / BLOCK;
    memset(o, 0, (size_t)n_q * dim * sizeof o[0]);
    for (uint32_t t = 0; t < n_pos; t += TN_PV_CHUNK) {
        uint32_t n = TN_MIN(TN_PV_CHUNK, n_pos - t);
        for (uint32_t d = 0; d < dim; d += BLOCK) {
            struct rows rows = {(const int8_t *)v + (size_t)t * dim + d,
                                v_scales + t * n_blocks + d / BLOCK, dim, (uint32_t)n_blocks};
            uint32_t n_columns = TN_MIN(BLOCK, dim - d), h = 0;
            /* The first pass over the rows fetches the lines of all. */
            uint32_t prefetch_bytes = d == 0 ? 2 * dim : 0;
            for (; h + 4 <= n_q; h += 4)
                pv_block(o + (size_t)h * dim + d, p + h * p_stride + t, p_stride, 4, &rows, n,
                         n_columns, prefetch_bytes);
            for (; h < n_q; h++)
                pv_block(o + (size_t)h * dim + d, p + h * p_stride + t, p_stride, 1, &rows, n,
                         n_columns, prefetch_bytes);
        }
    }
}

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
            __m256 v = clamp(_mm256_div_ps(_mm256_loadu_ps(x + d), scale), 127.0f);
            __m128i words = round_8(_mm256_and_ps(used, v));
            _mm_storel_epi64((__m128i *)(out + d), _mm_packs_epi16(words, words));
        }
    }
}
