/* SPDX-License-Identifier: MIT
 *
 * Ternary products of few 16-bit inputs for AVX2.
 *
 * The bytes of two groups are interleaved before they are unpacked, so that a 16-bit lane belongs
 * to one row; each of its four fields then gives two adjacent codes (0, 1, 2), which `vpmaddubsw`
 * multiplies with two inputs of 8 bits, once for each digit.  Per 16 rows x 8 columns 1 instruction
 * to interleave, 7 to unpack, 16 to multiply and to add: 0.19 per weight, and loads.
 *
 *   A product pair is -2 * 2 * 128 = -512 to 508; a run of 128 columns adds 64 of them: -32,768 to
 *   32,512 fits int16.
 */
#include <immintrin.h>

#define T5_WORD_BYTES 32

#include "kern/tiles.h"
#include "kern/x16.h"
#include "kern/x86/dots_avx2.h"

/* For 8 columns c of two groups and q < 4: x[c + q], x[c + 4 + q], repeated twice. */
struct digits {
    _Alignas(32) int8_t high[256], low[256];
};

static TN_ALWAYS_INLINE void take_pairs(int8_t *dst, const int8_t *x, uint32_t n_cols)
{
    const __m256i order = _mm256_setr_epi8(0, 4, 0, 4, 1, 5, 1, 5, 2, 6, 2, 6, 3, 7, 3, 7, 8, 12, 8,
                                           12, 9, 13, 9, 13, 10, 14, 10, 14, 11, 15, 11, 15);
    for (uint32_t c = 0; c < n_cols; c += 16) {
        const __m128i v = _mm_load_si128((const void *)(x + c));
        _mm256_store_si256((void *)(dst + 2 * c),
                           _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(v), order));
    }
}

static TN_ALWAYS_INLINE void take_digits(struct digits *d, const int8_t *high, const int8_t *low,
                                         uint32_t n_cols)
{
    take_pairs(d->high, high, n_cols);
    take_pairs(d->low, low, n_cols);
}

/* Sums of 16 rows, of each digit. */
struct sums {
    __m256i high, low;
};

/* v: interleaved bytes of two groups. */
static TN_ALWAYS_INLINE void add_groups(struct sums *s, __m256i v, const int8_t *high,
                                        const int8_t *low)
{
    const __m256i code = _mm256_set1_epi8(3);
#pragma GCC unroll 4
    for (int q = 0; q < 4; q++) {
        const __m256i codes = _mm256_and_si256(_mm256_srli_epi16(v, 2 * q), code);
        const __m256i h = _mm256_set1_epi32((int)tn_load_u32(high + 4 * q));
        const __m256i l = _mm256_set1_epi32((int)tn_load_u32(low + 4 * q));
        s->high = add_pairs(s->high, codes, h);
        s->low = add_pairs(s->low, codes, l);
    }
}

static TN_ALWAYS_INLINE void store_4(int32_t *dst, __m256i v)
{
    _mm_store_si128((void *)dst, _mm256_castsi256_si128(v));
    _mm_store_si128((void *)(dst + 16), _mm256_extracti128_si256(v, 1));
}

/* 256 * high + low of 16 rows: 0-7 and 16-23 of dst. */
static TN_ALWAYS_INLINE void store_sums(int32_t *dst, const struct sums *s)
{
    const __m256i weights = _mm256_set1_epi32(1 << 16 | 256);
    const __m256i lo = _mm256_unpacklo_epi16(s->high, s->low);
    const __m256i hi = _mm256_unpackhi_epi16(s->high, s->low);
    store_4(dst, _mm256_madd_epi16(lo, weights));
    store_4(dst + 4, _mm256_madd_epi16(hi, weights));
}

static TN_ALWAYS_INLINE void sum_tile(int32_t *sum, const uint8_t *tile, uint32_t n_groups,
                                      const struct digits *d, struct lines lines)
{
    for (uint32_t half = 0; half < 2; half++, tile += 32, sum += 32) {
        struct sums even = {_mm256_setzero_si256(), _mm256_setzero_si256()}, odd = even;
        for (uint32_t g = 0; g < n_groups; g += 2) {
            const __m256i a = _mm256_load_si256((const void *)(tile + 64 * g));
            const __m256i b = _mm256_load_si256((const void *)(tile + 64 * g + 64));
            request_line(lines, g + half);
            add_groups(&even, _mm256_unpacklo_epi8(a, b), d->high + 8 * g, d->low + 8 * g);
            add_groups(&odd, _mm256_unpackhi_epi8(a, b), d->high + 8 * g, d->low + 8 * g);
        }
        store_sums(sum, &even);
        store_sums(sum + 8, &odd);
    }
}

