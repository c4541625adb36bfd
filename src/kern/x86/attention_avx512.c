/* SPDX-License-Identifier: MIT
 *
 * Attention over f32 and f16 caches, and softmax, AVX-512.
 *
 * q . k   a tile is 4 positions x up to 4 query heads; a key is widened once for its heads, and
 *         one transposing tree finishes all 16 sums.
 * p . v   a tile is 64 columns x up to 4 query heads in 16 registers, over a run of positions, so
 *         that memory is read in order; a value is widened once for its heads.
 *
 * Per 16 values of the cache and query head: one multiplication and one addition, never fused.
 * These, not the widening, limit the speed from four heads on.
 */
#include <math.h>
#include <string.h>

#include "kern/kern.h"
#include "kern/x86/exp_avx512.h"
#include "kern/x86/lanes_avx512.h"

#define F16_MAX 65504.0f
/* Prefetch distance in positions from the current tile. */
#define PREFETCH_POSITIONS 24u
/* Positions per run of p . v.  Each pass over the columns of a run prefetches the same columns of
 * the next run. */
#define RUN_POSITIONS 32u

/* The cached rows of one key/value head. */
struct rows {
    const char *data;
    size_t value_bytes;
    size_t row_bytes;
};

/* Loads 16 values as f32. */
typedef __m512 load16_fn(const void *p);

static TN_ALWAYS_INLINE __m512 load16_f32(const void *p)
{
    return _mm512_loadu_ps(p);
}

static TN_ALWAYS_INLINE __m512 load16_f16(const void *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256(p));
}

/* n_pos is 4 or 1 and n_q at most 4, constants after inlining. */
static TN_ALWAYS_INLINE void qk_tile(float *s, size_t s_stride, load16_fn *load16,
                                     const struct rows *k, uint32_t t, uint32_t n_pos,
                                     const float *q, uint32_t n_q, uint32_t dim, float factor)
{
    __m512 sum[4][4];
    for (uint32_t i = 0; i < 4; i++)
        for (uint32_t h = 0; h < 4; h++)
            sum[i][h] = _mm512_setzero_ps();
    for (uint32_t d = 0; d < dim; d += 16) {
        __m512 key[4];
        for (uint32_t i = 0; i < n_pos; i++)
            key[i] = load16(k->data + (t + i) * k->row_bytes + d * k->value_bytes);
        for (uint32_t h = 0; h < n_q; h++) {
            __m512 query = _mm512_loadu_ps(q + (size_t)h * dim + d);
            for (uint32_t i = 0; i < n_pos; i++)
                sum[i][h] = _mm512_add_ps(sum[i][h], _mm512_mul_ps(key[i], query));
        }
    }

    /* Element 4 h + i is the sum of head h and position i. */
    __m512 sums = _mm512_mul_ps(tree_sum_16((const __m512(*)[4])sum), _mm512_set1_ps(factor));
    __m128 by_head[4] = {_mm512_castps512_ps128(sums), _mm512_extractf32x4_ps(sums, 1),
                         _mm512_extractf32x4_ps(sums, 2), _mm512_extractf32x4_ps(sums, 3)};
    /* No masked stores: gcc folds them into vextractf32x4, which accesses the masked-out lanes,
     * too. */
    for (uint32_t h = 0; h < n_q; h++) {
        if (n_pos == 4)
            _mm_storeu_ps(s + h * s_stride + t, by_head[h]);
        else
            s[h * s_stride + t] = _mm_cvtss_f32(by_head[h]);
    }
}

static TN_ALWAYS_INLINE void qk_heads(float *s, size_t s_stride, load16_fn *load16,
                                      const struct rows *k, uint32_t t, uint32_t n_pos,
                                      const float *q, uint32_t n_q, uint32_t dim, float factor)
{
    uint32_t h = 0;
    for (; h + 4 <= n_q; h += 4)
        qk_tile(s + h * s_stride, s_stride, load16, k, t, n_pos, q + (size_t)h * dim, 4, dim,
                factor);
    if (h + 2 <= n_q) {
        qk_tile(s + h * s_stride, s_stride, load16, k, t, n_pos, q + (size_t)h * dim, 2, dim,
                factor);
        h += 2;
    }
    if (h < n_q)
        qk_tile(s + h * s_stride, s_stride, load16, k, t, n_pos, q + (size_t)h * dim, 1, dim,
                factor);
}

