/* SPDX-License-Identifier: MIT
 *
 * Ternary matrix times many int8 vectors for the matrix extension of Armv8.6.
 *
 * `smmla` multiplies 2 rows x 8 columns with 8 columns x 2 tokens.  Two groups of the panel, zipped
 * by 4 bytes, are pairs of rows with 8 columns.  8 rows x up to 8 tokens are 4 x 4 accumulators of
 * 2 x 2 sums; 8 columns take 4 + 8 loads, 4 + 4 zips and 16 products of 32 multiply-adds.
 */
#include "kern/arm/gemm_unpack_neon.h"
#include "kern/x16_gemm.h"
#include "kern/x8_gemm.h"

#define TILE_TOKENS 8u

static TN_ALWAYS_INLINE int8x16_t zip_low(uint8x16_t a, uint8x16_t b)
{
    return vreinterpretq_s8_u32(vzip1q_u32(vreinterpretq_u32_u8(a), vreinterpretq_u32_u8(b)));
}

static TN_ALWAYS_INLINE int8x16_t zip_high(uint8x16_t a, uint8x16_t b)
{
    return vreinterpretq_s8_u32(vzip2q_u32(vreinterpretq_u32_u8(a), vreinterpretq_u32_u8(b)));
}

/* sum[p]: rows 2 p and 2 p + 1 of two tokens, [row][token] -> 8 sums of each. */
static TN_ALWAYS_INLINE void split_tokens(int32x4_t out[2][2], const int32x4_t sum[4])
{
    for (int half = 0; half < 2; half++) {
        out[0][half] = vuzp1q_s32(sum[2 * half], sum[2 * half + 1]);
        out[1][half] = vuzp2q_s32(sum[2 * half], sum[2 * half + 1]);
    }
}

/* n_pairs (a constant) pairs of tokens x 8 rows.  An odd last token is paired with itself. */
static TN_ALWAYS_INLINE void multiply_rows(int32_t *dst, size_t dst_stride, const uint8_t *panel,
                                           uint32_t n_groups, const int8_t *x, size_t x_stride,
                                           const int32_t *x_sum, uint32_t n_tokens,
                                           const uint32_t n_pairs)
{
    int32x4_t sum[TILE_TOKENS / 2][4];
#pragma GCC unroll 4
    for (uint32_t p = 0; p < n_pairs; p++)
        sum[p][0] = sum[p][1] = sum[p][2] = sum[p][3] = vdupq_n_s32(0);
    const size_t last = (n_tokens - 1) * x_stride;
    for (uint32_t g = 0; g < n_groups; g += 2, panel += 512, x += 8) {
        const uint8x16_t a0 = vld1q_u8(panel), a1 = vld1q_u8(panel + 16);
        /* The last group may have no partner; zeros replace it. */
        const uint8x16_t b0 = g + 1 < n_groups ? vld1q_u8(panel + 256) : vdupq_n_u8(0);
        const uint8x16_t b1 = g + 1 < n_groups ? vld1q_u8(panel + 272) : vdupq_n_u8(0);
        const int8x16_t w[4] = {zip_low(a0, b0), zip_high(a0, b0), zip_low(a1, b1),
                                zip_high(a1, b1)};
#pragma GCC unroll 4
        for (uint32_t p = 0; p < n_pairs; p++) {
            const int8x16_t v = vcombine_s8(vld1_s8(x + 2 * p * x_stride),
                                            vld1_s8(x + TN_MIN((2 * p + 1) * x_stride, last)));
#pragma GCC unroll 4
            for (uint32_t i = 0; i < 4; i++)
                sum[p][i] = vmmlaq_s32(sum[p][i], w[i], v);
        }
    }
#pragma GCC unroll 4
    for (uint32_t p = 0; p < n_pairs; p++) {
        int32x4_t split[2][2];
        split_tokens(split, sum[p]);
        for (uint32_t t = 0; t < 2 && 2 * p + t < n_tokens; t++)
            for (uint32_t half = 0; half < 2; half++) {
                int32_t *out = dst + (2 * p + t) * dst_stride + 4 * half;
                const int32x4_t first = x_sum ? vdupq_n_s32(-x_sum[2 * p + t]) : vld1q_s32(out);
                vst1q_s32(out, vaddq_s32(first, split[t][half]));
            }
    }
}

static void multiply(int32_t *dst, size_t dst_stride, const uint8_t *panel, uint32_t n_groups,
                     const int8_t *x, size_t x_stride, const int32_t *x_sum, uint32_t n_tokens)
{
#define ROWS(n)                                                                                    \
    multiply_rows(dst + r, dst_stride, panel + 4 * r, n_groups, x, x_stride, x_sum, n_tokens, n)
    for (uint32_t r = 0; r < GEMM_PANEL_ROWS; r += 8)
        SWITCH_4((n_tokens + 1) / 2, ROWS)
#undef ROWS
}

static const struct gemm_level level = {512, TILE_TOKENS, multiply};

GEMM_DEFINE_ALL(i8mm)
X16_GEMM_DEFINE(i8mm)
X8_GEMM_DEFINE(i8mm)
