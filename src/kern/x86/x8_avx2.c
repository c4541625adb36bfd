/* SPDX-License-Identifier: MIT
 *
 * Ternary products of few inputs in 8 bits for AVX2.
 *
 * As in x16_avx2.c the bytes of two groups are interleaved, so that a 16-bit lane belongs to one
 * row, and `vpmaddubsw` multiplies two codes of it.  Fields 0 and 2 share a sum; fields 1 and 3,
 * four times larger, share another.  For 16 rows x 32 columns 4 instructions interleave, 20 unpack,
 * 32 multiply and add, 11 scale: 0.13 per weight, and loads.
 *
 *   In a block the first sum is within 8 * 508 + 4064 = 8128, the second within 8 * 2032 = 16256:
 *   both fit int16.
 */
#include <immintrin.h>

#define T5_WORD_BYTES 32

#include "kern/tiles.h"
#include "kern/x8.h"
#include "kern/x86/dots_avx2.h"

/* For 8 columns c of two groups and q < 4: x[c + q], x[c + 4 + q], repeated twice. */
struct x8_digits {
    _Alignas(32) int8_t q[256];
};

static TN_ALWAYS_INLINE void x8_take(struct x8_digits *d, const struct x8 *x, uint32_t n_cols)
{
    const __m256i order = _mm256_setr_epi8(0, 4, 0, 4, 1, 5, 1, 5, 2, 6, 2, 6, 3, 7, 3, 7, 8, 12, 8,
                                           12, 9, 13, 9, 13, 10, 14, 10, 14, 11, 15, 11, 15);
    for (uint32_t c = 0; c < n_cols; c += 16) {
        const __m128i v = _mm_load_si128((const void *)(x->q + c));
        _mm256_store_si256((void *)(d->q + 2 * c),
                           _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(v), order));
    }
}

/* Sums of 16 rows. */
struct sums {
    __m256i ones, fours;
};

static TN_ALWAYS_INLINE __m256i add_field(__m256i sum, __m256i v, __m256i mask, const int8_t *q)
{
    const __m256i x = _mm256_set1_epi32((int)tn_load_u32(q));
    return add_pairs(sum, _mm256_and_si256(v, mask), x);
}

/* v: interleaved bytes of two groups. */
static TN_ALWAYS_INLINE void add_groups(struct sums *s, __m256i v, const int8_t *q)
{
    const __m256i m3 = _mm256_set1_epi8(3), m12 = _mm256_set1_epi8(12);
    const __m256i high = _mm256_srli_epi16(v, 4);
    s->ones = add_field(s->ones, v, m3, q);
    s->fours = add_field(s->fours, v, m12, q + 4);
    s->ones = add_field(s->ones, high, m3, q + 8);
    s->fours = add_field(s->fours, high, m12, q + 12);
}

static TN_ALWAYS_INLINE __m256 add_scaled(__m256 t, __m128i sum, __m256 f)
{
    const __m256 v = _mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(sum));
    return _mm256_add_ps(t, _mm256_mul_ps(v, f));
}

/* t[0] and t[1] += a block of eight rows and of the eight rows 16 further on. */
static TN_ALWAYS_INLINE void add_rows(__m256 t[2], const struct sums *s, __m256 f)
{
    const __m256i sum = _mm256_add_epi16(s->ones, _mm256_srai_epi16(s->fours, 2));
    t[0] = add_scaled(t[0], _mm256_castsi256_si128(sum), f);
    t[1] = add_scaled(t[1], _mm256_extracti128_si256(sum, 1), f);
}

/* 32 rows of a block; prefetches half of the lines ahead, the other half of the tile the rest. */
static TN_ALWAYS_INLINE void add_block(__m256 t[4], const uint8_t *group, const int8_t *q,
                                       int32_t start, float factor, const uint32_t half,
                                      struct lines lines)
{
    const __m256 f = _mm256_set1_ps(factor);
    struct sums low = {_mm256_set1_epi16((int16_t)start), _mm256_setzero_si256()}, high = low;
#pragma GCC unroll 4
    for (uint32_t g = 0; g < X8_BLOCK_GROUPS; g += 2) {
        const uint8_t *at = group + 64 * g + 32 * half;
        const __m256i a = _mm256_load_si256((const void *)at);
        const __m256i b = _mm256_load_si256((const void *)(at + 64));
        request_line(lines, g + half);
        add_groups(&low, _mm256_unpacklo_epi8(a, b), q + 8 * g);
        add_groups(&high, _mm256_unpackhi_epi8(a, b), q + 8 * g);
    }
    add_rows(t, &low, f);
    add_rows(t + 2, &high, f);
}

static TN_ALWAYS_INLINE void x8_sum_tile(float *dst, const uint8_t *tile, uint32_t n_blocks,
                                         const struct x8_digits *d, const struct x8 *x,
                                         struct lines lines)
{
#pragma GCC unroll 2
    for (uint32_t half = 0; half < 2; half++, dst += 32) {
        __m256 t[4] = {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(),
                       _mm256_setzero_ps()};
        for (uint32_t k = 0; k < n_blocks; k++)
            add_block(t, tile + k * X8_BLOCK_GROUPS * 64, d->q + 2 * k * TN_X8_BLOCK,
                      x->starts[k], x->factors[k], half,
                      lines_from(lines, k * X8_BLOCK_GROUPS));
        _mm256_store_ps(dst, t[0]);
        _mm256_store_ps(dst + 16, t[1]);
        _mm256_store_ps(dst + 8, t[2]);
        _mm256_store_ps(dst + 24, t[3]);
    }
}

X8_TILE_BY_TILE

#include "kern/x8_gemv.h"
TILES_GEMV_DEFINE(x8, avx2)
X8_INPUTS_DEFINE(avx2)
