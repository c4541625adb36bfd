/* SPDX-License-Identifier: MIT
 *
 * Attention over a q8 cache, AVX-512 with VNNI.  Sums are exact in int32, so their order is free;
 * vpdpwssd adds two int16 products to each of 16 lanes.
 *
 * q . k   a tile is 4 positions x up to 4 query heads, one block of 64 columns after the other.
 *         Per position, head and block: 2 vpdpwssd and 3 instructions of the tree that ends them.
 * p . v   one block of 64 columns after the other; positions in pairs.  The bytes of two rows are
 *         interleaved so that a lane holds the same column of both:
 *           unpack:  dword = a(c) a(c+1) b(c) b(c+1);  >> 8 in int16: a(c+1), b(c+1);
 *           << 8, >> 8: a(c), b(c)
 *         Per pair of positions: 8 instructions, then 4 vpdpwssd for each head.
 *
 * Sums:  q . k at most 64 * 128 * 32767 < 2^29;  p . v at most 256 * 128 * 32767 < 2^31.
 */
#include <string.h>

#include "kern/kern.h"
#include "kern/x86/lanes_avx512.h"

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

static TN_ALWAYS_INLINE __m512i dot_step(__m512i sum, __m512i a, __m512i b)
{
    return _mm512_dpwssd_epi32(sum, a, b);
}

/* max(so_far, |v|) and [-limit, limit]; the instructions return their second operand where the
 * first is NaN. */
static inline __m512 max_abs(__m512 so_far, __m512 v)
{
    return _mm512_max_ps(_mm512_abs_ps(v), so_far);
}

static inline __m512i round_clamped(__m512 v, float limit)
{
    v = _mm512_min_ps(v, _mm512_set1_ps(limit));
    return _mm512_cvtps_epi32(_mm512_max_ps(v, _mm512_set1_ps(-limit)));
}

/* i16 of n values (kern.h); zeros up to the next multiple of 16. Returns a / 32767. */
static float round_i16(int16_t *dst, const float *x, uint32_t n)
{
    __m512 max = _mm512_set1_ps(1e-30f);
    __mmask16 tail = tail_mask(n);
    uint32_t whole = n / 16 * 16;
    for (uint32_t k = 0; k < whole; k += 16)
        max = max_abs(max, _mm512_loadu_ps(x + k));
    if (tail)
        max = max_abs(max, _mm512_maskz_loadu_ps(tail, x + whole));
    float a = _mm512_reduce_max_ps(max);
    __m512 s = _mm512_set1_ps(32767.0f / a);
    for (uint32_t k = 0; k < n; k += 16) {
        __mmask16 mask = k < whole ? 0xFFFF : tail;
        __m512i v = round_clamped(_mm512_mul_ps(_mm512_maskz_loadu_ps(mask, x + k), s), 32767.0f);
        /* Behind the end 0 * infinity may have given 32767. */
        __m256i words = _mm512_maskz_cvtepi32_epi16(mask, v);
        _mm256_storeu_si256((__m256i *)(dst + k), words);
    }
    return a / 32767.0f;
}

/* ---- q . k ---- */

/* The int32 sums of 16 registers: element 4 i + j of the result is that of v[j][i]. */
static TN_ALWAYS_INLINE __m512i sum_quarters(const __m512i v[4])
{
    __m512i v01 = _mm512_add_epi32(_mm512_shuffle_i32x4(v[0], v[1], 0x44),
                                   _mm512_shuffle_i32x4(v[0], v[1], 0xEE));
    __m512i v23 = _mm512_add_epi32(_mm512_shuffle_i32x4(v[2], v[3], 0x44),
                                   _mm512_shuffle_i32x4(v[2], v[3], 0xEE));
    return _mm512_add_epi32(_mm512_shuffle_i32x4(v01, v23, 0x88),
                            _mm512_shuffle_i32x4(v01, v23, 0xDD));
}

