/* SPDX-License-Identifier: MIT
 *
 * Logits, AVX2.  The 16 lanes of the lane order are two registers.  A tile is 4 rows x 1 token or 1
 * row x 4 tokens: eight accumulators; in the second the weights are widened once for all tokens.
 * The second is computed for a block of rows in chunks of columns, because four rows of inputs
 * exceed the first-level cache.  Per 8 weights and token: load + widen, convert, multiply, add.
 */
#include <string.h>

#include "kern/head_gemv.h"
#include "kern/prefetch.h"
#include "kern/x86/lanes_avx2.h"

/* A chunk of the inputs of 4 tokens takes 16 kB, the accumulators of a block 4 kB. */
#define CHUNK 1024u
#define BLOCK_ROWS 16u

/* Loads eight weights as f32. */
typedef __m256 load8_fn(const void *w);

static TN_ALWAYS_INLINE __m256 load8_q8(const void *w)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(w)));
}

static TN_ALWAYS_INLINE __m256 load8_f32(const void *w)
{
    return _mm256_loadu_ps(w);
}

static TN_ALWAYS_INLINE __m256 load8_f16(const void *w)
{
    return _mm256_cvtph_ps(_mm_loadu_si128(w));
}

static TN_ALWAYS_INLINE __m256 load8_bf16(const void *w)
{
    __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(w));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}

/* Requests lines ahead of one that is in use: the same line of the next tile, because a large
 * distance in bytes would reach into rows of this one, and a line shortly before its use. */
static TN_ALWAYS_INLINE void request_line(const char *line, const struct matrix *m)
{
    const struct tn_prefetch ahead = TN_PREFETCH_OF(FLOATS);
    tn_request_l2(line + ahead.l2 * m->row_bytes, ahead);
    tn_request_l1(line + ahead.l1, ahead);
}

/* Adds 16 columns of the tile: weights at w (rows are row_bytes apart), inputs at x. */
static TN_ALWAYS_INLINE void tile_step(__m256 sum[4][2], load8_fn *load8, const char *w,
                                       const struct matrix *m, uint32_t n_rows, const float *x,
                                       size_t x_stride, uint32_t n_tokens)
{
    for (uint32_t half = 0; half < 2; half++) {
        for (uint32_t r = 0; r < n_rows; r++) {
            __m256 weights = load8(w + r * m->row_bytes + half * 8 * m->value_bytes);
            for (uint32_t t = 0; t < n_tokens; t++) {
                __m256 value = _mm256_loadu_ps(x + t * x_stride + half * 8);
                sum[r + t][half] = _mm256_add_ps(sum[r + t][half], _mm256_mul_ps(weights, value));
            }
        }
    }
}

/* Adds the columns from `begin`, a multiple of 16, to `end`, another or the number of columns. */
static TN_ALWAYS_INLINE void tile_add(__m256 total[4][2], load8_fn *load8, const struct matrix *m,
                                      const char *row, uint32_t n_rows, const float *x,
                                      size_t x_stride, uint32_t n_tokens, size_t begin, size_t end)
{
    __m256 sum[4][2];
    for (uint32_t i = 0; i < n_rows * n_tokens; i++) {
        sum[i][0] = total[i][0];
        sum[i][1] = total[i][1];
    }
    const size_t step = 64 / m->value_bytes; /* one cache line of each row */
    size_t c = begin;
    for (; c + step <= end; c += step) {
        for (uint32_t r = 0; r < n_rows; r++)
            request_line(row + r * m->row_bytes + c * m->value_bytes, m);
        for (size_t i = c; i < c + step; i += 16)
            tile_step(sum, load8, row + i * m->value_bytes, m, n_rows, x + i, x_stride, n_tokens);
    }
    for (; c + 16 <= end; c += 16)
        tile_step(sum, load8, row + c * m->value_bytes, m, n_rows, x + c, x_stride, n_tokens);
    if (c < end) { /* zero weights and inputs leave a lane unchanged */
        const size_t left = end - c;
        char last_w[4][64] = {{0}};
        float last_x[4][16] = {{0}};
        struct matrix last = {last_w[0], m->value_bytes, sizeof last_w[0], 16};
        for (uint32_t r = 0; r < n_rows; r++)
            memcpy(last_w[r], row + r * m->row_bytes + c * m->value_bytes, left * m->value_bytes);
        for (uint32_t t = 0; t < n_tokens; t++)
            memcpy(last_x[t], x + t * x_stride + c, left * sizeof x[0]);
        tile_step(sum, load8, last.data, &last, n_rows, last_x[0], 16, n_tokens);
    }
    for (uint32_t i = 0; i < n_rows * n_tokens; i++) {
        total[i][0] = sum[i][0];
        total[i][1] = sum[i][1];
    }
}

