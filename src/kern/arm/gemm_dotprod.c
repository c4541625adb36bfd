/* SPDX-License-Identifier: MIT
 *
 * Ternary matrix times many int8 vectors for the dot-product extension of Armv8.2.
 *
 * `sdot` adds 4 columns of 4 rows; one register holds 4 groups of a token's inputs, which are
 * selected by lane.  4 vectors of 4 rows x up to 4 tokens are 16 accumulators; 4 groups take 16 + 4
 * loads and 64 dot products of 16 multiply-adds.
 */
#include "kern/arm/gemm_unpack_neon.h"
#include "kern/x16_gemm.h"
#include "kern/x8_gemm.h"

#define TILE_TOKENS 4u

static TN_ALWAYS_INLINE int8x16_t weights(const uint8_t *panel)
{
    return vreinterpretq_s8_u8(vld1q_u8(panel));
}

/* Adds one group, whose inputs are lane `lane` (a constant) of v[t]. */
#define ADD_GROUP(lane)                                                                            \
    do {                                                                                           \
        const uint8_t *group = panel + 256 * (lane);                                               \
        const int8x16_t w0 = weights(group), w1 = weights(group + 16);                             \
        const int8x16_t w2 = weights(group + 32), w3 = weights(group + 48);                        \
        _Pragma("GCC unroll 4") for (uint32_t t = 0; t < n; t++)                                   \
        {                                                                                          \
            sum[t][0] = vdotq_laneq_s32(sum[t][0], w0, v[t], lane);                                \
            sum[t][1] = vdotq_laneq_s32(sum[t][1], w1, v[t], lane);                                \
            sum[t][2] = vdotq_laneq_s32(sum[t][2], w2, v[t], lane);                                \
            sum[t][3] = vdotq_laneq_s32(sum[t][3], w3, v[t], lane);                                \
        }                                                                                          \
    } while (0)

/* n (a constant) tokens x 16 rows.  Inputs are padded to 256 columns; where the weights end inside
 * four groups, the remaining groups are added one by one. */
static TN_ALWAYS_INLINE void multiply_rows(int32_t *dst, size_t dst_stride, const uint8_t *panel,
                                           uint32_t n_groups, const int8_t *x, size_t x_stride,
                                           const int32_t *x_sum, const uint32_t n)
{
    int32x4_t sum[TILE_TOKENS][4];
    int8x16_t v[TILE_TOKENS];
#pragma GCC unroll 4
    for (uint32_t t = 0; t < n; t++)
        for (uint32_t i = 0; i < 4; i++)
            sum[t][i] = x_sum ? vdupq_n_s32(-x_sum[t]) : vld1q_s32(dst + t * dst_stride + 4 * i);
    for (; n_groups >= 4; n_groups -= 4, panel += 4 * 256, x += 16) {
#pragma GCC unroll 4
        for (uint32_t t = 0; t < n; t++)
            v[t] = vld1q_s8(x + t * x_stride);
        ADD_GROUP(0);
        ADD_GROUP(1);
        ADD_GROUP(2);
        ADD_GROUP(3);
    }
    for (; n_groups > 0; n_groups--, panel += 256, x += 4) {
#pragma GCC unroll 4
        for (uint32_t t = 0; t < n; t++)
            v[t] = vreinterpretq_s8_u32(vdupq_n_u32(tn_load_u32(x + t * x_stride)));
        ADD_GROUP(0);
    }
#pragma GCC unroll 4
    for (uint32_t t = 0; t < n; t++)
        for (uint32_t i = 0; i < 4; i++)
            vst1q_s32(dst + t * dst_stride + 4 * i, sum[t][i]);
}

static void multiply(int32_t *dst, size_t dst_stride, const uint8_t *panel, uint32_t n_groups,
                     const int8_t *x, size_t x_stride, const int32_t *x_sum, uint32_t n_tokens)
{
#define ROWS(n)                                                                                    \
    multiply_rows(dst + r, dst_stride, panel + 4 * r, n_groups, x, x_stride, x_sum, n)
    for (uint32_t r = 0; r < GEMM_PANEL_ROWS; r += 16)
        SWITCH_4(n_tokens, ROWS)
#undef ROWS
}

static const struct gemm_level level = {512, TILE_TOKENS, multiply};

GEMM_DEFINE_ALL(dotprod)
X16_GEMM_DEFINE(dotprod)
X8_GEMM_DEFINE(dotprod)