static TN_ALWAYS_INLINE __m512i sum_16(const __m512i v[4][4])
{
    __m512i a = sum_quarters(v[0]);
    __m512i b = sum_quarters(v[1]);
    __m512i c = sum_quarters(v[2]);
    __m512i d = sum_quarters(v[3]);
    __m512i ab = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    __m512i cd = _mm512_add_epi32(_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
    /* each quarter: a b a b, c d c d */
    return _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
}

/* Up to 4 rounded queries. */
struct queries {
    int16_t q16[MAX_BLOCKS][4][BLOCK]; /* zeros behind the last column */
    float scales[MAX_BLOCKS][16];      /* [block] element 4 h + i: of head h */
};

static void round_queries(struct queries *dst, const float *q, uint32_t n_q, uint32_t dim)
{
    memset(dst, 0, sizeof *dst);
    for (uint32_t d = 0; d < dim; d += BLOCK) {
        uint32_t b = d / BLOCK;
        for (uint32_t h = 0; h < n_q; h++) {
            float scale = round_i16(dst->q16[b][h], q + (size_t)h * dim + d, TN_MIN(BLOCK, dim - d));
            _mm_storeu_ps(&dst->scales[b][4 * h], _mm_set1_ps(scale));
        }
    }
}

/* Adds the terms of one block of 64 columns: element 4 h + i of head h and position t + i. */
static TN_ALWAYS_INLINE __m512 qk_block(__m512 score, const struct queries *q, uint32_t b,
                                        const struct rows *k, uint32_t t, uint32_t n_pos,
                                        uint32_t n_q, __mmask64 columns)
{
    __m512i sum[4][4];
    __m128 scales[4];
    for (uint32_t i = 0; i < 4; i++) {
        scales[i] = _mm_setzero_ps();
        for (uint32_t h = 0; h < 4; h++)
            sum[i][h] = _mm512_setzero_si512();
    }
    __m512i low[4], high[4];
    for (uint32_t i = 0; i < n_pos; i++) {
        __m512i bytes = _mm512_maskz_loadu_epi8(columns, k->data + (size_t)(t + i) * k->dim + 64 * b);
        low[i] = _mm512_cvtepi8_epi16(_mm512_castsi512_si256(bytes));
        high[i] = _mm512_cvtepi8_epi16(_mm512_extracti64x4_epi64(bytes, 1));
        scales[i] = _mm_set_ss(_cvtsh_ss(k->scales[(size_t)(t + i) * k->n_blocks + b]));
    }
    for (uint32_t h = 0; h < n_q; h++) {
        __m512i q_low = _mm512_loadu_si512(q->q16[b][h]);
        __m512i q_high = _mm512_loadu_si512(q->q16[b][h] + 32);
        for (uint32_t i = 0; i < n_pos; i++)
            sum[i][h] = dot_step(dot_step(sum[i][h], low[i], q_low), high[i], q_high);
    }
    __m128 four = _mm_movelh_ps(_mm_unpacklo_ps(scales[0], scales[1]),
                                _mm_unpacklo_ps(scales[2], scales[3]));
    __m512 dots = _mm512_cvtepi32_ps(sum_16((const __m512i(*)[4])sum));
    __m512 terms = _mm512_mul_ps(_mm512_mul_ps(dots, _mm512_broadcast_f32x4(four)),
                                 _mm512_loadu_ps(q->scales[b]));
    return _mm512_add_ps(score, terms);
}

/* n_pos is 4 or 1 and n_q at most 4, constants where this is inlined. */
static TN_ALWAYS_INLINE void qk_tile(float *s, size_t s_stride, const struct queries *q,
                                     const struct rows *k, uint32_t t, uint32_t n_pos, uint32_t n_q,
                                     float factor)
{
    __m512 score = _mm512_setzero_ps();
    uint32_t b = 0;
    for (; b < k->dim / BLOCK; b++)
        score = qk_block(score, q, b, k, t, n_pos, n_q, ~(__mmask64)0);
    if (k->dim % BLOCK)
        score = qk_block(score, q, b, k, t, n_pos, n_q, ((__mmask64)1 << k->dim % BLOCK) - 1);
    score = _mm512_mul_ps(score, _mm512_set1_ps(factor));
    __m128 by_head[4] = {_mm512_castps512_ps128(score), _mm512_extractf32x4_ps(score, 1),
                         _mm512_extractf32x4_ps(score, 2), _mm512_extractf32x4_ps(score, 3)};
    for (uint32_t h = 0; h < n_q; h++) {
        if (n_pos == 4)
            _mm_storeu_ps(s + h * s_stride + t, by_head[h]);
        else
            _mm_store_ss(s + h * s_stride + t, by_head[h]);
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

void tn_attn_qk_q8_avx512(float *s, size_t s_stride, const float *q, uint32_t n_q, const void *k,
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
        for (uint32_t t = 0; t < n_pos; t += 16) {
            __mmask16 mask = n_pos - t >= 16 ? 0xFFFF : tail_mask(n_pos);
            __m512 scales = _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(halves + t)));
            __m512 weights = _mm512_maskz_loadu_ps(mask, p + h * p_stride + t);
            _mm512_storeu_ps(w + t, _mm512_mul_ps(weights, scales));
        }
        dst->scale[h] = round_i16(dst->w16[h], w, n_pos);
    }
}

/* Adds rows a and b with one pair of weights per head. */
static TN_ALWAYS_INLINE void pv_pair(__m512i sum[4][4], __m512i a, __m512i b,
                                     const struct weights *weights, uint32_t t, uint32_t n_q)
{
    __m512i low = _mm512_unpacklo_epi16(a, b);
    __m512i high = _mm512_unpackhi_epi16(a, b);
    __m512i values[4] = {
        _mm512_srai_epi16(_mm512_slli_epi16(low, 8), 8), _mm512_srai_epi16(low, 8),
        _mm512_srai_epi16(_mm512_slli_epi16(high, 8), 8), _mm512_srai_epi16(high, 8)};
    for (uint32_t h = 0; h < n_q; h++) {
        int32_t pair;
        memcpy(&pair, &weights->w16[h][t], sizeof pair);
        for (uint32_t j = 0; j < 4; j++)
            sum[h][j] = dot_step(sum[h][j], values[j], _mm512_set1_epi32(pair));
    }
}

