/* SPDX-License-Identifier: MIT
 *
 * Unpacks the panels of gemm_panel.h with NEON, for gemm_neon.c, gemm_dotprod.c and gemm_i8mm.c,
 * which differ only in how they multiply.
 */
#ifndef TN_GEMM_UNPACK_NEON_H
#define TN_GEMM_UNPACK_NEON_H

#include <arm_neon.h>

#include "kern/gemm_panel.h"

static TN_ALWAYS_INLINE uint8x16_t field(uint8x16_t v, int q)
{
    return vandq_u8(vshlq_u8(v, vdupq_n_s8((int8_t)(-2 * q))), vdupq_n_u8(3));
}

static void unpack_t2_run(uint8_t *panel, const uint8_t *group)
{
    for (uint32_t i = 0; i < T2_RUN_GROUPS * 4u; i++) {
        const uint8x16_t v = vld1q_u8(group + 16 * i);
        const uint8x16x4_t codes = {{field(v, 0), field(v, 1), field(v, 2), field(v, 3)}};
        vst4q_u8(panel + 64 * i, codes); /* interleaves: 16 rows of 4 columns */
    }
}

static void unpack_t2(uint8_t *panel, const struct tn_ternary *w, uint32_t row, uint32_t col,
                      uint32_t n_groups)
{
    for (uint32_t g = 0; g < n_groups; g += T2_RUN_GROUPS)
        unpack_t2_run(panel + 256 * g, t2_run(w, row, (col / 4 + g) / T2_RUN_GROUPS));
}

/* Dword d of a block holds columns 4 d .. 4 d + 3, and the same + 64, + 128, + 192 in the bit
 * positions 2, 4 and 6: groups d, 16 + d, 32 + d, 48 + d.  v[i]: dwords d .. d + 3 of row i of
 * four. */
static TN_ALWAYS_INLINE void unpack_r2_part(uint8_t *panel, const uint32x4_t v[4])
{
    const uint64x2_t lo01 = vreinterpretq_u64_u32(vzip1q_u32(v[0], v[1]));
    const uint64x2_t hi01 = vreinterpretq_u64_u32(vzip2q_u32(v[0], v[1]));
    const uint64x2_t lo23 = vreinterpretq_u64_u32(vzip1q_u32(v[2], v[3]));
    const uint64x2_t hi23 = vreinterpretq_u64_u32(vzip2q_u32(v[2], v[3]));
    const uint64x2_t dword[4] = {vzip1q_u64(lo01, lo23), vzip2q_u64(lo01, lo23),
                                 vzip1q_u64(hi01, hi23), vzip2q_u64(hi01, hi23)};
    for (uint32_t d = 0; d < 4; d++)
        for (int q = 0; q < 4; q++)
            vst1q_u8(panel + (16u * (unsigned)q + d) * 256,
                     field(vreinterpretq_u8_u64(dword[d]), q));
}

static void unpack_r2(uint8_t *panel, const struct tn_ternary *w, uint32_t row, uint32_t col,
                      uint32_t n_groups)
{
    const size_t row_bytes = (size_t)r2_blocks(w) * 64;
    for (uint32_t part = 0; part < GEMM_PANEL_ROWS; part += 4)
        for (uint32_t k = 0; k < n_groups / 16; k++) {
            uint32x4_t v[4];
            for (uint32_t i = 0; i < 4; i++) {
                const uint32_t r = row + part + i;
                v[i] = vreinterpretq_u32_u8(
                    r < w->rows ? vld1q_u8(w->data + r * row_bytes + col / 4 + k * 16)
                                : vdupq_n_u8(0x55));
            }
            unpack_r2_part(panel + (k / 4 * 64 + k % 4 * 4) * 256 + part * 4, v);
        }
}

static void unpack_c2(uint8_t *panel, const struct tn_ternary *w, uint32_t row, uint32_t col,
                      uint32_t n_groups)
{
    const size_t col_bytes = c2_col_bytes(w);
    const int q = (int)(row / 64 % 4);
    const uint8_t *block = w->data + row / 256 * 64 + col * col_bytes;
    for (uint32_t g = 0; g < n_groups; g++, col += 4, block += 4 * col_bytes)
        for (uint32_t part = 0; part < 64; part += 16) {
            uint8x16x4_t codes;
            for (uint32_t i = 0; i < 4; i++)
                codes.val[i] = field(col + i < w->cols ? vld1q_u8(block + i * col_bytes + part)
                                                       : vdupq_n_u8(0x55),
                                     q);
            vst4q_u8(panel + 256 * g + 4 * part, codes);
        }
}

#endif
