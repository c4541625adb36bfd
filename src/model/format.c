/* SPDX-License-Identifier: MIT
 *
 * The table of formats.
 */
#include "model/format_rows.h"

#include <stddef.h>

#include "base/compiler.h"

static const struct tn_format t2_i8 = {.act = TN_ACT_I8, .mul = tn_mul_t2_i8,
                                       .unpack_row = tn_unpack_row_t2};
static const struct tn_format r2_i8 = {.act = TN_ACT_I8, .mul = tn_mul_r2_i8,
                                       .mul_rows = tn_mul_rows_r2_i8,
                                       .mul_rows_few = tn_mul_rows_few_r2_i8};
static const struct tn_format c2_i8 = {.act = TN_ACT_I8, .mul = tn_mul_c2_i8,
                                       .mul_cols = tn_mul_cols_c2_i8};
static const struct tn_format t2_f32 = {.act = TN_ACT_F32, .mul = tn_mul_t2_f32,
                                        .unpack_row = tn_unpack_row_t2_scaled};
static const struct tn_format t2_x8 = {.act = TN_ACT_X8, .mul = tn_mul_t2_x8,
                                       .unpack_row = tn_unpack_row_t2_scaled};
static const struct tn_format t2_x16 = {.act = TN_ACT_X16, .mul = tn_mul_t2_x16,
                                        .unpack_row = tn_unpack_row_t2_scaled, .exact = &t2_f32,
                                        .coarse = &t2_x8};
static const struct tn_format f32 = {.act = TN_ACT_F32, .mul = tn_mul_f32,
                                     .unpack_row = tn_unpack_row_f32_table};
static const struct tn_format f16 = {.act = TN_ACT_F32, .mul = tn_mul_f16,
                                     .unpack_row = tn_unpack_row_f16};
static const struct tn_format bf16 = {.act = TN_ACT_F32, .mul = tn_mul_bf16,
                                      .unpack_row = tn_unpack_row_bf16};
static const struct tn_format q8 = {.act = TN_ACT_F32, .mul = tn_mul_q8,
                                    .unpack_row = tn_unpack_row_q8};
static const struct tn_format planes = {.act = TN_ACT_F32, .mul = tn_mul_planes,
                                        .unpack_row = tn_unpack_row_planes,
                                        .is_searchable = true};

static const struct {
    uint32_t layout, scale_kind;
    const struct tn_format *format;
} formats[] = {
    {TERN_LAYOUT_T2, TERN_SCALE_TENSOR, &t2_i8},
    {TERN_LAYOUT_R2, TERN_SCALE_TENSOR, &r2_i8},
    {TERN_LAYOUT_C2, TERN_SCALE_TENSOR, &c2_i8},
    {TERN_LAYOUT_T2, TERN_SCALE_COL_GROUP, &t2_x16},
    {TERN_LAYOUT_T2, TERN_SCALE_COL_GROUP_F16, &t2_x16},
    {TERN_LAYOUT_F32, TERN_SCALE_NONE, &f32},
    {TERN_LAYOUT_F16, TERN_SCALE_NONE, &f16},
    {TERN_LAYOUT_BF16, TERN_SCALE_NONE, &bf16},
    {TERN_LAYOUT_Q8, TERN_SCALE_ROW, &q8},
    {TERN_LAYOUT_Q8_PLANES, TERN_SCALE_ROW, &planes},
    {TERN_LAYOUT_Q6, TERN_SCALE_ROW, &planes},
    {TERN_LAYOUT_Q4, TERN_SCALE_ROW, &planes},
};

const struct tn_format *tn_format_find(uint32_t layout, uint32_t scale_kind)
{
    for (size_t i = 0; i < TN_COUNT_OF(formats); i++)
        if (formats[i].layout == layout && formats[i].scale_kind == scale_kind)
            return formats[i].format;
    return NULL;
}
