/* SPDX-License-Identifier: MIT
 *
 * Four groups of a T2 tile together, with AVX-512: 64 rows x 16 columns.  Private to the files that
 * multiply them by vpdpbusd.
 *
 * The bytes of the groups are interleaved, so that a 32-bit lane belongs to one row and field k of
 * its bytes is column k of each group:
 *
 *   lane          c0 c1 c2 c3 | c4 ... c7 | c8 ... c11 | c12 ... c15
 *   field 0       c0 | c4 | c8 | c12     times x0 | x4 | x8 | x12
 *   field 1       c1 | c5 | c9 | c13     times x1 | x5 | x9 | x13     and so on
 *
 * Lane 4 i + k of vector j has row 16 i + 4 j + k; sums keep this order until all columns are
 * added.
 */
#ifndef TN_QUADS_AVX512_H
#define TN_QUADS_AVX512_H

#include <immintrin.h>

#include "kern/ternary_layout.h"

/* Vectors 2 * half and 2 * half + 1 of four groups. */
static TN_ALWAYS_INLINE void quads_half(__m512i v[2], const uint8_t *groups, const uint32_t half)
{
    const __m512i a = _mm512_load_si512(groups), b = _mm512_load_si512(groups + 64);
    const __m512i c = _mm512_load_si512(groups + 128), d = _mm512_load_si512(groups + 192);
    const __m512i ab = half ? _mm512_unpackhi_epi8(a, b) : _mm512_unpacklo_epi8(a, b);
    const __m512i cd = half ? _mm512_unpackhi_epi8(c, d) : _mm512_unpacklo_epi8(c, d);
    v[0] = _mm512_unpacklo_epi16(ab, cd);
    v[1] = _mm512_unpackhi_epi16(ab, cd);
}

static TN_ALWAYS_INLINE void quads(__m512i v[4], const uint8_t *groups)
{
    quads_half(v, groups, 0);
    quads_half(v + 2, groups, 1);
}

/* dst [64] of 32 bits, in row order, from four vectors: a transposition of lanes. */
static TN_ALWAYS_INLINE void quads_store(void *dst, const __m512i v[4])
{
    int32_t *rows = dst;
    const __m512i a = _mm512_shuffle_i32x4(v[0], v[1], 0x44);
    const __m512i b = _mm512_shuffle_i32x4(v[2], v[3], 0x44);
    const __m512i c = _mm512_shuffle_i32x4(v[0], v[1], 0xEE);
    const __m512i d = _mm512_shuffle_i32x4(v[2], v[3], 0xEE);
    _mm512_store_si512(rows, _mm512_shuffle_i32x4(a, b, 0x88));
    _mm512_store_si512(rows + 16, _mm512_shuffle_i32x4(a, b, 0xDD));
    _mm512_store_si512(rows + 32, _mm512_shuffle_i32x4(c, d, 0x88));
    _mm512_store_si512(rows + 48, _mm512_shuffle_i32x4(c, d, 0xDD));
}

/* Inputs of 16 columns in the order of the fields. */
static TN_ALWAYS_INLINE __m128i quads_order(void)
{
    return _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
}

/* dst [64], x [64]: n_cols inputs, a multiple of 64, in that order. */
static TN_ALWAYS_INLINE void quads_inputs(int8_t *dst, const int8_t *x, uint32_t n_cols)
{
    const __m512i order = _mm512_broadcast_i32x4(quads_order());
    for (uint32_t c = 0; c < n_cols; c += 64)
        _mm512_store_si512(dst + c, _mm512_shuffle_epi8(_mm512_load_si512(x + c), order));
}

#endif
