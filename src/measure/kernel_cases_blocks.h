/* SPDX-License-Identifier: MIT
 *
 * The cases of matrices in blocks.  Only for kernel_cases.c.
 */
#ifndef TN_KERNEL_CASES_BLOCKS_H
#define TN_KERNEL_CASES_BLOCKS_H

#include "measure/kernel_cases.h"

typedef uint64_t tn_case_fn(struct tn_case_work *work, const struct tn_kernels *kernels);
tn_case_fn tn_case_gemv_blocks_x8, tn_case_gemm_blocks_x8, tn_case_gemv_blocks_x16,
    tn_case_gemm_blocks_x16, tn_case_gemv_blocks_f32;

/* Fills work->blocks [TN_CASE_BLOCKS_BYTES], which stands in for every layout that the model does
 * not have. */
#define TN_CASE_BLOCKS_ROWS TN_TILE_ROWS
#define TN_CASE_BLOCKS_COLS TN_SPAN_COLS
#define TN_CASE_BLOCKS_BYTES 4352u
void tn_case_fill_blocks(struct tn_case_work *work);

#endif
