/* SPDX-License-Identifier: MIT
 *
 * Logits, NEON.  The 16 lanes of the lane order are four registers.  A tile is 1 row x up to 4
 * tokens; the weights are widened once for all.
 *
 * Per 4 weights and token: widen, convert, multiply, add.
 */
#include <string.h>

#include "kern/arm/lanes_neon.h"
#include "kern/head_gemv.h"
#include "kern/prefetch.h"

/* Loads 16 weights as f32. */
typedef void load16_fn(float32x4_t out[4], const void *w);

static TN_ALWAYS_INLINE void load16_q8(float32x4_t out[4], const void *w)
{
    int8x16_t bytes = vld1q_s8(w);
    int16x8_t low = vmovl_s8(vget_low_s8(bytes)), high = vmovl_s8(vget_high_s8(bytes));
    out[0] = vcvtq_f32_s32(vmovl_s16(vget_low_s16(low)));
    out[1] = vcvtq_f32_s32(vmovl_s16(vget_high_s16(low)));
    out[2] = vcvtq_f32_s32(vmovl_s16(vget_low_s16(high)));
    out[3] = vcvtq_f32_s32(vmovl_s16(vget_high_s16(high)));
}

static TN_ALWAYS_INLINE void load16_f32(float32x4_t out[4], const void *w)
{
    for (uint32_t j = 0; j < 4; j++)
        out[j] = vld1q_f32((const float *)w + 4 * j);
}

static TN_ALWAYS_INLINE void load16_f16(float32x4_t out[4], const void *w)
{
    for (uint32_t j = 0; j < 4; j++)
        out[j] = load4_f16((const uint16_t *)w + 4 * j);
}

static TN_ALWAYS_INLINE void load16_bf16(float32x4_t out[4], const void *w)
{
    for (uint32_t j = 0; j < 4; j++)
        out[j] = vreinterpretq_f32_u32(vshll_n_u16(vld1_u16((const uint16_t *)w + 4 * j), 16));
}

static TN_ALWAYS_INLINE void tile_step(float32x4_t sum[4][4], load16_fn *load16, const void *w,
                                       const float *x, size_t x_stride, uint32_t n_tokens)
{
    float32x4_t weights[4];
    load16(weights, w);
    for (uint32_t t = 0; t < n_tokens; t++)
        for (uint32_t j = 0; j < 4; j++)
            sum[t][j] = vaddq_f32(sum[t][j],
                                  vmulq_f32(weights[j], vld1q_f32(x + t * x_stride + 4 * j)));
}

/* One row; n_tokens is at most 4, a constant after inlining. */
static TN_ALWAYS_INLINE void tile(float *dst, size_t dst_stride, load16_fn *load16, const char *row,
                                  size_t value_bytes, float scale, uint32_t cols, const float *x,
                                  size_t x_stride, uint32_t n_tokens)
{
    float32x4_t sum[4][4];
    for (uint32_t t = 0; t < 4; t++)
        for (uint32_t j = 0; j < 4; j++)
            sum[t][j] = vdupq_n_f32(0.0f);
    uint32_t c = 0;
    for (; c + 16 <= cols; c += 16) {
        tn_request(row + c * value_bytes, TN_PREFETCH_OF(FLOATS));
        tile_step(sum, load16, row + c * value_bytes, x + c, x_stride, n_tokens);
    }
    if (c < cols) { /* zero weights and inputs leave a lane unchanged */
        char last_w[64] = {0};
        float last_x[4][16] = {{0}};
        memcpy(last_w, row + c * value_bytes, (cols - c) * value_bytes);
        for (uint32_t t = 0; t < n_tokens; t++)
            memcpy(last_x[t], x + t * x_stride + c, (cols - c) * sizeof x[0]);
        tile_step(sum, load16, last_w, last_x[0], 16, n_tokens);
    }
    for (uint32_t t = 0; t < n_tokens; t++)
        dst[t * dst_stride] = tree_sum(sum[t]) * scale;
}

static TN_ALWAYS_INLINE void gemv(const struct logits *l, load16_fn *load16,
                                  const struct matrix *m, uint32_t n_rows)
{
    for (uint32_t r = 0; r < n_rows; r++) {
        const char *row = m->data + r * m->row_bytes;
        float scale = l->scales ? l->scales[r] : 1.0f;
        uint32_t t = 0;
        for (; t + 4 <= l->n_tokens; t += 4)
            tile(l->dst + t * l->dst_stride + r, l->dst_stride, load16, row, m->value_bytes, scale,
                 m->cols, l->x + t * l->x_stride, l->x_stride, 4);
        for (; t < l->n_tokens; t++)
            tile(l->dst + t * l->dst_stride + r, l->dst_stride, load16, row, m->value_bytes, scale,
                 m->cols, l->x + t * l->x_stride, l->x_stride, 1);
    }
}

HEAD_DEFINE_Q8(neon, load16_q8)
HEAD_DEFINE(neon, f32, float, load16_f32)
HEAD_DEFINE(neon, f16, uint16_t, load16_f16)
HEAD_DEFINE(neon, bf16, uint16_t, load16_bf16)
