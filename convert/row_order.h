/* SPDX-License-Identifier: MIT
 *
 * Maps the rows of a tensor (a vector: its values) to those of its source: reads sections of fused
 * tensors without copying them first, and reorders heads.
 */
#ifndef TN_ROW_ORDER_H
#define TN_ROW_ORDER_H

#include <stdint.h>

/* The next `rows` rows of the tensor: row r of them is row first + r / run * step + r % run of the
 * source, so that they are consecutive, or alternate with those of other sections. */
struct tn_row_section {
    uint32_t rows, first, run, step;
};

#define TN_MAX_ROW_SECTIONS 3u

struct tn_row_order {
    uint32_t first; /* of the source, added to all: the offset of a matrix in a stack */
    struct tn_row_section sections[TN_MAX_ROW_SECTIONS]; /* rows 0: no more */
    /* permuted_dim not 0: in the first permuted_dim rows of each head of head_dim rows, pairs (2j,
     * 2j + 1) of the source become (j, j + permuted_dim / 2).  There is one section, whose run is
     * whole heads. */
    uint32_t head_dim, permuted_dim;
};

/* Rows [first, first + rows) of the source. */
static inline struct tn_row_order tn_row_order_straight(uint32_t first, uint32_t rows)
{
    return (struct tn_row_order){.sections = {{rows, first, rows, rows}}};
}

/* The source row of row r, ignoring the permutation; *n_run: number of rows from r on that are
 * consecutive in the source. */
static inline uint32_t tn_row_order_run(const struct tn_row_order *order, uint32_t r,
                                        uint32_t *n_run)
{
    const struct tn_row_section *s = order->sections;
    while (r >= s->rows)
        r -= s++->rows;
    *n_run = s->run - r % s->run;
    return order->first + s->first + r / s->run * s->step + r % s->run;
}

/* The row of the same section that is stored at row r. */
static inline uint32_t tn_permuted_row(const struct tn_row_order *order, uint32_t r)
{
    const uint32_t in_head = r % order->head_dim, half = order->permuted_dim / 2;
    if (in_head >= order->permuted_dim)
        return r;
    return r - in_head + 2 * (in_head % half) + in_head / half;
}

static inline uint32_t tn_row_order_get(const struct tn_row_order *order, uint32_t r)
{
    uint32_t n_run;
    return tn_row_order_run(order, order->permuted_dim ? tn_permuted_row(order, r) : r, &n_run);
}

#endif
