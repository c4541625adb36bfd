/* SPDX-License-Identifier: MIT
 *
 * Ternary products of few inputs in 8 bits for SSSE3: as x8_avx2.c with vectors of 8 rows.
 *
 *   In a block the sum of fields 0 and 2 is within 8 * 508 + 4064 = 8128, that of fields 1 and 3
 *   within 8 * 2032 = 16256: both fit int16.
 */
#include <tmmintrin.h>

#define T5_WORD_BYTES 16

#include "kern/tiles.h"
#include "kern/x8.h"
#include "kern/x86/dots_ssse3.h"

/* For 8 columns c of two groups and q < 4: x[c + q], x[c + 4 + q], repeated eight times. */
struct x8_digits {
    __m128i q[16][4];
};

static TN_ALWAYS_INLINE void x8_take(struct x8_digits *d, const struct x8 *x, uint32_t n_cols)
{
    const __m128i first = _mm_set1_epi16(0x0400);
    for (uint32_t c = 0; c < n_cols; c += 8) {
        const __m128i v = _mm_loadl_epi64((const void *)(x->q + c));
        for (int q = 0; q < 4; q++)
            d->q[c / 8][q] = _mm_shuffle_epi8(v, _mm_add_epi8(first, _mm_set1_epi8((char)q)));
    }
}

/* Sums of 8 rows. */
struct sums {
    __m128i ones, fours;
};

static TN_ALWAYS_INLINE __m128i add_field(__m128i sum, __m128i v, __m128i mask, __m128i q)
{
    return add_pairs(sum, _mm_and_si128(v, mask), q);
}

/* v: interleaved bytes of two groups. */
static TN_ALWAYS_INLINE void add_groups(struct sums *s, __m128i v, const __m128i q[4])
{
    const __m128i m3 = _mm_set1_epi8(3), m12 = _mm_set1_epi8(12);
    const __m128i high = _mm_srli_epi16(v, 4);
    s->ones = add_field(s->ones, v, m3, q[0]);
    s->fours = add_field(s->fours, v, m12, q[1]);
    s->ones = add_field(s->ones, high, m3, q[2]);
    s->fours = add_field(s->fours, high, m12, q[3]);
}

/* t[0] and t[1] += a block of four rows each. */
static TN_ALWAYS_INLINE void add_rows(__m128 t[2], const struct sums *s, __m128 f)
{
    const __m128i sum = _mm_add_epi16(s->ones, _mm_srai_epi16(s->fours, 2));
    const __m128i low = _mm_srai_epi32(_mm_unpacklo_epi16(sum, sum), 16);
    const __m128i high = _mm_srai_epi32(_mm_unpackhi_epi16(sum, sum), 16);
    t[0] = _mm_add_ps(t[0], _mm_mul_ps(_mm_cvtepi32_ps(low), f));
    t[1] = _mm_add_ps(t[1], _mm_mul_ps(_mm_cvtepi32_ps(high), f));
}

/* 16 rows of a block; `part` is their index in the tile. */
static TN_ALWAYS_INLINE void add_block(__m128 t[4], const uint8_t *group, const __m128i (*q)[4],
                                       int32_t start, float factor, uint32_t part,
                                       struct lines lines)
{
    const __m128 f = _mm_set1_ps(factor);
    struct sums low = {_mm_set1_epi16((int16_t)start), _mm_setzero_si128()}, high = low;
    for (uint32_t g = 0; g < X8_BLOCK_GROUPS; g += 2, q++) {
        const uint8_t *at = group + 64 * g + 16 * part;
        const __m128i a = _mm_load_si128((const void *)at);
        const __m128i b = _mm_load_si128((const void *)(at + 64));
        if (g % 4 == 0)
            request_line(lines, g + part);
        add_groups(&low, _mm_unpacklo_epi8(a, b), *q);
        add_groups(&high, _mm_unpackhi_epi8(a, b), *q);
    }
    add_rows(t, &low, f);
    add_rows(t + 2, &high, f);
}

static TN_ALWAYS_INLINE void x8_sum_tile(float *dst, const uint8_t *tile, uint32_t n_blocks,
                                         const struct x8_digits *d, const struct x8 *x,
                                         struct lines lines)
{
    for (uint32_t part = 0; part < 4; part++, dst += 16) {
        __m128 t[4] = {_mm_setzero_ps(), _mm_setzero_ps(), _mm_setzero_ps(), _mm_setzero_ps()};
        for (uint32_t k = 0; k < n_blocks; k++)
            add_block(t, tile + k * X8_BLOCK_GROUPS * 64, d->q + k * (X8_BLOCK_GROUPS / 2),
                      x->starts[k], x->factors[k], part,
                      lines_from(lines, k * X8_BLOCK_GROUPS));
        for (uint32_t i = 0; i < 4; i++)
            _mm_store_ps(dst + 4 * i, t[i]);
    }
}

X8_TILE_BY_TILE

#include "kern/x8_gemv.h"
TILES_GEMV_DEFINE(x8, ssse3)
X8_INPUTS_DEFINE(ssse3)