static TN_ALWAYS_INLINE void attn_qk(float *s, size_t s_stride, load16_fn *load16, const float *q,
                                     uint32_t n_q, const struct rows *k, uint32_t n_pos,
                                     uint32_t dim, float factor)
{
    uint32_t t = 0;
    for (; t + 4 <= n_pos; t += 4) {
        const char *ahead = k->data + (t + PREFETCH_POSITIONS) * k->row_bytes;
        for (size_t byte = 0; byte < 4 * k->row_bytes; byte += 64)
            TN_PREFETCH(ahead + byte);
        qk_heads(s, s_stride, load16, k, t, 4, q, n_q, dim, factor);
    }
    for (; t < n_pos; t++)
        qk_heads(s, s_stride, load16, k, t, 1, q, n_q, dim, factor);
}

/* Adds n_pos positions to columns d .. d + 16 n_regs; n_regs and n_q are at most 4, constants after
 * inlining. */
static TN_ALWAYS_INLINE void pv_tile(float *o, load16_fn *load16, const float *p, size_t p_stride,
                                     uint32_t n_q, const struct rows *v, uint32_t n_pos,
                                     uint32_t dim, uint32_t d, uint32_t n_regs)
{
    __m512 sum[4][4];
    for (uint32_t h = 0; h < n_q; h++)
        for (uint32_t j = 0; j < n_regs; j++)
            sum[h][j] = _mm512_loadu_ps(o + (size_t)h * dim + d + 16 * j);
    for (uint32_t t = 0; t < n_pos; t++) {
        const char *row = v->data + t * v->row_bytes;
        const char *ahead = row + RUN_POSITIONS * v->row_bytes + d * v->value_bytes;
        for (size_t byte = 0; byte < 16 * n_regs * v->value_bytes; byte += 64)
            TN_PREFETCH(ahead + byte);
        __m512 value[4];
        for (uint32_t j = 0; j < n_regs; j++)
            value[j] = load16(row + (d + 16 * j) * v->value_bytes);
        for (uint32_t h = 0; h < n_q; h++) {
            __m512 weight = _mm512_set1_ps(p[h * p_stride + t]);
            for (uint32_t j = 0; j < n_regs; j++)
                sum[h][j] = _mm512_add_ps(sum[h][j], _mm512_mul_ps(weight, value[j]));
        }
    }
    for (uint32_t h = 0; h < n_q; h++)
        for (uint32_t j = 0; j < n_regs; j++)
            _mm512_storeu_ps(o + (size_t)h * dim + d + 16 * j, sum[h][j]);
}

static TN_ALWAYS_INLINE void pv_heads(float *o, load16_fn *load16, const float *p, size_t p_stride,
                                      uint32_t n_q, const struct rows *v, uint32_t n_pos,
                                      uint32_t dim, uint32_t d, uint32_t n_regs)
{
    uint32_t h = 0;
    for (; h + 4 <= n_q; h += 4)
        pv_tile(o + (size_t)h * dim, load16, p + h * p_stride, p_stride, 4, v, n_pos, dim, d,
                n_regs);
    if (h + 2 <= n_q) {
        pv_tile(o + (size_t)h * dim, load16, p + h * p_stride, p_stride, 2, v, n_pos, dim, d,
                n_regs);
        h += 2;
    }
    if (h < n_q)
        pv_tile(o + (size_t)h * dim, load16, p + h * p_stride, p_stride, 1, v, n_pos, dim, d,
                n_regs);
}

