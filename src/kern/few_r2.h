/* SPDX-License-Identifier: MIT
 *
 * The loop of few_r2_i8.  Private to the few_r2_<isa>.c files, which supply the product of one row.
 * Its codes (the weights plus one) are extracted once for up to FEW_R2_MOST inputs.
 */
#ifndef TN_FEW_R2_H
#define TN_FEW_R2_H

#include "kern/switch.h"
#include "kern/ternary_layout.h"

#define FEW_R2_MOST 4u

/* A row of R2, and the rows to prefetch meanwhile. */
struct few_r2_row {
    const uint8_t *row, *near, *far;
    uint32_t n_blocks;
};

/* sums[k] = codes of the row times x[k] for k < n, a constant. */
typedef void few_r2_sum_fn(int32_t sums[FEW_R2_MOST], const struct few_r2_row *row,
                           const int8_t *const *x, uint32_t n);

/* One row times the inputs whose bits are set in `takers`; dst is that of input 0. */
static TN_ALWAYS_INLINE void few_r2_take(int32_t *dst, size_t dst_stride,
                                         const struct few_r2_row *row, uint32_t takers,
                                         const int8_t *x, size_t x_stride, const int32_t *x_sum,
                                         few_r2_sum_fn *sum)
{
    while (takers) {
        int32_t sums[FEW_R2_MOST];
        uint32_t inputs[FEW_R2_MOST], n = 0;
        const int8_t *values[FEW_R2_MOST];
        for (; takers && n < FEW_R2_MOST; takers &= takers - 1, n++) {
            inputs[n] = (uint32_t)__builtin_ctz(takers);
            values[n] = x + inputs[n] * x_stride;
        }
#define SUM(n) sum(sums, row, values, n)
        SWITCH_4(n, SUM)
#undef SUM
        for (uint32_t k = 0; k < n; k++)
            dst[inputs[k] * dst_stride] = sums[k] - x_sum[inputs[k]];
    }
}

/* Defines tn_few_r2_i8_<isa> from its few_r2_sum_fn. */
#define FEW_R2_DEFINE(isa, sum)                                                                    \
    void tn_few_r2_i8_##isa(int32_t *dst, size_t dst_stride, const struct tn_ternary *w,           \
                            const uint32_t *rows, const uint8_t *takers, uint32_t n_rows,          \
                            const int8_t *x, size_t x_stride, const int32_t *x_sum)                \
    {                                                                                              \
        const uint32_t n_near = r2_rows_of_bytes(w, TN_PREFETCH_OF(R2_FEW).l1);                    \
        const uint32_t n_far = r2_rows_of_bytes(w, TN_PREFETCH_OF(R2_FEW).l2);                     \
        for (uint32_t i = 0; i < n_rows; i++) {                                                    \
            const struct few_r2_row row = {                                                        \
                r2_row(w, rows, n_rows, i), r2_row(w, rows, n_rows, i + n_near),                   \
                r2_row(w, rows, n_rows, i + n_far), r2_blocks(w)};                                 \
            few_r2_take(dst + i, dst_stride, &row, takers[i], x, x_stride, x_sum, sum);            \
        }                                                                                          \
    }

#endif
