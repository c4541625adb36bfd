/* SPDX-License-Identifier: MIT
 *
 * The formats of matrices in f32, f16 and bf16, row after row: inputs in f32, sums in lane order,
 * no scales.  All products use the gemv kernel.
 */
#include "base/half.h"
#include "model/acts.h"
#include "model/formats/formats.h"

#define FLOATS(name, id, type, to_f32)                                                             \
    static const type *row_##name(const struct tn_matrix *w, uint32_t row)                         \
    {                                                                                              \
        return (const type *)(const void *)w->data + (size_t)row * w->cols;                        \
    }                                                                                              \
    static void mul_##name(const struct tn_mul *m)                                                 \
    {                                                                                              \
        const struct tn_sums sums = tn_sums_or_dst(m);                                             \
        m->worker->kernels->gemv_##name##_f32(sums.y, sums.stride, row_##name(m->w, m->row),       \
                                              m->n_rows, m->w->cols, m->x->f32, m->x->f32_stride,  \
                                              m->x->n);                                            \
        tn_sums_finish(&sums, m);                                                                  \
    }                                                                                              \
    static void unpack_##name(float *dst, const struct tn_matrix *w, uint32_t row,                 \
                              const struct tn_worker *worker)                                      \
    {                                                                                              \
        (void)worker;                                                                              \
        for (uint32_t i = 0; i < w->cols; i++)                                                     \
            dst[i] = to_f32(row_##name(w, row)[i]);                                                \
    }                                                                                              \
    const struct tn_format tn_format_##name = {                                                    \
        .layout = TERN_LAYOUT_##id,                                                                \
        .scale_kinds = 1u << TERN_SCALE_NONE,                                                      \
        .act = TN_ACT_F32,                                                                         \
        .mul_one = mul_##name,                                                                     \
        .mul_panel = mul_##name,                                                                   \
        .unpack_row = unpack_##name,                                                               \
        .find_bad = tn_find_bad_##name,                                                            \
    };

FLOATS(f32, F32, float, )
FLOATS(f16, F16, uint16_t, tn_f16_to_f32)
FLOATS(bf16, BF16, uint16_t, tn_bf16_to_f32)
