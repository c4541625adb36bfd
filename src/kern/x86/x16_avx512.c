/* SPDX-License-Identifier: MIT
 *
 * Ternary products of few 16-bit inputs for AVX-512 VNNI.
 *
 * The bytes of four groups are interleaved before they are unpacked, so that a 32-bit lane belongs
 * to one row; each field of its bytes gives four codes (0, 1, 2), which `vpdpbusd` multiplies with
 * four inputs of 8 bits, once for each digit.  Fields 0 and 2 share a sum; fields 1 and 3, four
 * times larger, share another.  Per 64 rows x 16 columns 8 instructions to interleave, 20 to
 * unpack, 32 to multiply and to add: 0.059 per weight, and 12 loads.
 *
 * Several inputs share interleaving and unpacking, with one sum per digit: 36 instructions, and 32
 * per input.
 *
 *   A lane adds at most 2 * 4 * 4 * 2 * 128 for 16 columns, 2^16 for a run of 128.
 */
#include <immintrin.h>

#define T5_WORD_BYTES 64

#include "kern/tiles.h"
#include "kern/x16.h"
#include "kern/x86/dots_avx512.h"
#include "kern/x86/quads_avx512.h"

/* For 16 columns c of four groups and q < 4: x[c + q], and the same + 4, + 8, + 12. */
struct digits {
    _Alignas(64) int8_t high[128], low[128];
};

static TN_ALWAYS_INLINE void take_digits(struct digits *d, const int8_t *high, const int8_t *low,
                                         uint32_t n_cols)
{
    quads_inputs(d->high, high, n_cols);
    quads_inputs(d->low, low, n_cols);
}

/* Sums of 64 rows: those of fields 0 and 2, and those of fields 1 and 3, four times larger. */
struct sums {
    __m512i high_ones[4], high_fours[4], low_ones[4], low_fours[4];
};

static TN_ALWAYS_INLINE __m512i values(const int8_t *x)
{
    return _mm512_set1_epi32((int)tn_load_u32(x));
}

static TN_ALWAYS_INLINE void add_groups(struct sums *s, const uint8_t *group, const int8_t *high,
                                        const int8_t *low)
{
    const __m512i m3 = _mm512_set1_epi8(3), m12 = _mm512_set1_epi8(12);
    const __m512i h0 = values(high), h1 = values(high + 4), h2 = values(high + 8);
    const __m512i h3 = values(high + 12);
    const __m512i l0 = values(low), l1 = values(low + 4), l2 = values(low + 8);
    const __m512i l3 = values(low + 12);
    __m512i v[4];
    quads(v, group);
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        const __m512i upper = _mm512_srli_epi16(v[j], 4);
        const __m512i c0 = _mm512_and_si512(v[j], m3), c1 = _mm512_and_si512(v[j], m12);
        const __m512i c2 = _mm512_and_si512(upper, m3), c3 = _mm512_and_si512(upper, m12);
        s->high_ones[j] = add_dots(s->high_ones[j], c0, h0);
        s->low_ones[j] = add_dots(s->low_ones[j], c0, l0);
        s->high_fours[j] = add_dots(s->high_fours[j], c1, h1);
        s->low_fours[j] = add_dots(s->low_fours[j], c1, l1);
        s->high_ones[j] = add_dots(s->high_ones[j], c2, h2);
        s->low_ones[j] = add_dots(s->low_ones[j], c2, l2);
        s->high_fours[j] = add_dots(s->high_fours[j], c3, h3);
        s->low_fours[j] = add_dots(s->low_fours[j], c3, l3);
    }
}

static TN_ALWAYS_INLINE __m512i both_digits(__m512i high, __m512i low)
{
    return _mm512_add_epi32(_mm512_slli_epi32(high, 8), low);
}

static TN_ALWAYS_INLINE void store_sums(int32_t *dst, const struct sums *s)
{
    __m512i v[4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        const __m512i high =
            _mm512_add_epi32(s->high_ones[j], _mm512_srai_epi32(s->high_fours[j], 2));
        const __m512i low =
            _mm512_add_epi32(s->low_ones[j], _mm512_srai_epi32(s->low_fours[j], 2));
        v[j] = both_digits(high, low);
    }
    quads_store(dst, v);
}

