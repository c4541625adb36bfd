/* SPDX-License-Identifier: MIT
 *
 * Ternary products of few inputs in 8 bits for NEON.
 *
 * Lanes are rows: a field of 16 bytes is a column of 16 rows, and `smlal` multiplies 8 of its codes
 * (0, 1, 2) with one input.  Per 16 rows x 4 columns 7 instructions unpack, 8 multiply and add.
 *
 *   The sum of a block is within 32 * 254 + 4064 = 12192 in int16.
 */
#include <arm_neon.h>

#define T5_WORD_BYTES 16

#include "kern/tiles.h"
#include "kern/x8.h"

/* The values in column order, unchanged. */
struct x8_digits {
    const int8_t *q;
};

static TN_ALWAYS_INLINE void x8_take(struct x8_digits *d, const struct x8 *x, uint32_t n_cols)
{
    (void)n_cols;
    d->q = x->q;
}

/* 4 columns of 32 rows: sum[2 i] and sum[2 i + 1] are rows 16 i to 16 i + 15. */
static TN_ALWAYS_INLINE void add_group(int16x8_t sum[4], const uint8_t *group, const int8_t *q)
{
    const uint8x16_t v[2] = {vld1q_u8(group), vld1q_u8(group + 16)};
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) {
        const int8x16_t x = vld1q_dup_s8(q + k);
        for (int i = 0; i < 2; i++) {
            const uint8x16_t field = vshlq_u8(v[i], vdupq_n_s8((int8_t)(-2 * k)));
            const int8x16_t codes = vreinterpretq_s8_u8(vandq_u8(field, vdupq_n_u8(3)));
            sum[2 * i] = vmlal_s8(sum[2 * i], vget_low_s8(codes), vget_low_s8(x));
            sum[2 * i + 1] = vmlal_high_s8(sum[2 * i + 1], codes, x);
        }
    }
}

/* t[0] and t[1] += a block of four rows each. */
static TN_ALWAYS_INLINE void add_rows(float32x4_t t[2], int16x8_t sum, float32x4_t f)
{
    const float32x4_t low = vcvtq_f32_s32(vmovl_s16(vget_low_s16(sum)));
    const float32x4_t high = vcvtq_f32_s32(vmovl_s16(vget_high_s16(sum)));
    t[0] = vaddq_f32(t[0], vmulq_f32(low, f));
    t[1] = vaddq_f32(t[1], vmulq_f32(high, f));
}

/* 32 rows of a block; prefetches half of the lines ahead, the other half of the tile the rest. */
static TN_ALWAYS_INLINE void add_block(float32x4_t t[8], const uint8_t *group, const int8_t *q,
                                       int32_t start, float factor, uint32_t half,
                                       struct lines lines)
{
    int16x8_t sum[4];
    for (int i = 0; i < 4; i++)
        sum[i] = vdupq_n_s16((int16_t)start);
    for (uint32_t g = 0; g < X8_BLOCK_GROUPS; g++) {
        if (g % 2 == half)
            request_line(lines, g);
        add_group(sum, group + 64 * g + 32 * half, q + 4 * g);
    }
    for (int i = 0; i < 4; i++)
        add_rows(t + 2 * i, sum[i], vdupq_n_f32(factor));
}

static TN_ALWAYS_INLINE void x8_sum_tile(float *dst, const uint8_t *tile, uint32_t n_blocks,
                                         const struct x8_digits *d, const struct x8 *x,
                                         struct lines lines)
{
    for (uint32_t half = 0; half < 2; half++, dst += 32) {
        float32x4_t t[8];
        for (int i = 0; i < 8; i++)
            t[i] = vdupq_n_f32(0.0f);
        for (uint32_t k = 0; k < n_blocks; k++)
            add_block(t, tile + k * X8_BLOCK_GROUPS * 64, d->q + k * TN_X8_BLOCK, x->starts[k],
                      x->factors[k], half, lines_from(lines, k * X8_BLOCK_GROUPS));
        for (int i = 0; i < 8; i++)
            vst1q_f32(dst + 4 * i, t[i]);
    }
}

X8_TILE_BY_TILE

#include "kern/x8_gemv.h"
TILES_GEMV_DEFINE(x8, neon)
X8_INPUTS_DEFINE(neon)
