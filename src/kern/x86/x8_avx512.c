/* SPDX-License-Identifier: MIT
 *
 * Ternary products of few inputs in 8 bits for AVX-512 VNNI.
 *
 * As in x16_avx512.c the bytes of four groups are interleaved, so that a dword belongs to one row
 * and masks leave four codes of it side by side.  Fields 0 and 2 are added in one sum, fields 1 and
 * 3, four times larger, in another.  For 64 rows x 32 columns 16 instructions interleave, 40
 * unpack, 32 multiply and 20 scale: 0.053 per weight, and 17 loads.
 *
 *   A sum of fours is at most 4 * 2 * 127 * 16, far from the ends of int32.
 */
#include <immintrin.h>

#include "kern/x8.h"

/* For 16 columns c of four groups and q < 4: x[c + q], and the same + 4, + 8, + 12. */
struct x8_digits {
    _Alignas(64) int8_t q[128];
};

static TN_ALWAYS_INLINE void x8_take(struct x8_digits *d, const struct x8 *x, uint32_t n_cols)
{
    const __m512i order = _mm512_broadcast_i32x4(
        _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    for (uint32_t c = 0; c < n_cols; c += 64)
        _mm512_store_si512(d->q + c, _mm512_shuffle_epi8(_mm512_load_si512(x->q + c), order));
}

/* 16 columns of 64 rows: lane i of v[j], i < 4, has the rows 16 i + 4 j ... 16 i + 4 j + 3. */
static TN_ALWAYS_INLINE void interleave(__m512i v[4], const uint8_t *group)
{
    const __m512i a = _mm512_load_si512(group), b = _mm512_load_si512(group + 64);
    const __m512i c = _mm512_load_si512(group + 128), d = _mm512_load_si512(group + 192);
    const __m512i ab_low = _mm512_unpacklo_epi8(a, b), ab_high = _mm512_unpackhi_epi8(a, b);
    const __m512i cd_low = _mm512_unpacklo_epi8(c, d), cd_high = _mm512_unpackhi_epi8(c, d);
    v[0] = _mm512_unpacklo_epi16(ab_low, cd_low);
    v[1] = _mm512_unpackhi_epi16(ab_low, cd_low);
    v[2] = _mm512_unpacklo_epi16(ab_high, cd_high);
    v[3] = _mm512_unpackhi_epi16(ab_high, cd_high);
}

static TN_ALWAYS_INLINE __m512i values(const int8_t *q)
{
    return _mm512_set1_epi32((int)tn_load_u32(q));
}

static TN_ALWAYS_INLINE void add_groups(__m512i ones[4], __m512i fours[4], const uint8_t *group,
                                        const int8_t *q)
{
    const __m512i m3 = _mm512_set1_epi8(3), m12 = _mm512_set1_epi8(12);
    const __m512i x0 = values(q), x1 = values(q + 4), x2 = values(q + 8), x3 = values(q + 12);
    __m512i v[4];
    interleave(v, group);
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        const __m512i high = _mm512_srli_epi16(v[j], 4);
        ones[j] = _mm512_dpbusd_epi32(ones[j], _mm512_and_si512(v[j], m3), x0);
        fours[j] = _mm512_dpbusd_epi32(fours[j], _mm512_and_si512(v[j], m12), x1);
        ones[j] = _mm512_dpbusd_epi32(ones[j], _mm512_and_si512(high, m3), x2);
        fours[j] = _mm512_dpbusd_epi32(fours[j], _mm512_and_si512(high, m12), x3);
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

/* t[j] += 64 rows of a block. */
static TN_ALWAYS_INLINE void add_block(__m512 t[4], const uint8_t *group, const int8_t *q,
                                       int32_t start, float factor)
{
    const __m512 f = _mm512_set1_ps(factor);
    __m512i ones[4], fours[4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        ones[j] = _mm512_set1_epi32(start);
        fours[j] = _mm512_setzero_si512();
    }
#pragma GCC unroll 2
    for (uint32_t g = 0; g < X8_BLOCK_GROUPS; g += 4) {
        for (uint32_t i = 0; i < 4; i++)
            ask_ahead(group + 64 * (g + i));
        add_groups(ones, fours, group + 64 * g, q + 4 * g);
    }
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        const __m512i sum = _mm512_add_epi32(ones[j], _mm512_srai_epi32(fours[j], 2));
        t[j] = _mm512_add_ps(t[j], _mm512_mul_ps(_mm512_cvtepi32_ps(sum), f));
    }
}

/* dst [64] from the rows as interleave() has them: a transposition of lanes. */
static TN_ALWAYS_INLINE void store_rows(float *dst, const __m512 t[4])
{
    const __m512 a = _mm512_shuffle_f32x4(t[0], t[1], 0x44);
    const __m512 b = _mm512_shuffle_f32x4(t[2], t[3], 0x44);
    const __m512 c = _mm512_shuffle_f32x4(t[0], t[1], 0xEE);
    const __m512 d = _mm512_shuffle_f32x4(t[2], t[3], 0xEE);
    _mm512_store_ps(dst, _mm512_shuffle_f32x4(a, b, 0x88));
    _mm512_store_ps(dst + 16, _mm512_shuffle_f32x4(a, b, 0xDD));
    _mm512_store_ps(dst + 32, _mm512_shuffle_f32x4(c, d, 0x88));
    _mm512_store_ps(dst + 48, _mm512_shuffle_f32x4(c, d, 0xDD));
}

static TN_ALWAYS_INLINE void x8_sum_tile(float *dst, const uint8_t *tile, uint32_t n_blocks,
                                         const struct x8_digits *d, const struct x8 *x)
{
    __m512 t[4] = {_mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps(),
                   _mm512_setzero_ps()};
    for (uint32_t k = 0; k < n_blocks; k++)
        add_block(t, tile + k * X8_BLOCK_GROUPS * 64, d->q + k * TN_X8_BLOCK, x->starts[k],
                  x->factors[k]);
    store_rows(dst, t);
}

#include "kern/x8_gemv.h"
X8_GEMV_DEFINE(avx512)
X8_INPUTS_DEFINE(avx512)