/* ---- several inputs ---- */

/* 32 rows of a tile, from index `at` on, for n inputs: n_v of the two vectors at a time, so that
 * the sums of n * n_v <= 4 times two digits stay in registers. */
static TN_ALWAYS_INLINE void sum_few(int32_t (*sum)[64], uint32_t at, const uint8_t *tile,
                                     uint32_t n_groups, const struct digits *d, int n, int n_v,
                                     struct lines lines)
{
    const __m256i code = _mm256_set1_epi8(3);
#pragma GCC unroll 2
    for (int first = 0; first < 2; first += n_v) {
        struct sums s[4][2];
#pragma GCC unroll 4
        for (int t = 0; t < n; t++)
#pragma GCC unroll 2
            for (int j = 0; j < n_v; j++)
                s[t][j].high = s[t][j].low = _mm256_setzero_si256();
        for (uint32_t g = 0; g < n_groups; g += 2) {
            const __m256i a = _mm256_load_si256((const void *)(tile + 64 * g + at));
            const __m256i b = _mm256_load_si256((const void *)(tile + 64 * g + at + 64));
            const __m256i v[2] = {_mm256_unpacklo_epi8(a, b), _mm256_unpackhi_epi8(a, b)};
            if (first == 0)
                request_line(lines, g + at / 32);
#pragma GCC unroll 4
            for (int q = 0; q < 4; q++) {
                __m256i codes[2];
#pragma GCC unroll 2
                for (int j = 0; j < n_v; j++)
                    codes[j] = _mm256_and_si256(_mm256_srli_epi16(v[first + j], 2 * q), code);
#pragma GCC unroll 4
                for (int t = 0; t < n; t++) {
                    const uint32_t k = 8 * g + 4 * q;
                    const __m256i h = _mm256_set1_epi32((int)tn_load_u32(d[t].high + k));
                    const __m256i l = _mm256_set1_epi32((int)tn_load_u32(d[t].low + k));
#pragma GCC unroll 2
                    for (int j = 0; j < n_v; j++) {
                        struct sums *to = &s[t][j];
                        to->high = add_pairs(to->high, codes[j], h);
                        to->low = add_pairs(to->low, codes[j], l);
                    }
                }
            }
        }
#pragma GCC unroll 4
        for (int t = 0; t < n; t++)
#pragma GCC unroll 2
            for (int j = 0; j < n_v; j++)
                store_sums(sum[t] + at + 8 * (first + j), &s[t][j]);
    }
}

static TN_ALWAYS_INLINE void sum_few_tile(int32_t (*sum)[64], const uint8_t *tile,
                                          uint32_t n_groups, const struct digits *d, int n,
                                          struct lines lines)
{
    const int n_v = n == 2 ? 2 : 1;
    sum_few(sum, 0, tile, n_groups, d, n, n_v, lines);
    sum_few(sum, 32, tile, n_groups, d, n, n_v, lines);
}

static TN_ALWAYS_INLINE void sum_tiles(int32_t (*sum)[64], const uint8_t *tile, uint32_t n_groups,
                                       const struct digits *d, uint32_t n,
                                       struct lines lines)
{
    for (; n >= 4; n -= 4, sum += 4, d += 4)
        sum_few_tile(sum, tile, n_groups, d, 4, lines);
    if (n == 3)
        sum_few_tile(sum, tile, n_groups, d, 3, lines);
    else if (n == 2)
        sum_few_tile(sum, tile, n_groups, d, 2, lines);
    else if (n == 1)
        sum_tile(sum[0], tile, n_groups, d, lines);
}

#include "kern/x16_gemv.h"
TILES_GEMV_DEFINE(x16, avx2)
X16_INPUTS_DEFINE(avx2)
