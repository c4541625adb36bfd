/* SPDX-License-Identifier: MIT
 *
 * Ternary products of few inputs in 8 bits for AVX-512 VNNI.
 *
 * As in x16_avx512.c the bytes of four groups are interleaved, so that a dword belongs to one row
 * and masks leave four adjacent codes of it.  Fields 0 and 2 share a sum; fields 1 and 3, four
 * times larger, share another.  For 64 rows x 32 columns 16 instructions interleave, 40 unpack, 32
 * multiply and 20 scale: 0.053 per weight, and 17 loads.
 *
 * Several inputs share interleaving and unpacking, with one sum each: 72 instructions, and 44 per
 * input.
 *
 *   The second sum is at most 4 * 2 * 127 * 16, far from the limits of int32.
 */
#include <immintrin.h>

#define T5_WORD_BYTES 64

#include "kern/tiles.h"
#include "kern/x8.h"
#include "kern/x86/dots_avx512.h"
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
                                       int32_t start, float factor, struct lines lines)
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
            request_line(lines, g + i);
        add_groups(ones, fours, group + 64 * g, q + 4 * g);
    }
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        const __m512i sum = _mm512_add_epi32(ones[j], _mm512_srai_epi32(fours[j], 2));
        t[j] = _mm512_add_ps(t[j], _mm512_mul_ps(_mm512_cvtepi32_ps(sum), f));
    }
}

static TN_ALWAYS_INLINE void x8_sum_tile(float *dst, const uint8_t *tile, uint32_t n_blocks,
                                         const struct x8_digits *d, const struct x8 *x,
                                         struct lines lines)
{
    __m512 t[4] = {_mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps(),
                   _mm512_setzero_ps()};
    for (uint32_t k = 0; k < n_blocks; k++)
        add_block(t, tile + k * X8_BLOCK_GROUPS * 64, d->q + k * TN_X8_BLOCK, x->starts[k],
                  x->factors[k], lines_from(lines, k * X8_BLOCK_GROUPS));
    const __m512i rows[4] = {_mm512_castps_si512(t[0]), _mm512_castps_si512(t[1]),
                             _mm512_castps_si512(t[2]), _mm512_castps_si512(t[3])};
    quads_store(dst, rows);
}

/* ---- several inputs ---- */

/* t[i][j] += 32 rows of a block, the vectors 2 * half + j, for n inputs from x on.  Each field is
 * shifted down, so that an input has one sum per vector. */
static TN_ALWAYS_INLINE void add_block_few(__m512 t[][2], const uint8_t *group, uint32_t k,
                                           const struct x8_digits *d, const struct x8 *x,
                                           const uint32_t half, const int n, struct lines lines)
{
    const __m512i m3 = _mm512_set1_epi8(3);
    __m512i sum[TN_X8_FEW][2];
#pragma GCC unroll 4
    for (int i = 0; i < n; i++)
        sum[i][0] = sum[i][1] = _mm512_set1_epi32(x[i].starts[k]);
#pragma GCC unroll 2
    for (uint32_t g = 0; g < X8_BLOCK_GROUPS; g += 4) {
        __m512i v[2];
        quads_half(v, group + 64 * g, half);
        for (uint32_t i = 0; half == 0 && i < 4; i++)
            request_line(lines, g + i);
#pragma GCC unroll 4
        for (uint32_t q = 0; q < 4; q++) {
            const __m512i c0 = _mm512_and_si512(_mm512_srli_epi16(v[0], 2 * q), m3);
            const __m512i c1 = _mm512_and_si512(_mm512_srli_epi16(v[1], 2 * q), m3);
#pragma GCC unroll 4
            for (int i = 0; i < n; i++) {
                const __m512i xi = values(d[i].q + k * TN_X8_BLOCK + 4 * (g + q));
                sum[i][0] = add_dots(sum[i][0], c0, xi);
                sum[i][1] = add_dots(sum[i][1], c1, xi);
            }
        }
    }
#pragma GCC unroll 4
    for (int i = 0; i < n; i++)
#pragma GCC unroll 2
        for (int j = 0; j < 2; j++)
            t[i][j] = _mm512_add_ps(t[i][j], _mm512_mul_ps(_mm512_cvtepi32_ps(sum[i][j]),
                                                           _mm512_set1_ps(x[i].factors[k])));
}

/* x8_sum_tile for n inputs, at most TN_X8_FEW: the sums of half of the rows stay in registers. */
static TN_ALWAYS_INLINE void sum_few(float (*dst)[64], const uint8_t *tile, uint32_t n_blocks,
                                     const struct x8_digits *d, const struct x8 *x, const int n,
                                     struct lines lines)
{
    __m512i rows[TN_X8_FEW][4];
#pragma GCC unroll 2
    for (uint32_t half = 0; half < 2; half++) {
        __m512 t[TN_X8_FEW][2];
#pragma GCC unroll 4
        for (int i = 0; i < n; i++)
            t[i][0] = t[i][1] = _mm512_setzero_ps();
        for (uint32_t k = 0; k < n_blocks; k++)
            add_block_few(t, tile + k * X8_BLOCK_GROUPS * 64, k, d, x, half, n,
                          lines_from(lines, k * X8_BLOCK_GROUPS));
#pragma GCC unroll 4
        for (int i = 0; i < n; i++)
#pragma GCC unroll 2
            for (int j = 0; j < 2; j++)
                rows[i][2 * half + j] = _mm512_castps_si512(t[i][j]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < n; i++)
        quads_store(dst[i], rows[i]);
}

static TN_ALWAYS_INLINE void x8_sum_tiles(float (*sum)[64], const uint8_t *tile,
                                          uint32_t n_blocks, const struct x8_digits *d,
                                          const struct x8 *x, uint32_t n, struct lines lines)
{
    if (n == 4)
        sum_few(sum, tile, n_blocks, d, x, 4, lines);
    else if (n == 3)
        sum_few(sum, tile, n_blocks, d, x, 3, lines);
    else
        sum_few(sum, tile, n_blocks, d, x, 2, lines);
}

#include "kern/x8_gemv.h"
TILES_GEMV_DEFINE(x8, avx512)
X8_INPUTS_DEFINE(avx512)
