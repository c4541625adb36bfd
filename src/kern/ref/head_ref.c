/* SPDX-License-Identifier: MIT
 *
 * Logits in portable C: one lane-order dot product per row and token.  The specification of
 * gemv_q8, gemv_f16, gemv_bf16 and gemv_f32 (kern.h).
 */
#include "base/half.h"
#include "kern/kern.h"

static float dot_q8(const int8_t *w, const float *x, uint32_t cols)
{
    float lane[16] = {0};
    uint32_t c = 0;
    for (; c + 16 <= cols; c += 16)
        for (uint32_t j = 0; j < 16; j++)
            lane[j] += (float)w[c + j] * x[c + j];
    for (uint32_t j = 0; c + j < cols; j++)
        lane[j] += (float)w[c + j] * x[c + j];
    return tn_tree_sum_f32(lane);
}

static float dot_f16(const uint16_t *w, const float *x, uint32_t cols)
{
    float lane[16] = {0};
    for (uint32_t c = 0; c < cols; c++)
        lane[c % 16] += tn_f16_to_f32(w[c]) * x[c];
    return tn_tree_sum_f32(lane);
}

static float dot_bf16(const uint16_t *w, const float *x, uint32_t cols)
{
    float lane[16] = {0};
    uint32_t c = 0;
    for (; c + 16 <= cols; c += 16)
        for (uint32_t j = 0; j < 16; j++)
            lane[j] += tn_bf16_to_f32(w[c + j]) * x[c + j];
    for (uint32_t j = 0; c + j < cols; j++)
        lane[j] += tn_bf16_to_f32(w[c + j]) * x[c + j];
    return tn_tree_sum_f32(lane);
}

static float dot_f32(const float *w, const float *x, uint32_t cols)
{
    float lane[16] = {0};
    uint32_t c = 0;
    for (; c + 16 <= cols; c += 16)
        for (uint32_t j = 0; j < 16; j++)
            lane[j] += w[c + j] * x[c + j];
    for (uint32_t j = 0; c + j < cols; j++)
        lane[j] += w[c + j] * x[c + j];
    return tn_tree_sum_f32(lane);
}

void tn_gemv_q8_f32_ref(float *dst, size_t dst_stride, const int8_t *w, const float *scales,
                        uint32_t n_rows, uint32_t cols, const float *x, size_t x_stride,
                        uint32_t n_tokens)
{
    for (uint32_t r = 0; r < n_rows; r++)
        for (uint32_t t = 0; t < n_tokens; t++)
            dst[t * dst_stride + r] =
                dot_q8(w + (size_t)r * cols, x + t * x_stride, cols) * scales[r];
}

void tn_gemv_f32_f32_ref(float *dst, size_t dst_stride, const float *w, uint32_t n_rows,
                         uint32_t cols, const float *x, size_t x_stride, uint32_t n_tokens)
{
    for (uint32_t r = 0; r < n_rows; r++)
        for (uint32_t t = 0; t < n_tokens; t++)
            dst[t * dst_stride + r] = dot_f32(w + (size_t)r * cols, x + t * x_stride, cols);
}

void tn_gemv_f16_f32_ref(float *dst, size_t dst_stride, const uint16_t *w, uint32_t n_rows,
                         uint32_t cols, const float *x, size_t x_stride, uint32_t n_tokens)
{
    for (uint32_t r = 0; r < n_rows; r++)
        for (uint32_t t = 0; t < n_tokens; t++)
            dst[t * dst_stride + r] = dot_f16(w + (size_t)r * cols, x + t * x_stride, cols);
}

void tn_gemv_bf16_f32_ref(float *dst, size_t dst_stride, const uint16_t *w, uint32_t n_rows,
                          uint32_t cols, const float *x, size_t x_stride, uint32_t n_tokens)
{
    for (uint32_t r = 0; r < n_rows; r++)
        for (uint32_t t = 0; t < n_tokens; t++)
            dst[t * dst_stride + r] = dot_bf16(w + (size_t)r * cols, x + t * x_stride, cols);
}
