/* SPDX-License-Identifier: MIT
 *
 * The entry points of gemv_{q8,f32,f16,bf16}_f32.  Private to the head_<isa>.c files, each of which
 * defines before HEAD_DEFINE:
 *
 *   gemv(l, load, m, n_rows)  the logits of n_rows rows; inlined for each `load`
 */
#ifndef TN_HEAD_GEMV_H
#define TN_HEAD_GEMV_H

#include "kern/kern.h"

struct matrix {
    const char *data;
    size_t value_bytes, row_bytes;
    uint32_t cols;
};

/* The other parameters of a call: logits of n_tokens hidden states. */
struct logits {
    float *dst;
    size_t dst_stride;
    const float *scales; /* NULL: none */
    const float *x;
    size_t x_stride;
    uint32_t n_tokens;
};

/* Defines tn_gemv_<name>_f32_<isa> for weights of a type that `load` widens. */
#define HEAD_DEFINE(isa, name, type, load)                                                         \
    void tn_gemv_##name##_f32_##isa(float *dst, size_t dst_stride, const type *w, uint32_t n_rows, \
                                    uint32_t cols, const float *x, size_t x_stride,                \
                                    uint32_t n_tokens)                                             \
    {                                                                                              \
        const struct matrix m = {(const char *)w, sizeof *w, cols * sizeof *w, cols};              \
        const struct logits l = {dst, dst_stride, NULL, x, x_stride, n_tokens};                    \
        gemv(&l, load, &m, n_rows);                                                                \
    }

#define HEAD_DEFINE_Q8(isa, load)                                                                  \
    void tn_gemv_q8_f32_##isa(float *dst, size_t dst_stride, const int8_t *w, const float *scales, \
                              uint32_t n_rows, uint32_t cols, const float *x, size_t x_stride,     \
                              uint32_t n_tokens)                                                   \
    {                                                                                              \
        const struct matrix m = {(const char *)w, 1, cols, cols};                                  \
        const struct logits l = {dst, dst_stride, scales, x, x_stride, n_tokens};                  \
        gemv(&l, load, &m, n_rows);                                                                \
    }

#endif
