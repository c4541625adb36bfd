/* SPDX-License-Identifier: MIT
 *
 * Ternary products of few 16-bit inputs for SSSE3: as x16_avx2.c with vectors of 16 rows, 0.38
 * instructions per weight.
 *
 *   A product pair is -2 * 2 * 128 = -512 to 508; a run of 128 columns adds 64 of them: -32,768 to
 *   32,512 fits int16.
 */
#include <tmmintrin.h>

#define T5_WORD_BYTES 16

#include "kern/tiles.h"
#include "kern/x16.h"
#include "kern/x86/dots_ssse3.h"

/* For 8 columns c of two groups and q < 4: x[c + q], x[c + 4 + q], repeated eight times. */
struct digits {
    __m128i high[16][4], low[16][4];
};

static TN_ALWAYS_INLINE void take_pairs(__m128i (*dst)[4], const int8_t *x, uint32_t n_cols)
{
    const __m128i first = _mm_set1_epi16(0x0400);
    for (uint32_t c = 0; c < n_cols; c += 8, dst++) {
        const __m128i v = _mm_loadl_epi64((const void *)(x + c));
        for (int q = 0; q < 4; q++)
            (*dst)[q] = _mm_shuffle_epi8(v, _mm_add_epi8(first, _mm_set1_epi8((char)q)));
    }
}

static TN_ALWAYS_INLINE void take_digits(struct digits *d, const int8_t *high, const int8_t *low,
                                         uint32_t n_cols)
{
    take_pairs(d->high, high, n_cols);
    take_pairs(d->low, low, n_cols);
}

/* Sums of 16 rows: rows 0-7, rows 8-15. */
struct sums {
    __m128i high[2], low[2];
};

/* 8 columns of 16 rows. */
static TN_ALWAYS_INLINE void add_groups(struct sums *s, const uint8_t *group, const __m128i high[4],
                                        const __m128i low[4])
{
    const __m128i a = _mm_load_si128((const void *)group);
    const __m128i b = _mm_load_si128((const void *)(group + 64));
    const __m128i v[2] = {_mm_unpacklo_epi8(a, b), _mm_unpackhi_epi8(a, b)};
#pragma GCC unroll 4
    for (int q = 0; q < 4; q++)
        for (int i = 0; i < 2; i++) {
            const __m128i codes = _mm_and_si128(_mm_srli_epi16(v[i], 2 * q), _mm_set1_epi8(3));
            s->high[i] = add_pairs(s->high[i], codes, high[q]);
            s->low[i] = add_pairs(s->low[i], codes, low[q]);
        }
}

/* 256 * high + low of 16 rows. */
static TN_ALWAYS_INLINE void store_sums(int32_t *dst, const struct sums *s)
{
    const __m128i weights = _mm_set1_epi32(1 << 16 | 256);
    for (int i = 0; i < 2; i++, dst += 8) {
        const __m128i lo = _mm_unpacklo_epi16(s->high[i], s->low[i]);
        const __m128i hi = _mm_unpackhi_epi16(s->high[i], s->low[i]);
        _mm_store_si128((void *)dst, _mm_madd_epi16(lo, weights));
        _mm_store_si128((void *)(dst + 4), _mm_madd_epi16(hi, weights));
    }
}

static TN_ALWAYS_INLINE void sum_tile(int32_t *sum, const uint8_t *tile, uint32_t n_groups,
                                      const struct digits *d, struct lines lines)
{
    for (uint32_t part = 0; part < 4; part++, tile += 16, sum += 16) {
        struct sums s;
        s.high[0] = s.high[1] = s.low[0] = s.low[1] = _mm_setzero_si128();
        for (uint32_t g = 0; g < n_groups; g += 2) {
            if (g % 4 == 0)
                request_line(lines, g + part);
            add_groups(&s, tile + 64 * g, d->high[g / 2], d->low[g / 2]);
        }
        store_sums(sum, &s);
    }
}

X16_TILE_BY_TILE

#include "kern/x16_gemv.h"
TILES_GEMV_DEFINE(x16, ssse3)
X16_INPUTS_DEFINE(ssse3)
