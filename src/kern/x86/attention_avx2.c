/* SPDX-License-Identifier: MIT
 *
 * Attention over f32 and f16 caches, and softmax, AVX2.  The 16 lanes of the lane order are two
 * registers.
 *
 * q . k   a tile is 1 position x up to 4 query heads: eight accumulators; a key is widened once for
 *         its heads, and one tree finishes four sums.
 * p . v   a tile is 16 columns x up to 4 query heads in eight registers, over a run of positions,
 *         so that memory is read in order.
 *
 * Per 8 values of the cache and query head: one multiplication and one addition, never fused.
 */
#include <string.h>

#include "kern/kern.h"
#include "kern/x86/exp_avx2.h"
#include "kern/x86/lanes_avx2.h"

#define F16_MAX 65504.0f
/* Prefetch distance in positions from the current tile. */
#define PREFETCH_POSITIONS 16u
/* Positions per run of p . v.  Each pass over the columns of a run prefetches the same columns of
 * the next run. */
#define RUN_POSITIONS 32u

/* The cached rows of one key/value head. */
struct rows {
    const char *data;
    size_t value_bytes;
    size_t row_bytes;
};

/* Loads 8 values as f32. */
typedef __m256 load8_fn(const void *p);

static TN_ALWAYS_INLINE __m256 load8_f32(const void *p)
{
    return _mm256_loadu_ps(p);
}

static TN_ALWAYS_INLINE __m256 load8_f16(const void *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128(p));
}

static TN_ALWAYS_INLINE void prefetch(const char *p, size_t n_bytes)
{
    for (size_t byte = 0; byte < n_bytes; byte += 64)
        TN_PREFETCH(p + byte);
}

/* n_q is at most 4, a constant after inlining. */
static TN_ALWAYS_INLINE void qk_tile(float *s, size_t s_stride, load8_fn *load8,
                                     const struct rows *k, uint32_t t, const float *q,
                                     uint32_t n_q, uint32_t dim, float factor)
{
    const char *row = k->data + t * k->row_bytes;
    __m256 sum[4][2];
    for (uint32_t h = 0; h < 4; h++)
        sum[h][0] = sum[h][1] = _mm256_setzero_ps();
    for (uint32_t d = 0; d < dim; d += 16) {
        for (uint32_t half = 0; half < 2; half++) {
            __m256 key = load8(row + (d + 8 * half) * k->value_bytes);
            for (uint32_t h = 0; h < n_q; h++) {
                __m256 query = _mm256_loadu_ps(q + (size_t)h * dim + d + 8 * half);
                sum[h][half] = _mm256_add_ps(sum[h][half], _mm256_mul_ps(key, query));
            }
        }
    }
    float sums[4];
    _mm_storeu_ps(sums, _mm_mul_ps(tree_sum_4((const __m256(*)[2])sum), _mm_set1_ps(factor)));
    for (uint32_t h = 0; h < n_q; h++)
        s[h * s_stride + t] = sums[h];
}

static TN_ALWAYS_INLINE void attn_qk(float *s, size_t s_stride, load8_fn *load8, const float *q,
                                     uint32_t n_q, const struct rows *k, uint32_t n_pos,
                                     uint32_t dim, float factor)
{
    for (uint32_t t = 0; t < n_pos; t++) {
        prefetch(k->data + (t + PREFETCH_POSITIONS) * k->row_bytes, k->row_bytes);
        uint32_t h = 0;
        for (; h + 4 <= n_q; h += 4)
            qk_tile(s + h * s_stride, s_stride, load8, k, t, q + (size_t)h * dim, 4, dim, factor);
        if (h + 2 <= n_q) {
            qk_tile(s + h * s_stride, s_stride, load8, k, t, q + (size_t)h * dim, 2, dim, factor);
            h += 2;
        }
        if (h < n_q)
            qk_tile(s + h * s_stride, s_stride, load8, k, t, q + (size_t)h * dim, 1, dim, factor);
    }
}

/* Adds n_pos positions to columns d .. d + 15; n_q is at most 4, a constant after inlining. */
static TN_ALWAYS_INLINE void pv_tile(float *o, load8_fn *load8, const float *p, size_t p_stride,
                                     uint32_t n_q, const struct rows *v, uint32_t n_pos,
                                     uint32_t dim, uint32_t d)
{
    __m256 sum[4][2];
    for (uint32_t h = 0; h < n_q; h++) {
        sum[h][0] = _mm256_loadu_ps(o + (size_t)h * dim + d);
        sum[h][1] = _mm256_loadu_ps(o + (size_t)h * dim + d + 8);
    }
    for (uint32_t t = 0; t < n_pos; t++) {
        const char *row = v->data + t * v->row_bytes;
        if (d * v->value_bytes % 64 == 0)
            TN_PREFETCH(row + RUN_POSITIONS * v->row_bytes + d * v->value_bytes);
        __m256 lo = load8(row + d * v->value_bytes);
        __m256 hi = load8(row + (d + 8) * v->value_bytes);
        for (uint32_t h = 0; h < n_q; h++) {
            __m256 weight = _mm256_set1_ps(p[h * p_stride + t]);
            sum[h][0] = _mm256_add_ps(sum[h][0], _mm256_mul_ps(weight, lo));
            sum[h][1] = _mm256_add_ps(sum[h][1], _mm256_mul_ps(weight, hi));
        }
    }
    for (uint32_t h = 0; h < n_q; h++) {
        _mm256_storeu_ps(o + (size_t)h * dim + d, sum[h][0]);
        _mm256_storeu_ps(o + (size_t)h * dim + d + 8, sum[h][1]);
    }
}

