/* SPDX-License-Identifier: MIT
 *
 * Logits, AVX-512.  A tile is 4 rows x up to 4 tokens, one accumulator each, which is the 16 lanes
 * of the lane order.  The weights of a tile are loaded and widened once for all its tokens, and the
 * four rows keep four independent addition chains busy.  For one token memory is the limit: the
 * lines of the next four rows are requested into the second-level cache, because the processor
 * itself does not read ahead of four streams fast enough.  Per 16 weights and token: load + widen,
 * convert, multiply, add.
 */
#include "kern/head_gemv.h"
#include "kern/prefetch.h"
#include "kern/x86/lanes_avx512.h"

/* Loads the weights c .. c + 15 of a row as f32, zero where `mask` has no bit. */
typedef __m512 load16_fn(const void *row, size_t c, __mmask16 mask);

static TN_ALWAYS_INLINE __m512 load16_q8(const void *row, size_t c, __mmask16 mask)
{
    __m128i w = _mm_maskz_loadu_epi8(mask, (const int8_t *)row + c);
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(w));
}

static TN_ALWAYS_INLINE __m512 load16_f32(const void *row, size_t c, __mmask16 mask)
{
    return _mm512_maskz_loadu_ps(mask, (const float *)row + c);
}

static TN_ALWAYS_INLINE __m512 load16_f16(const void *row, size_t c, __mmask16 mask)
{
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, (const uint16_t *)row + c));
}

static TN_ALWAYS_INLINE __m512 load16_bf16(const void *row, size_t c, __mmask16 mask)
{
    __m256i w = _mm256_maskz_loadu_epi16(mask, (const uint16_t *)row + c);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(w), 16));
}

/* Requests lines ahead of one that is in use: the same line of the next tile, because a large
 * distance in bytes would reach into rows of this one, and a line shortly before its use. */
static TN_ALWAYS_INLINE void request_line(const char *line, const struct matrix *w)
{
    const struct tn_prefetch ahead = TN_PREFETCH_OF(FLOATS);
    tn_request_l2(line + ahead.l2 * w->row_bytes, ahead);
    tn_request_l1(line + ahead.l1, ahead);
}

/* Adds the columns c .. c + 15 of the tile. */
static TN_ALWAYS_INLINE void tile_step(__m512 sum[4][4], load16_fn *load16, const struct matrix *w,
                                       const char *row, uint32_t n_rows, const float *x,
                                       size_t x_stride, uint32_t n_tokens, size_t c, __mmask16 mask)
{
    __m512 weights[4];
    for (uint32_t r = 0; r < n_rows; r++)
        weights[r] = load16(row + r * w->row_bytes, c, mask);
    for (uint32_t t = 0; t < n_tokens; t++) {
        __m512 value = _mm512_maskz_loadu_ps(mask, x + t * x_stride + c);
        for (uint32_t r = 0; r < n_rows; r++)
            sum[r][t] = _mm512_add_ps(sum[r][t], _mm512_mul_ps(weights[r], value));
    }
}

/* No masked stores: gcc folds them into vextractf32x4, which accesses the masked-out lanes, too. */
static TN_ALWAYS_INLINE void store_rows(float *dst, __m128 sums, const float *scales,
                                        uint32_t n_rows)
{
    if (n_rows == 4)
        _mm_storeu_ps(dst, scales ? _mm_mul_ps(sums, _mm_loadu_ps(scales)) : sums);
    else
        *dst = scales ? _mm_cvtss_f32(sums) * *scales : _mm_cvtss_f32(sums);
}

/* 4 rows or 1 times n_tokens <= 4 tokens, constants after inlining. */
static TN_ALWAYS_INLINE void tile(const struct logits *l, load16_fn *load16,
                                  const struct matrix *w, uint32_t first_row, uint32_t n_rows,
                                  uint32_t first_token, uint32_t n_tokens)
{
    const char *row = w->data + first_row * w->row_bytes;
    const float *x = l->x + first_token * l->x_stride;
    __m512 sum[4][4];
    for (uint32_t r = 0; r < 4; r++)
        for (uint32_t t = 0; t < 4; t++)
            sum[r][t] = _mm512_setzero_ps();
    size_t c = 0;
    size_t step = 64 / w->value_bytes; /* one cache line of each row */
    for (; c + step <= w->cols; c += step) {
        for (uint32_t r = 0; r < n_rows; r++)
            request_line(row + r * w->row_bytes + c * w->value_bytes, w);
        for (size_t i = 0; i < step; i += 16)
            tile_step(sum, load16, w, row, n_rows, x, l->x_stride, n_tokens, c + i, 0xFFFF);
    }
    for (; c + 16 <= w->cols; c += 16)
        tile_step(sum, load16, w, row, n_rows, x, l->x_stride, n_tokens, c, 0xFFFF);
    __mmask16 tail = tail_mask(w->cols);
    if (tail)
        tile_step(sum, load16, w, row, n_rows, x, l->x_stride, n_tokens, c, tail);

    /* Element 4 t + r is the sum of token t and row r; missing ones are sums of zeros. */
    __m512 sums = tree_sum_16((const __m512(*)[4])sum);
    __m128 by_token[4] = {_mm512_castps512_ps128(sums), _mm512_extractf32x4_ps(sums, 1),
                          _mm512_extractf32x4_ps(sums, 2), _mm512_extractf32x4_ps(sums, 3)};
    for (uint32_t t = 0; t < n_tokens; t++)
        store_rows(l->dst + (first_token + t) * l->dst_stride + first_row, by_token[t],
                   l->scales ? l->scales + first_row : NULL, n_rows);
}

static TN_ALWAYS_INLINE void gemv(const struct logits *l, load16_fn *load16,
                                  const struct matrix *w, uint32_t n_rows)
{
    uint32_t r = 0;
    for (; r + 4 <= n_rows; r += 4) {
        uint32_t t = 0;
        for (; t + 4 <= l->n_tokens; t += 4)
            tile(l, load16, w, r, 4, t, 4);
        for (; t < l->n_tokens; t++)
            tile(l, load16, w, r, 4, t, 1);
    }
    for (; r < n_rows; r++)
        for (uint32_t t = 0; t < l->n_tokens; t++)
            tile(l, load16, w, r, 1, t, 1);
}

HEAD_DEFINE_Q8(avx512, load16_q8)
HEAD_DEFINE(avx512, f32, float, load16_f32)
HEAD_DEFINE(avx512, f16, uint16_t, load16_f16)
HEAD_DEFINE(avx512, bf16, uint16_t, load16_bf16)
