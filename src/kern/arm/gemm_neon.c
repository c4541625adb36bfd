/* SPDX-License-Identifier: MIT
 *
 * Ternary matrix times many int8 vectors for NEON.
 *
 * `smlal` multiplies 8 codes (0, 1, 2) with 8 inputs, at most 2 * 127 = 254 in magnitude, and adds
 * them in int16: over the 64 groups of a panel 64 * 254 = 16256 < 32768.  Then the four columns of
 * a row are added in int32.  8 rows x up to 4 tokens: 2 loads of codes per group, and 1 load and 4
 * smlal for each token's 32 multiply-adds.
 */
#include "kern/arm/gemm_unpack_neon.h"
#include "kern/x16_gemm.h"
#include "kern/x8_gemm.h"

#define PANEL_COLS 256u
_Static_assert(PANEL_COLS / 4 * 254 <= 32767, "a panel's products fit int16");
#define TILE_TOKENS 4u

int32_t tn_sum_i8_neon(const int8_t *x, uint32_t n)
{
    int32x4_t sum = vdupq_n_s32(0);
    for (uint32_t i = 0; i < n; i += 16)
        sum = vpadalq_s16(sum, vpaddlq_s8(vld1q_s8(x + i)));
    return vaddvq_s32(sum);
}

/* The 4 sums of rows 0, 1 (in lo) and 2, 3 (in hi). */
static TN_ALWAYS_INLINE int32x4_t add_columns(int16x8_t lo, int16x8_t hi)
{
    return vpaddq_s32(vpaddlq_s16(lo), vpaddlq_s16(hi));
}

/* n (a constant) tokens x 8 rows. */
static TN_ALWAYS_INLINE void multiply_rows(int32_t *dst, size_t dst_stride, const uint8_t *panel,
                                           uint32_t n_groups, const int8_t *x, size_t x_stride,
                                           const int32_t *x_sum, const uint32_t n)
{
    int16x8_t sum[TILE_TOKENS][4];
#pragma GCC unroll 4
    for (uint32_t t = 0; t < n; t++)
        sum[t][0] = sum[t][1] = sum[t][2] = sum[t][3] = vdupq_n_s16(0);
    for (uint32_t g = 0; g < n_groups; g++, panel += 256, x += 4) {
        const int8x16_t w0 = vreinterpretq_s8_u8(vld1q_u8(panel));
        const int8x16_t w1 = vreinterpretq_s8_u8(vld1q_u8(panel + 16));
#pragma GCC unroll 4
        for (uint32_t t = 0; t < n; t++) {
            const int8x16_t v =
                vreinterpretq_s8_u32(vdupq_n_u32(tn_load_u32(x + t * x_stride)));
            sum[t][0] = vmlal_s8(sum[t][0], vget_low_s8(w0), vget_low_s8(v));
            sum[t][1] = vmlal_high_s8(sum[t][1], w0, v);
            sum[t][2] = vmlal_s8(sum[t][2], vget_low_s8(w1), vget_low_s8(v));
            sum[t][3] = vmlal_high_s8(sum[t][3], w1, v);
        }
    }
#pragma GCC unroll 4
    for (uint32_t t = 0; t < n; t++)
        for (uint32_t i = 0; i < 2; i++) {
            int32_t *out = dst + t * dst_stride + 4 * i;
            const int32x4_t first = x_sum ? vdupq_n_s32(-x_sum[t]) : vld1q_s32(out);
            vst1q_s32(out, vaddq_s32(first, add_columns(sum[t][2 * i], sum[t][2 * i + 1])));
        }
}

static void multiply(int32_t *dst, size_t dst_stride, const uint8_t *panel, uint32_t n_groups,
                     const int8_t *x, size_t x_stride, const int32_t *x_sum, uint32_t n_tokens)
{
#define ROWS(n)                                                                                    \
    multiply_rows(dst + r, dst_stride, panel + 4 * r, n_groups, x, x_stride, x_sum, n)
    for (uint32_t r = 0; r < GEMM_PANEL_ROWS; r += 8)
        SWITCH_4(n_tokens, ROWS)
#undef ROWS
}

static const struct gemm_level level = {PANEL_COLS, TILE_TOKENS, multiply};

GEMM_DEFINE_ALL(neon)
X16_GEMM_DEFINE(neon)
X8_GEMM_DEFINE(neon)