static TN_ALWAYS_INLINE void attn_pv(float *o, load16_fn *load16, const float *p, size_t p_stride,
                                     uint32_t n_q, const struct rows *v, uint32_t n_pos,
                                     uint32_t dim)
{
    struct rows run = *v;
    memset(o, 0, (size_t)n_q * dim * sizeof *o);
    for (uint32_t t = 0; t < n_pos; t += RUN_POSITIONS) {
        uint32_t n = TN_MIN(RUN_POSITIONS, n_pos - t), d = 0;
        for (; d + 64 <= dim; d += 64)
            pv_heads(o, load16, p + t, p_stride, n_q, &run, n, dim, d, 4);
        for (; d < dim; d += 16)
            pv_heads(o, load16, p + t, p_stride, n_q, &run, n, dim, d, 1);
        run.data += n * run.row_bytes;
    }
}

#define ATTENTION(type, value_bytes)                                                               \
    void tn_attn_qk_##type##_avx512(float *s, size_t s_stride, const float *q, uint32_t n_q,       \
                                    const void *k, uint32_t n_pos, uint32_t dim, float factor)     \
    {                                                                                              \
        struct rows rows = {k, (value_bytes), (size_t)dim * (value_bytes)};                        \
        attn_qk(s, s_stride, load16_##type, q, n_q, &rows, n_pos, dim, factor);                    \
    }                                                                                              \
    void tn_attn_pv_##type##_avx512(float *o, const float *p, size_t p_stride, uint32_t n_q,       \
                                    const void *v, uint32_t n_pos, uint32_t dim)                   \
    {                                                                                              \
        struct rows rows = {v, (value_bytes), (size_t)dim * (value_bytes)};                        \
        attn_pv(o, load16_##type, p, p_stride, n_q, &rows, n_pos, dim);                            \
    }
ATTENTION(f32, 4)
ATTENTION(f16, 2)

float tn_max_f32_avx512(const float *x, uint32_t n)
{
    __m512 max = _mm512_set1_ps(-INFINITY);
    uint32_t k = 0;
    for (; k + 16 <= n; k += 16)
        max = _mm512_max_ps(max, _mm512_loadu_ps(x + k));
    __mmask16 tail = tail_mask(n);
    if (tail)
        max = _mm512_mask_max_ps(max, tail, max, _mm512_maskz_loadu_ps(tail, x + k));
    return _mm512_reduce_max_ps(max) + 0.0f;
}

float tn_exp_sum_f32_avx512(float *x, uint32_t n, float max)
{
    __m512 lanes = _mm512_setzero_ps();
    __m512 top = _mm512_set1_ps(max);
    uint32_t k = 0;
    for (; k + 64 <= n; k += 64) {
        __m512 y[4];
        for (uint32_t i = 0; i < 4; i++)
            y[i] = _mm512_sub_ps(_mm512_loadu_ps(x + k + 16 * i), top);
        exp_16(y, 4);
        for (uint32_t i = 0; i < 4; i++) {
            _mm512_storeu_ps(x + k + 16 * i, y[i]);
            lanes = _mm512_add_ps(lanes, y[i]);
        }
    }
    for (; k < n; k += 16) {
        __mmask16 used = n - k >= 16 ? 0xFFFF : tail_mask(n);
        __m512 y = _mm512_sub_ps(_mm512_maskz_loadu_ps(used, x + k), top);
        exp_16(&y, 1);
        _mm512_mask_storeu_ps(x + k, used, y);
        lanes = _mm512_mask_add_ps(lanes, used, lanes, y);
    }
    return tree_sum(lanes);
}

/* Clamps to [-limit, limit]; NaN gives limit, because the instructions return their second operand
 * then. */
static inline __m512 clamp(__m512 v, float limit)
{
    v = _mm512_min_ps(v, _mm512_set1_ps(limit));
    return _mm512_max_ps(v, _mm512_set1_ps(-limit));
}

void tn_kv_store_f16_avx512(void *dst, uint16_t *scales, const float *x, uint32_t dim)
{
    (void)scales;
    uint16_t *out = dst;
    for (uint32_t d = 0; d < dim; d += 16) {
        __m512 v = clamp(_mm512_loadu_ps(x + d), F16_MAX);
        _mm256_storeu_si256((__m256i *)(out + d), _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
    }
}
