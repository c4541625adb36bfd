/* SPDX-License-Identifier: MIT
 *
 * The loop of gemm_t2_i8 for up to 8 inputs: visits tiles in file order, so that the weights are
 * read once.  Private to the gemm_few_<isa>.h files, which prepare and multiply the inputs.
 */
#ifndef TN_GEMM_FEW_H
#define TN_GEMM_FEW_H

#include "kern/ternary_layout.h"

#define FEW_TOKENS 8u /* the maximum number of inputs */

/* Prepares n_runs runs of 128 columns of the inputs for few_tile_fn. */
typedef void few_prepare_fn(int32_t *dst, const int8_t *x, size_t x_stride, uint32_t n_runs,
                            uint32_t n_tokens);
/* dst[t * dst_stride + i] += codes of one run of a tile times the prepared inputs.  The level
 * decides the order i of the 64 rows. */
typedef void few_tile_fn(int32_t *dst, size_t dst_stride, const uint8_t *run, const int32_t *x,
                         uint32_t n_tokens);

struct few_level {
    uint32_t n_runs; /* prepared together */
    uint32_t x_step; /* dwords per run of one input, prepared */
    few_prepare_fn *prepare;
    few_tile_fn *tile;
};

/* Multiplies the rows [row_begin, row_end) by the n prepared runs from number i_run on. */
static TN_ALWAYS_INLINE void few_runs(const struct few_level *level, int32_t *dst,
                                      size_t dst_stride, const struct tn_ternary *w,
                                      uint32_t row_begin, uint32_t row_end, uint32_t i_run,
                                      uint32_t n, const int32_t *x, uint32_t n_tokens)
{
    for (uint32_t row = row_begin, end; row < row_end; row = end) {
        end = TN_MIN((row / TERN_T2_BAND_ROWS + 1) * TERN_T2_BAND_ROWS, row_end);
        for (uint32_t k = 0; k < n; k++)
            for (uint32_t r = row; r < end; r += TERN_T2_TILE_ROWS)
                level->tile(dst + (r - row_begin), dst_stride, t2_run(w, r, i_run + k),
                            x + (size_t)k * level->x_step * n_tokens, n_tokens);
    }
}

/* gemm_t2_i8 for n_tokens <= FEW_TOKENS, except for the order of rows inside a tile. */
static TN_ALWAYS_INLINE void few_gemm(const struct few_level *level, int32_t *dst,
                                      size_t dst_stride, const struct tn_ternary *w,
                                      uint32_t row_begin, uint32_t row_end, const int8_t *x,
                                      size_t x_stride, const int32_t *x_sum, uint32_t n_tokens,
                                      int32_t *prepared)
{
    row_end = TN_MIN(row_end, (uint32_t)tn_align_up(w->rows, TERN_T2_TILE_ROWS));
    if (row_begin >= row_end)
        return;
    for (uint32_t t = 0; t < n_tokens; t++)
        for (uint32_t r = 0; r < row_end - row_begin; r++)
            dst[t * dst_stride + r] = -x_sum[t];
    for (uint32_t i = 0, n; i < t2_runs(w); i += n) {
        n = TN_MIN(t2_runs(w) - i, level->n_runs);
        level->prepare(prepared, x + (size_t)i * TERN_T2_COL_ALIGN, x_stride, n, n_tokens);
        few_runs(level, dst, dst_stride, w, row_begin, row_end, i, n, prepared, n_tokens);
    }
}

#endif
