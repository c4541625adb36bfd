/* SPDX-License-Identifier: MIT
 *
 * Ternary products of few inputs in 8 bits for AVX-512 VNNI.
 *
 * As in x16_avx512.c the bytes of four groups are interleaved, so that a dword belongs to one row
 * and masks leave four adjacent codes of it.  Fields 0 and 2 share a sum; fields 1 and 3, four
 * times larger, share another.  For 64 rows x 32 columns 16 instructions interleave, 40 unpack, 32
 * multiply and 20 scale: 0.053 per weight, and 17 loads.
 *
 *   The second sum is at most 4 * 2 * 127 * 16, far from the limits of int32.
 */
#include <immintrin.h>

#include "kern/x8.h"
#include "kern/x86/quads_avx512.h"

/* For 16 columns c of four groups and q < 4: x[c + q], and the same + 4, + 8, + 12. */
struct x8_digits {
    _Alignas(64) int8_t q[128];
};

static TN_ALWAYS_INLINE void x8_take(struct x8_digits *d, const struct x8 *x, uint32_t n_cols)
{
    quads_inputs(d->q, x->q, n_cols);
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
    quads(v, group);
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        const __m512i high = _mm512_srli_epi16(v[j], 4);
        ones[j] = _mm512_dpbusd_epi32(ones[j], _mm512_and_si512(v[j], m3), x0);
        fours[j] = _mm512_dpbusd_epi32(fours[j], _mm512_and_si512(v[j], m12), x1);
        ones[j] = _mm512_dpbusd_epi32(ones[j], _mm512_and_si512(high, m3), x2);
        fours[j] = _mm512_dpbusd_epi32(fours[j], _mm512_and_si512(high, m12), x3);
    }
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
            tn_request(group + 64 * (g + i), TN_PREFETCH_OF(T2_X8));
        add_groups(ones, fours, group + 64 * g, q + 4 * g);
    }
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        const __m512i sum = _mm512_add_epi32(ones[j], _mm512_srai_epi32(fours[j], 2));
        t[j] = _mm512_add_ps(t[j], _mm512_mul_ps(_mm512_cvtepi32_ps(sum), f));
    }
}

static TN_ALWAYS_INLINE void x8_sum_tile(float *dst, const uint8_t *tile, uint32_t n_blocks,
                                         const struct x8_digits *d, const struct x8 *x)
{
    __m512 t[4] = {_mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps(),
                   _mm512_setzero_ps()};
    for (uint32_t k = 0; k < n_blocks; k++)
        add_block(t, tile + k * X8_BLOCK_GROUPS * 64, d->q + k * TN_X8_BLOCK, x->starts[k],
                  x->factors[k]);
    const __m512i rows[4] = {_mm512_castps_si512(t[0]), _mm512_castps_si512(t[1]),
                             _mm512_castps_si512(t[2]), _mm512_castps_si512(t[3])};
    quads_store(dst, rows);
}

#include "kern/x8_gemv.h"
X8_GEMV_DEFINE(avx512)
X8_INPUTS_DEFINE(avx512)