static TN_ALWAYS_INLINE void sum_tile(int32_t *sum, const uint8_t *tile, uint32_t n_groups,
                                      const struct digits *d, struct lines lines)
{
    struct sums s;
    for (int j = 0; j < 4; j++)
        s.high_ones[j] = s.high_fours[j] = s.low_ones[j] = s.low_fours[j] =
            _mm512_setzero_si512();
    for (uint32_t g = 0; g < n_groups; g += 4) {
        for (uint32_t i = 0; i < 4; i++)
            request_line(lines, g + i);
        add_groups(&s, tile + 64 * g, d->high + 4 * g, d->low + 4 * g);
    }
    store_sums(sum, &s);
}

/* ---- several inputs ---- */

/* sum_tile for n inputs: n_v of the four vectors at a time, so that the sums of n * n_v <= 8 times
 * two digits stay in registers.  Each field is shifted down, so that a digit has one sum. */
static TN_ALWAYS_INLINE void sum_few(int32_t (*dst)[64], const uint8_t *tile, uint32_t n_groups,
                                     const struct digits *d, int n, int n_v, struct lines lines)
{
    const __m512i m3 = _mm512_set1_epi8(3);
    __m512i rows[4][4];
#pragma GCC unroll 4
    for (int first = 0; first < 4; first += n_v) {
        __m512i high[4][4], low[4][4];
#pragma GCC unroll 4
        for (int t = 0; t < n; t++)
#pragma GCC unroll 4
            for (int j = 0; j < n_v; j++)
                high[t][j] = low[t][j] = _mm512_setzero_si512();
        for (uint32_t g = 0; g < n_groups; g += 4) {
            __m512i v[4];
            quads(v, tile + 64 * g);
            for (uint32_t i = 0; first == 0 && i < 4; i++)
                request_line(lines, g + i);
#pragma GCC unroll 4
            for (int k = 0; k < 4; k++) {
                __m512i codes[4];
#pragma GCC unroll 4
                for (int j = 0; j < n_v; j++)
                    codes[j] = _mm512_and_si512(_mm512_srli_epi16(v[first + j], 2 * k), m3);
#pragma GCC unroll 4
                for (int t = 0; t < n; t++) {
                    const __m512i h = values(d[t].high + 4 * g + 4 * k);
                    const __m512i l = values(d[t].low + 4 * g + 4 * k);
#pragma GCC unroll 4
                    for (int j = 0; j < n_v; j++) {
                        high[t][j] = add_dots(high[t][j], codes[j], h);
                        low[t][j] = add_dots(low[t][j], codes[j], l);
                    }
                }
            }
        }
#pragma GCC unroll 4
        for (int t = 0; t < n; t++)
#pragma GCC unroll 4
            for (int j = 0; j < n_v; j++)
                rows[t][first + j] = both_digits(high[t][j], low[t][j]);
    }
#pragma GCC unroll 4
    for (int t = 0; t < n; t++)
        quads_store(dst[t], rows[t]);
}

static TN_ALWAYS_INLINE void sum_tiles(int32_t (*sum)[64], const uint8_t *tile, uint32_t n_groups,
                                       const struct digits *d, uint32_t n,
                                       struct lines lines)
{
    for (; n >= 4; n -= 4, sum += 4, d += 4)
        sum_few(sum, tile, n_groups, d, 4, 2, lines);
    if (n == 3)
        sum_few(sum, tile, n_groups, d, 3, 2, lines);
    else if (n == 2)
        sum_few(sum, tile, n_groups, d, 2, 4, lines);
    else if (n == 1)
        sum_tile(sum[0], tile, n_groups, d, lines);
}

#include "kern/x16_gemv.h"
TILES_GEMV_DEFINE(x16, avx512)
X16_INPUTS_DEFINE(avx512)
