/* SPDX-License-Identifier: MIT
 *
 * Ternary products of one 16-bit input for AVX-512 VNNI.
 *
 * The bytes of four groups are interleaved before they are unpacked, so that a 32-bit lane belongs
 * to one row; each field of its bytes gives four codes (0, 1, 2), which `vpdpbusd` multiplies with
 * four inputs of 8 bits, once for each digit.  Fields are not shifted down: the sums of field q are
 * 4^q times larger until they are added.  Per 32 rows x 16 columns 4 instructions to interleave, 8
 * to unpack, 16 to multiply and to add: 0.055 per weight, and loads.
 *
 *   A lane adds at most 4 * 2 * 64 * 128 for 16 columns, 2^19 for a run of 128.
 */
#include <immintrin.h>

#include "kern/x16.h"

/* For 16 columns c of four groups and q < 4: x[c + q], and the same + 4, + 8, + 12. */
struct digits {
    _Alignas(64) int8_t high[128], low[128];
};

static TN_ALWAYS_INLINE void take_fours(int8_t *dst, const int8_t *x, uint32_t n_cols)
{
    const __m512i order = _mm512_broadcast_i32x4(
        _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    for (uint32_t c = 0; c < n_cols; c += 64)
        _mm512_store_si512(dst + c, _mm512_shuffle_epi8(_mm512_load_si512(x + c), order));
}

static TN_ALWAYS_INLINE void take_digits(struct digits *d, const int8_t *high, const int8_t *low,
                                         uint32_t n_cols)
{
    take_fours(d->high, high, n_cols);
    take_fours(d->low, low, n_cols);
}

/* Sums of 32 rows for each field. */
struct sums {
    __m512i high[2][4], low[2][4];
};

/* 16 columns of the rows 16 i + 8 part ... 16 i + 8 part + 7, i < 4: v[0] has the first four of
 * each eight, v[1] the others. */
static TN_ALWAYS_INLINE void interleave(__m512i v[2], const uint8_t *group, uint32_t part)
{
    const __m512i a = _mm512_load_si512(group), b = _mm512_load_si512(group + 64);
    const __m512i c = _mm512_load_si512(group + 128), d = _mm512_load_si512(group + 192);
    const __m512i ab = part ? _mm512_unpackhi_epi8(a, b) : _mm512_unpacklo_epi8(a, b);
    const __m512i cd = part ? _mm512_unpackhi_epi8(c, d) : _mm512_unpacklo_epi8(c, d);
    v[0] = _mm512_unpacklo_epi16(ab, cd);
    v[1] = _mm512_unpackhi_epi16(ab, cd);
}

static TN_ALWAYS_INLINE void add_groups(struct sums *s, const uint8_t *group, uint32_t part,
                                        const int8_t *high, const int8_t *low)
{
    __m512i v[2];
    interleave(v, group, part);
#pragma GCC unroll 4
    for (int q = 0; q < 4; q++) {
        const __m512i h = _mm512_set1_epi32((int)tn_load_u32(high + 4 * q));
        const __m512i l = _mm512_set1_epi32((int)tn_load_u32(low + 4 * q));
#pragma GCC unroll 2
        for (int i = 0; i < 2; i++) {
            const __m512i codes = _mm512_and_si512(v[i], _mm512_set1_epi8((char)(3 << 2 * q)));
            s->high[i][q] = _mm512_dpbusd_epi32(s->high[i][q], codes, h);
            s->low[i][q] = _mm512_dpbusd_epi32(s->low[i][q], codes, l);
        }
    }
}

/* The four fields, shifted down. */
static TN_ALWAYS_INLINE __m512i total(const __m512i f[4])
{
    return _mm512_add_epi32(
        _mm512_add_epi32(f[0], _mm512_srai_epi32(f[1], 2)),
        _mm512_add_epi32(_mm512_srai_epi32(f[2], 4), _mm512_srai_epi32(f[3], 6)));
}

/* 256 * high + low of the rows of interleave(). */
static TN_ALWAYS_INLINE void store_sums(int32_t *sum, uint32_t part, const struct sums *s)
{
    for (uint32_t i = 0; i < 2; i++) {
        const __m512i v =
            _mm512_add_epi32(_mm512_slli_epi32(total(s->high[i]), 8), total(s->low[i]));
        int32_t *dst = sum + 8 * part + 4 * i;
        _mm_store_si128((void *)dst, _mm512_castsi512_si128(v));
        _mm_store_si128((void *)(dst + 16), _mm512_extracti32x4_epi32(v, 1));
        _mm_store_si128((void *)(dst + 32), _mm512_extracti32x4_epi32(v, 2));
        _mm_store_si128((void *)(dst + 48), _mm512_extracti32x4_epi32(v, 3));
    }
}

/* Asks for a line three times: a processor forgets prefetches while all its line buffers are in
 * use. */
static TN_ALWAYS_INLINE void ask_ahead(const uint8_t *p)
{
    TN_PREFETCH(p + 12288);
    TN_PREFETCH(p + 8192);
    TN_PREFETCH(p + 4096);
}

static TN_ALWAYS_INLINE void sum_tile(int32_t *sum, const uint8_t *tile, uint32_t n_groups,
                                      const struct digits *d)
{
#pragma GCC unroll 2
    for (uint32_t part = 0; part < 2; part++) {
        struct sums s;
        for (int i = 0; i < 2; i++)
            for (int q = 0; q < 4; q++)
                s.high[i][q] = s.low[i][q] = _mm512_setzero_si512();
        for (uint32_t g = 0; g < n_groups; g += 4) {
            ask_ahead(tile + 64 * (g + 2 * part));
            ask_ahead(tile + 64 * (g + 2 * part + 1));
            add_groups(&s, tile + 64 * g, part, d->high + 4 * g, d->low + 4 * g);
        }
        store_sums(sum, part, &s);
    }
}

#include "kern/x16_gemv.h"
X16_GEMV_DEFINE(avx512)
X16_INPUTS_DEFINE(avx512)
