/* SPDX-License-Identifier: MIT
 *
 * Unpacks the panels of gemm_panel.h with AVX-512, for gemm_avx512.c and gemm_amx.c.  Instructions
 * per vector of 64 codes: T2 3, R2 3, C2 4.5, and those of panel_bytes.
 *
 * The file that includes this defines before
 *
 *   __m512i panel_bytes(__m512i codes)   the bytes of a panel for 64 codes 0, 1, 2
 */
#ifndef TN_GEMM_UNPACK_AVX512_H
#define TN_GEMM_UNPACK_AVX512_H

#include <immintrin.h>

#include "kern/gemm_panel.h"

/* Turns one byte per row with 4 codes into 4 bytes per row. */
static TN_ALWAYS_INLINE void unpack_group(uint8_t *panel, __m512i packed)
{
    /* Bit offsets inside a quadword: of bytes 0 1, 2 3, 4 5, 6 7 in turn. */
    const __m512i shifts = _mm512_set_epi64(0x3E3C3A3836343230, 0x2E2C2A2826242220,
                                            0x1E1C1A1816141210, 0x0E0C0A0806040200,
                                            0x3E3C3A3836343230, 0x2E2C2A2826242220,
                                            0x1E1C1A1816141210, 0x0E0C0A0806040200);
    const __m512i code = _mm512_set1_epi8(3);
    const __m512i index = _mm512_set_epi64(1, 1, 1, 1, 0, 0, 0, 0);
    for (int i = 0; i < 4; i++) {
        const __m512i from = _mm512_add_epi64(index, _mm512_set1_epi64(2 * i));
        const __m512i v = _mm512_permutexvar_epi64(from, packed);
        const __m512i codes = _mm512_and_si512(_mm512_multishift_epi64_epi8(shifts, v), code);
        _mm512_store_si512(panel + 64 * i, panel_bytes(codes));
    }
}

static void unpack_t2(uint8_t *panel, const struct tn_ternary *w, uint32_t row, uint32_t col,
                      uint32_t n_groups)
{
    for (uint32_t begin = 0; begin < n_groups; begin += T2_RUN_GROUPS) {
        const uint8_t *run = t2_run(w, row, (col / 4 + begin) / T2_RUN_GROUPS);
        for (uint32_t g = 0; g < T2_RUN_GROUPS; g++)
            unpack_group(panel + 256 * (begin + g), _mm512_load_si512(run + 64 * g));
    }
}

/* v[i] holds dwords 0..15 of row i; afterwards v[d] holds dword d of rows 0..15. */
static TN_ALWAYS_INLINE void transpose_16x16(__m512i v[16])
{
    __m512i t[16];
    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
    }
    for (int i = 0; i < 16; i += 4) {
        v[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
        v[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        v[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
        v[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    /* v[4 k + j], lane l: dword 4 l + j of rows 4 k .. 4 k + 3. */
    for (int j = 0; j < 4; j++) {
        t[j] = _mm512_shuffle_i32x4(v[j], v[4 + j], 0x88);
        t[4 + j] = _mm512_shuffle_i32x4(v[j], v[4 + j], 0xDD);
        t[8 + j] = _mm512_shuffle_i32x4(v[8 + j], v[12 + j], 0x88);
        t[12 + j] = _mm512_shuffle_i32x4(v[8 + j], v[12 + j], 0xDD);
    }
    for (int j = 0; j < 4; j++) {
        v[j] = _mm512_shuffle_i32x4(t[j], t[8 + j], 0x88);
        v[8 + j] = _mm512_shuffle_i32x4(t[j], t[8 + j], 0xDD);
        v[4 + j] = _mm512_shuffle_i32x4(t[4 + j], t[12 + j], 0x88);
        v[12 + j] = _mm512_shuffle_i32x4(t[4 + j], t[12 + j], 0xDD);
    }
}

/* Dword d of a block holds columns 4 d .. 4 d + 3, and the same + 64, + 128, + 192 in the bit
 * positions 2, 4 and 6: groups d, 16 + d, 32 + d, 48 + d. */
static void unpack_r2(uint8_t *panel, const struct tn_ternary *w, uint32_t row, uint32_t col,
                      uint32_t n_groups)
{
    const size_t row_bytes = (size_t)r2_blocks(w) * 64;
    const __m512i code = _mm512_set1_epi8(3);
    for (uint32_t part = 0; part < GEMM_PANEL_ROWS; part += 16)
        for (uint32_t block = 0; block < n_groups / 64; block++) {
            __m512i v[16];
            for (uint32_t i = 0; i < 16; i++) {
                const uint32_t r = row + part + i;
                v[i] = r < w->rows ? _mm512_load_si512(w->data + r * row_bytes + col / 4 +
                                                       block * 64)
                                   : _mm512_set1_epi8(0x55);
            }
            transpose_16x16(v);
            uint8_t *out = panel + block * (64 * 256) + part * 4;
            for (uint32_t d = 0; d < 16; d++, out += 256) {
#pragma GCC unroll 4
                for (uint32_t q = 0; q < 4; q++) {
                    const __m512i codes = _mm512_and_si512(_mm512_srli_epi16(v[d], 2 * q), code);
                    _mm512_store_si512(out + q * (16 * 256), panel_bytes(codes));
                }
            }
        }
}

/* Gathers field q of four columns into the four fields of a byte. */
static TN_ALWAYS_INLINE __m512i gather_field(const __m512i v[4], const int q)
{
    __m512i moved[4];
    for (int i = 0; i < 4; i++)
        moved[i] = i >= q ? _mm512_slli_epi16(v[i], (unsigned)(2 * (i - q)))
                          : _mm512_srli_epi16(v[i], (unsigned)(2 * (q - i)));
    /* 0xCA: where the first operand is 1 the second, else the third. */
    const __m512i low = _mm512_ternarylogic_epi64(_mm512_set1_epi8(0x03), moved[0], moved[1], 0xCA);
    const __m512i high =
        _mm512_ternarylogic_epi64(_mm512_set1_epi8(0x30), moved[2], moved[3], 0xCA);
    return _mm512_ternarylogic_epi64(_mm512_set1_epi8(0x0F), low, high, 0xCA);
}

static TN_ALWAYS_INLINE void unpack_c2_field(uint8_t *panel, const struct tn_ternary *w,
                                             uint32_t row, uint32_t col, uint32_t n_groups,
                                             const int q)
{
    const size_t col_bytes = c2_col_bytes(w);
    const uint8_t *block = w->data + row / 256 * 64 + col * col_bytes;
    for (uint32_t g = 0; g < n_groups; g++, col += 4) {
        __m512i v[4];
        for (uint32_t i = 0; i < 4; i++, block += col_bytes)
            v[i] = col + i < w->cols ? _mm512_load_si512(block) : _mm512_set1_epi8(0x55);
        unpack_group(panel + 256 * g, gather_field(v, q));
    }
}

static void unpack_c2(uint8_t *panel, const struct tn_ternary *w, uint32_t row, uint32_t col,
                      uint32_t n_groups)
{
    switch (row / 64 % 4) {
    case 0:
        unpack_c2_field(panel, w, row, col, n_groups, 0);
        break;
    case 1:
        unpack_c2_field(panel, w, row, col, n_groups, 1);
        break;
    case 2:
        unpack_c2_field(panel, w, row, col, n_groups, 2);
        break;
    default:
        unpack_c2_field(panel, w, row, col, n_groups, 3);
        break;
    }
}

#endif
