/* SPDX-License-Identifier: MIT
 *
 * Bit planes, NEON: codes are widened to int16, smlal adds four products.  Per 16 columns 1 or 2
 * instructions extract codes, 2 widen, 4 multiply, and one load takes 32 bytes.  The sums fit
 * int32: (2^bits - 1) * max |x| * cols < 2^31 (kern.h).
 */
#include <arm_neon.h>

#include "kern/plane_rows.h"
#include "kern/plane_unpack.h"

/* Adds 16 codes times 16 values. */
static TN_ALWAYS_INLINE int32x4_t add_products(int32x4_t sum, uint8x16_t codes, const int16_t *x)
{
    int16x8_t low = vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(codes)));
    int16x8_t high = vreinterpretq_s16_u16(vmovl_high_u8(codes));
    int16x8_t x_low = vld1q_s16(x), x_high = vld1q_s16(x + 8);
    sum = vmlal_s16(sum, vget_low_s16(low), vget_low_s16(x_low));
    sum = vmlal_high_s16(sum, low, x_low);
    sum = vmlal_s16(sum, vget_low_s16(high), vget_low_s16(x_high));
    return vmlal_high_s16(sum, high, x_high);
}

static int32_t dot_u4(const uint8_t *row, uint32_t cols, const int16_t *x)
{
    int32x4_t sum[2] = {vdupq_n_s32(0), vdupq_n_s32(0)};
    for (uint32_t c = 0; c < cols; c += TN_PLANE_COLS, row += 64) {
        for (uint32_t j = 0; j < 64; j += 16) {
            uint8x16_t bytes = vld1q_u8(row + j);
            sum[0] = add_products(sum[0], vandq_u8(bytes, vdupq_n_u8(15)), x + c + j);
            sum[1] = add_products(sum[1], vshrq_n_u8(bytes, 4), x + c + 64 + j);
        }
    }
    return vaddvq_s32(vaddq_s32(sum[0], sum[1]));
}

static int32_t dot_u2(const uint8_t *row, uint32_t cols, const int16_t *x)
{
    const uint8x16_t three = vdupq_n_u8(3);
    int32x4_t sum[2] = {vdupq_n_s32(0), vdupq_n_s32(0)};
    for (uint32_t c = 0; c < cols; c += TN_PLANE_COLS, row += 32) {
        for (uint32_t j = 0; j < 32; j += 16) {
            uint8x16_t bytes = vld1q_u8(row + j);
            const int16_t *values = x + c + j;
            sum[0] = add_products(sum[0], vandq_u8(bytes, three), values);
            sum[1] = add_products(sum[1], vandq_u8(vshrq_n_u8(bytes, 2), three), values + 32);
            sum[0] = add_products(sum[0], vandq_u8(vshrq_n_u8(bytes, 4), three), values + 64);
            sum[1] = add_products(sum[1], vshrq_n_u8(bytes, 6), values + 96);
        }
    }
    return vaddvq_s32(vaddq_s32(sum[0], sum[1]));
}

static int32_t dot_u1(const uint8_t *row, uint32_t cols, const int16_t *x)
{
    const uint8x16_t one = vdupq_n_u8(1);
    int32x4_t sum[2] = {vdupq_n_s32(0), vdupq_n_s32(0)};
    for (uint32_t c = 0; c < cols; c += TN_PLANE_COLS, row += 16) {
        uint8x16_t bytes = vld1q_u8(row);
        for (uint32_t j = 0; j < TN_PLANE_COLS; j += 16, bytes = vshrq_n_u8(bytes, 1))
            sum[j / 16 % 2] = add_products(sum[j / 16 % 2], vandq_u8(bytes, one), x + c + j);
    }
    return vaddvq_s32(vaddq_s32(sum[0], sum[1]));
}

static TN_ALWAYS_INLINE int32_t dot(const uint8_t *row, uint32_t bits, uint32_t cols,
                                    const int16_t *x)
{
    return bits == 4   ? dot_u4(row, cols, x)
           : bits == 2 ? dot_u2(row, cols, x)
                       : dot_u1(row, cols, x);
}

PLANE_ROWS_DEFINE(neon, dot)
PLANE_UNPACK_DEFINE(neon)