/* o[c] += (float)sum * scale for the columns of the block: in quarter i of sum[0 .. 3] lie the
 * columns 16 i + {0, 2, 4, 6}, {1, 3, 5, 7}, {8, 10, ...}, {9, 11, ...}. */
static TN_ALWAYS_INLINE void add_to_output(float *o, const __m512i sum[4], float scale,
                                           __mmask64 columns)
{
    __m512i fours[4] = {_mm512_unpacklo_epi32(sum[0], sum[1]), _mm512_unpackhi_epi32(sum[0], sum[1]),
                        _mm512_unpacklo_epi32(sum[2], sum[3]), _mm512_unpackhi_epi32(sum[2], sum[3])};
    int32_t by_column[4][16];
    for (uint32_t j = 0; j < 4; j++)
        _mm512_storeu_si512(by_column[j], fours[j]);
    for (uint32_t i = 0; i < 4 && columns >> (16 * i) & 1; i++) {
        for (uint32_t j = 0; j < 4; j++) {
            __m128i four = _mm_loadu_si128((const __m128i *)&by_column[j][4 * i]);
            __m128 term = _mm_mul_ps(_mm_cvtepi32_ps(four), _mm_set1_ps(scale));
            float *dst = o + 16 * i + 4 * j;
            _mm_storeu_ps(dst, _mm_add_ps(_mm_loadu_ps(dst), term));
        }
    }
}

/* At most TN_PV_CHUNK positions and 64 columns, with which v begins; n_q is a constant of at most
 * 4 where this is inlined. */
static TN_ALWAYS_INLINE void pv_block(float *o, const float *p, size_t p_stride, uint32_t n_q,
                                      const struct rows *v, uint32_t n_pos, __mmask64 columns,
                                      uint32_t prefetch_bytes)
{
    struct weights weights;
    round_weights(&weights, p, p_stride, n_q, v, n_pos);
    __m512i sum[4][4];
    for (uint32_t h = 0; h < 4; h++)
        for (uint32_t j = 0; j < 4; j++)
            sum[h][j] = _mm512_setzero_si512();
    uint32_t t = 0;
    for (; t + 2 <= n_pos; t += 2) {
        const int8_t *row = v->data + (size_t)t * v->dim;
        const int8_t *ahead = row + (size_t)PREFETCH_POSITIONS * v->dim;
        for (uint32_t byte = 0; byte < prefetch_bytes; byte += 64)
            TN_PREFETCH(ahead + byte);
        pv_pair(sum, _mm512_maskz_loadu_epi8(columns, row),
                _mm512_maskz_loadu_epi8(columns, row + v->dim), &weights, t, n_q);
    }
    if (t < n_pos)
        pv_pair(sum, _mm512_maskz_loadu_epi8(columns, v->data + (size_t)t * v->dim),
                _mm512_setzero_si512(), &weights, t, n_q);
    for (uint32_t h = 0; h < n_q; h++)
        add_to_output(o + (size_t)h * v->dim, sum[h], weights.scale[h], columns);
}

void tn_attn_pv_q8_avx512(float *o, const float *p, size_t p_stride, uint32_t n_q, const void *v,
                          const uint16_t *v_scales, uint32_t n_pos, uint32_t dim)
{
    const size_t n_blocks = (dim + BLOCK - 1) / BLOCK;
    memset(o, 0, (size_t)n_q * dim * sizeof o[0]);
    for (uint32_t t = 0; t < n_pos; t += TN_PV_CHUNK) {
        uint32_t n = TN_MIN(TN_PV_CHUNK, n_pos - t);
        for (uint32_t d = 0; d < dim; d += BLOCK) {
            struct rows rows = {(const int8_t *)v + (size_t)t * dim + d,
                                v_scales + t * n_blocks + d / BLOCK, dim, (uint32_t)n_blocks};
            __mmask64 columns = dim - d >= BLOCK ? ~(__mmask64)0 : ((__mmask64)1 << (dim - d)) - 1;
            /* The first pass over the rows fetches the lines of all. */
            uint32_t prefetch_bytes = d == 0 ? 2 * dim : 0, h = 0;
            for (; h + 4 <= n_q; h += 4)
                pv_block(o + (size_t)h * dim + d, p + h * p_stride + t, p_stride, 4, &rows, n,
                         columns, prefetch_bytes);
            for (; h < n_q; h++)
                pv_block(o + (size_t)h * dim + d, p + h * p_stride + t, p_stride, 1, &rows, n,
                         columns, prefetch_bytes);
        }
    }
}

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
            __m512i q = round_clamped(_mm512_div_ps(_mm512_loadu_ps(x + d), scale), 127.0f);
            _mm_storeu_si128((__m128i *)(out + d), _mm512_maskz_cvtepi32_epi8(used, q));
        }
    }
}
