/* SPDX-License-Identifier: MIT
 *
 * Where the rows of a tensor (a vector: its values) are among those of its source: parts of fused
 * tensors are read in place, and heads put into the order of this program.
 */
#ifndef TN_ROW_ORDER_H
#define TN_ROW_ORDER_H

#include <stdint.h>

/* Row r is first + r / run * step + r % run: parts that follow each other, or take turns. */
struct tn_row_order {
    uint32_t first, run, step;
    /* Not 0: in heads of so many rows, of which run holds whole ones, pairs (2j, 2j + 1) of the
     * source belong to (j, j + permuted_dim / 2). */
    uint32_t permuted_dim;
};

/* Row r as if heads were in order. */
static inline uint32_t tn_row_order_plain(const struct tn_row_order *order, uint32_t r)
{
    return order->first + r / order->run * order->step + r % order->run;
}

/* The row of the same part that holds row r. */
static inline uint32_t tn_permuted_row(uint32_t r, uint32_t dim)
{
    const uint32_t in_head = r % dim, half = dim / 2;
    return r - in_head + 2 * (in_head % half) + in_head / half;
}

static inline uint32_t tn_row_order_get(const struct tn_row_order *order, uint32_t r)
{
    return tn_row_order_plain(order, order->permuted_dim ? tn_permuted_row(r, order->permuted_dim)
                                                         : r);
}

#endif
