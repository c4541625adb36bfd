/* SPDX-License-Identifier: MIT
 *
 * The functions that the rows of the table in format.c name.
 */
#ifndef TN_FORMAT_ROWS_H
#define TN_FORMAT_ROWS_H

#include "model/format.h"

/* format_ternary.c */
tn_mul_fn tn_mul_t2_i8, tn_mul_r2_i8, tn_mul_c2_i8, tn_mul_t2_x16, tn_mul_t2_x8,
    tn_mul_t2_f32;
tn_mul_rows_fn tn_mul_rows_r2_i8;
tn_mul_rows_few_fn tn_mul_rows_few_r2_i8;
tn_mul_cols_fn tn_mul_cols_c2_i8;
tn_unpack_row_fn tn_unpack_row_t2, tn_unpack_row_t2_scaled;

/* format_table.c */
tn_mul_fn tn_mul_f32, tn_mul_f16, tn_mul_bf16, tn_mul_q8, tn_mul_planes;
tn_unpack_row_fn tn_unpack_row_f32_table, tn_unpack_row_f16, tn_unpack_row_bf16, tn_unpack_row_q8,
    tn_unpack_row_planes;

#endif
