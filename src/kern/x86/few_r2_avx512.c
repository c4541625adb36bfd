/* SPDX-License-Identifier: MIT
 *
 * Rows of R2 times selected inputs for AVX-512 VNNI: `vpdpbusd` multiplies the codes of one field
 * of 64 bytes with 64 inputs.  Per 256 columns 7 instructions unpack, each input takes 4.
 */
#include <immintrin.h>

#include "kern/few_r2.h"

/* The totals of four registers. */
static TN_ALWAYS_INLINE __m128i totals(const __m512i v[4])
{
    const __m512i ab = _mm512_add_epi32(_mm512_unpacklo_epi32(v[0], v[1]),
                                        _mm512_unpackhi_epi32(v[0], v[1]));
    const __m512i cd = _mm512_add_epi32(_mm512_unpacklo_epi32(v[2], v[3]),
                                        _mm512_unpackhi_epi32(v[2], v[3]));
    const __m512i all =
        _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
    const __m256i half =
        _mm256_add_epi32(_mm512_castsi512_si256(all), _mm512_extracti64x4_epi64(all, 1));
    return _mm_add_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
}

static TN_ALWAYS_INLINE void sum_row(int32_t *sums, const struct few_r2_row *row,
                                     const int8_t *const *x, const uint32_t n)
{
    const __m512i code = _mm512_set1_epi8(3);
    __m512i sum[FEW_R2_MOST][2], all[FEW_R2_MOST];
#pragma GCC unroll 4
    for (uint32_t k = 0; k < n; k++)
        sum[k][0] = sum[k][1] = _mm512_setzero_si512();
    for (uint32_t b = 0; b < row->n_blocks; b++) {
        const __m512i bytes = _mm512_load_si512(row->row + 64 * b);
        tn_request_l2(row->far + 64 * b, TN_PREFETCH_OF(R2_FEW));
        tn_request_l1(row->near + 64 * b, TN_PREFETCH_OF(R2_FEW));
#pragma GCC unroll 4
        for (uint32_t i = 0; i < 4; i++) {
            const __m512i codes = _mm512_and_si512(_mm512_srli_epi16(bytes, 2 * i), code);
#pragma GCC unroll 4
            for (uint32_t k = 0; k < n; k++)
                sum[k][i % 2] = _mm512_dpbusd_epi32(
                    sum[k][i % 2], codes, _mm512_load_si512(x[k] + 256 * b + 64 * i));
        }
    }
#pragma GCC unroll 4
    for (uint32_t k = 0; k < FEW_R2_MOST; k++)
        all[k] = k < n ? _mm512_add_epi32(sum[k][0], sum[k][1]) : _mm512_setzero_si512();
    _mm_storeu_si128((__m128i *)(void *)sums, totals(all));
}

FEW_R2_DEFINE(avx512, sum_row)
