/* SPDX-License-Identifier: MIT
 *
 * Unpacks the panels of gemm_panel.h with AVX2, for gemm_avx2.c and gemm_avxvnni.c. Instructions
 * per vector of 32 codes: T2 4, R2 2.5, C2 5.
 */
#ifndef TN_GEMM_UNPACK_AVX2_H
#define TN_GEMM_UNPACK_AVX2_H

#include <immintrin.h>

#include "kern/gemm_panel.h"

/* codes[c]: column c of 32 rows, with dwords in the order 0 2 4 6 1 3 5 7.  Stores 32 rows of 4
 * columns. */
static TN_ALWAYS_INLINE void interleave_columns(uint8_t *panel, const __m256i codes[4])
{
    const __m256i lo01 = _mm256_unpacklo_epi8(codes[0], codes[1]);
    const __m256i hi01 = _mm256_unpackhi_epi8(codes[0], codes[1]);
    const __m256i lo23 = _mm256_unpacklo_epi8(codes[2], codes[3]);
    const __m256i hi23 = _mm256_unpackhi_epi8(codes[2], codes[3]);
    _mm256_store_si256((void *)panel, _mm256_unpacklo_epi16(lo01, lo23));
    _mm256_store_si256((void *)(panel + 32), _mm256_unpackhi_epi16(lo01, lo23));
    _mm256_store_si256((void *)(panel + 64), _mm256_unpacklo_epi16(hi01, hi23));
    _mm256_store_si256((void *)(panel + 96), _mm256_unpackhi_epi16(hi01, hi23));
}

/* Permutes dwords so that the unpack instructions, which work on halves, leave rows 0..7, 8..15 and
 * so on. */
static TN_ALWAYS_INLINE __m256i order_rows(__m256i v)
{
    return _mm256_permutevar8x32_epi32(v, _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7));
}

static TN_ALWAYS_INLINE __m256i field(__m256i v, int q)
{
    return _mm256_and_si256(_mm256_srli_epi16(v, 2 * q), _mm256_set1_epi8(3));
}

static void unpack_t2_run(uint8_t *panel, const uint8_t *group)
{
    for (uint32_t i = 0; i < T2_RUN_GROUPS * 2u; i++) {
        const __m256i v = order_rows(_mm256_load_si256((const void *)(group + 32 * i)));
        const __m256i codes[4] = {field(v, 0), field(v, 1), field(v, 2), field(v, 3)};
        interleave_columns(panel + 128 * i, codes);
    }
}

static void unpack_t2(uint8_t *panel, const struct tn_ternary *w, uint32_t row, uint32_t col,
                      uint32_t n_groups)
{
    for (uint32_t g = 0; g < n_groups; g += T2_RUN_GROUPS)
        unpack_t2_run(panel + 256 * g, t2_run(w, row, (col / 4 + g) / T2_RUN_GROUPS));
}

/* v[i] holds dwords 0..7 of row i; afterwards v[d] holds dword d of rows 0..7. */
static TN_ALWAYS_INLINE void transpose_8x8(__m256i v[8])
{
    __m256i t[8];
    for (int i = 0; i < 8; i += 2) {
        t[i] = _mm256_unpacklo_epi32(v[i], v[i + 1]);
        t[i + 1] = _mm256_unpackhi_epi32(v[i], v[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
        v[i] = _mm256_unpacklo_epi64(t[i], t[i + 2]);
        v[i + 1] = _mm256_unpackhi_epi64(t[i], t[i + 2]);
        v[i + 2] = _mm256_unpacklo_epi64(t[i + 1], t[i + 3]);
        v[i + 3] = _mm256_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    for (int j = 0; j < 4; j++) {
        t[j] = _mm256_permute2x128_si256(v[j], v[4 + j], 0x20);
        t[4 + j] = _mm256_permute2x128_si256(v[j], v[4 + j], 0x31);
    }
    for (int d = 0; d < 8; d++)
        v[d] = t[d];
}

/* Dword d of a block holds columns 4 d .. 4 d + 3, and the same + 64, + 128, + 192 in the bit
 * positions 2, 4 and 6: groups d, 16 + d, 32 + d, 48 + d. */
static TN_ALWAYS_INLINE void unpack_r2_half(uint8_t *panel, __m256i v[8])
{
    transpose_8x8(v);
    for (uint32_t d = 0; d < 8; d++)
        for (int q = 0; q < 4; q++)
            _mm256_store_si256((void *)(panel + (16u * (unsigned)q + d) * 256), field(v[d], q));
}

static void unpack_r2(uint8_t *panel, const struct tn_ternary *w, uint32_t row, uint32_t col,
                      uint32_t n_groups)
{
    const size_t row_bytes = (size_t)r2_blocks(w) * 64;
    for (uint32_t part = 0; part < GEMM_PANEL_ROWS; part += 8)
        for (uint32_t half = 0; half < n_groups / 32; half++) {
            __m256i v[8];
            for (uint32_t i = 0; i < 8; i++) {
                const uint32_t r = row + part + i;
                v[i] = r < w->rows ? _mm256_load_si256((const void *)(w->data + r * row_bytes +
                                                                      col / 4 + half * 32))
                                   : _mm256_set1_epi8(0x55);
            }
            unpack_r2_half(panel + (half / 2 * 64 + half % 2 * 8) * 256 + part * 4, v);
        }
}

static void unpack_c2(uint8_t *panel, const struct tn_ternary *w, uint32_t row, uint32_t col,
                      uint32_t n_groups)
{
    const size_t col_bytes = c2_col_bytes(w);
    const __m128i shift = _mm_cvtsi32_si128((int)(row / 64 % 4 * 2));
    const uint8_t *block = w->data + row / 256 * 64 + col * col_bytes;
    for (uint32_t g = 0; g < n_groups; g++, col += 4, block += 4 * col_bytes)
        for (uint32_t half = 0; half < 2; half++) {
            __m256i codes[4];
            for (uint32_t i = 0; i < 4; i++) {
                const __m256i v =
                    col + i < w->cols
                        ? _mm256_load_si256((const void *)(block + i * col_bytes + 32 * half))
                        : _mm256_set1_epi8(0x55);
                codes[i] = order_rows(
                    _mm256_and_si256(_mm256_srl_epi16(v, shift), _mm256_set1_epi8(3)));
            }
            interleave_columns(panel + 256 * g + 128 * half, codes);
        }
}

#endif