static TN_ALWAYS_INLINE void pv_run(float *o, load8_fn *load8, const float *p, size_t p_stride,
                                    uint32_t n_q, const struct rows *v, uint32_t n_pos,
                                    uint32_t dim)
{
    for (uint32_t d = 0; d < dim; d += 16) {
        uint32_t h = 0;
        for (; h + 4 <= n_q; h += 4)
            pv_tile(o + (size_t)h * dim, load8, p + h * p_stride, p_stride, 4, v, n_pos, dim, d);
        if (h + 2 <= n_q) {
            pv_tile(o + (size_t)h * dim, load8, p + h * p_stride, p_stride, 2, v, n_pos, dim, d);
            h += 2;
        }
        if (h < n_q)
            pv_tile(o + (size_t)h * dim, load8, p + h * p_stride, p_stride, 1, v, n_pos, dim, d);
    }
}

static TN_ALWAYS_INLINE void attn_pv(float *o, load8_fn *load8, const float *p, size_t p_stride,
                                     uint32_t n_q, const struct rows *v, uint32_t n_pos,
                                     uint32_t dim)
{
    struct rows run = *v;
    memset(o, 0, (size_t)n_q * dim * sizeof *o);
    for (uint32_t t = 0; t < n_pos; t += RUN_POSITIONS) {
        uint32_t n = TN_MIN(RUN_POSITIONS, n_pos - t);
        pv_run(o, load8, p + t, p_stride, n_q, &run, n, dim);
        run.data += n * run.row_bytes;
    }
}

#define ATTENTION(type, value_bytes)                                                               \
    void tn_attn_qk_##type##_avx2(float *s, size_t s_stride, const float *q, uint32_t n_q,         \
                                  const void *k, uint32_t n_pos, uint32_t dim, float factor)       \
    {                                                                                              \
        struct rows rows = {k, (value_bytes), (size_t)dim * (value_bytes)};                        \
        attn_qk(s, s_stride, load8_##type, q, n_q, &rows, n_pos, dim, factor);                     \
    }                                                                                              \
    void tn_attn_pv_##type##_avx2(float *o, const float *p, size_t p_stride, uint32_t n_q,         \
                                  const void *v, uint32_t n_pos, uint32_t dim)                     \
    {                                                                                              \
        struct rows rows = {v, (value_bytes), (size_t)dim * (value_bytes)};                        \
        attn_pv(o, load8_##type, p, p_stride, n_q, &rows, n_pos, dim);                             \
    }
ATTENTION(f32, 4)
ATTENTION(f16, 2)

float tn_max_f32_avx2(const float *x, uint32_t n)
{
    __m256 max = _mm256_set1_ps(x[0]);
    uint32_t k = 0;
    for (; k + 8 <= n; k += 8)
        max = _mm256_max_ps(max, _mm256_loadu_ps(x + k));
    float top = reduce_max(max);
    for (; k < n; k++)
        top = x[k] > top ? x[k] : top;
    return top + 0.0f;
}

float tn_exp_sum_f32_avx2(float *x, uint32_t n, float max)
{
    __m256 lanes[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    __m256 top = _mm256_set1_ps(max);
    for (uint32_t k = 0; k < n; k += 8) {
        int32_t left = (int32_t)(n - k);
        __m256 y = exp_8(_mm256_sub_ps(load_first(x + k, left), top));
        if (left >= 8) {
            _mm256_storeu_ps(x + k, y);
        } else {
            __m256i mask = first_lanes(left);
            _mm256_maskstore_ps(x + k, mask, y);
            y = _mm256_and_ps(y, _mm256_castsi256_ps(mask));
        }
        lanes[k / 8 % 2] = _mm256_add_ps(lanes[k / 8 % 2], y);
    }
    return tree_sum(lanes);
}

/* Clamps to [-limit, limit]; NaN gives limit, because the instructions return their second operand
 * then. */
static inline __m256 clamp(__m256 v, float limit)
{
    v = _mm256_min_ps(v, _mm256_set1_ps(limit));
    return _mm256_max_ps(v, _mm256_set1_ps(-limit));
}

void tn_kv_store_f16_avx2(void *dst, uint16_t *scales, const float *x, uint32_t dim)
{
    (void)scales;
    uint16_t *out = dst;
    for (uint32_t d = 0; d < dim; d += 8) {
        __m256 v = clamp(_mm256_loadu_ps(x + d), F16_MAX);
        _mm_storeu_si128((__m128i *)(out + d), _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
    }
}