/* The sums of n_rows x n_tokens dot products, (4, 1), (1, 4) or (1, 1), constants after
 * inlining. */
static TN_ALWAYS_INLINE __m128 tile(load8_fn *load8, const struct matrix *m, uint32_t first_row,
                                    uint32_t n_rows, const float *x, size_t x_stride,
                                    uint32_t n_tokens)
{
    __m256 sum[4][2];
    for (uint32_t i = 0; i < 4; i++)
        sum[i][0] = sum[i][1] = _mm256_setzero_ps();
    tile_add(sum, load8, m, m->data + first_row * m->row_bytes, n_rows, x, x_stride, n_tokens, 0,
             m->cols);
    return tree_sum_4((const __m256(*)[2])sum);
}

/* Four tokens times up to BLOCK_ROWS rows. */
static TN_ALWAYS_INLINE void gemv_block(const struct logits *l, load8_fn *load8,
                                        const struct matrix *m, uint32_t first, uint32_t n_rows,
                                        uint32_t t)
{
    __m256 sum[BLOCK_ROWS][4][2];
    const float *x = l->x + t * l->x_stride;
    memset(sum, 0, n_rows * sizeof sum[0]);
    for (size_t c = 0; c < m->cols; c += CHUNK)
        for (uint32_t r = 0; r < n_rows; r++)
            tile_add(sum[r], load8, m, m->data + (first + r) * m->row_bytes, 1, x, l->x_stride, 4,
                     c, TN_MIN(c + CHUNK, m->cols));
    for (uint32_t r = 0; r < n_rows; r++) {
        float four[4];
        _mm_storeu_ps(four, _mm_mul_ps(tree_sum_4((const __m256(*)[2])sum[r]),
                                       _mm_set1_ps(l->scales ? l->scales[first + r] : 1.0f)));
        for (uint32_t i = 0; i < 4; i++)
            l->dst[(t + i) * l->dst_stride + first + r] = four[i];
    }
}

/* One token times 4 rows or 1. */
static TN_ALWAYS_INLINE void gemv_one(const struct logits *l, load8_fn *load8,
                                      const struct matrix *m, uint32_t r, uint32_t n_rows,
                                      uint32_t t)
{
    float *dst = l->dst + t * l->dst_stride + r;
    __m128 sums = tile(load8, m, r, n_rows, l->x + t * l->x_stride, l->x_stride, 1);
    if (n_rows == 1)
        *dst = l->scales ? _mm_cvtss_f32(sums) * l->scales[r] : _mm_cvtss_f32(sums);
    else
        _mm_storeu_ps(dst, l->scales ? _mm_mul_ps(sums, _mm_loadu_ps(l->scales + r)) : sums);
}

/* The rows of a block times all tokens. */
static TN_ALWAYS_INLINE void gemv_rows(const struct logits *l, load8_fn *load8,
                                       const struct matrix *m, uint32_t r, uint32_t end)
{
    const uint32_t in_fours = l->n_tokens / 4 * 4;
    for (uint32_t t = 0; t < in_fours; t += 4)
        gemv_block(l, load8, m, r, end - r, t);
    for (; r + 4 <= end; r += 4)
        for (uint32_t t = in_fours; t < l->n_tokens; t++)
            gemv_one(l, load8, m, r, 4, t);
    for (; r < end; r++)
        for (uint32_t t = in_fours; t < l->n_tokens; t++)
            gemv_one(l, load8, m, r, 1, t);
}

static TN_ALWAYS_INLINE void gemv(const struct logits *l, load8_fn *load8, const struct matrix *m,
                                  uint32_t n_rows)
{
    for (uint32_t r = 0; r < n_rows; r += BLOCK_ROWS)
        gemv_rows(l, load8, m, r, TN_MIN(r + BLOCK_ROWS, n_rows));
}

HEAD_DEFINE_Q8(avx2, load8_q8)
HEAD_DEFINE(avx2, f32, float, load8_f32)
HEAD_DEFINE(avx2, f16, uint16_t, load8_f16)
HEAD_DEFINE(avx2, bf16, uint16_t, load8_bf16)
