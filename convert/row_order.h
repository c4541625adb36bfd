/* SPDX-License-Identifier: MIT
 *
 * Where the rows of a tensor (a vector: its values) are among those of its source: sections of
 * fused tensors are read in place, and heads put into the order of this program.
 */
#ifndef TN_ROW_ORDER_H
#define TN_ROW_ORDER_H

#include <stdint.h>

/* The next `rows` rows of the tensor: row r of them is first + r / run * step + r % run, so that
 * they follow each other in the source, or take turns with those of other sections. */
struct tn_row_section {
    uint32_t rows, first, run, step;
};

#define TN_MAX_ROW_SECTIONS 3u

struct tn_row_order {
    uint32_t first; /* of the source, added to all: a matrix of a stack begins there */
    struct tn_row_section sections[TN_MAX_ROW_SECTIONS]; /* rows 0: no more */
    /* permuted_dim not 0: of heads of head_dim rows, of which the only run holds whole ones, in
     * the first permuted_dim rows pairs (2j, 2j + 1) of the source belong to
     * (j, j + permuted_dim / 2). */
    uint32_t head_dim, permuted_dim;
};

/* Rows [first, first + rows) of the source. */
static inline struct tn_row_order tn_row_order_straight(uint32_t first, uint32_t rows)
{
    return (struct tn_row_order){.sections = {{rows, first, rows, rows}}};
}

/* Row r of the tensor as if heads were in order; *n_run: so many rows from r on follow each other
 * in the source. */
static inline uint32_t tn_row_order_run(const struct tn_row_order *order, uint32_t r,
                                        uint32_t *n_run)
{
    const struct tn_row_section *s = order->sections;
    while (r >= s->rows)
        r -= s++->rows;
    *n_run = s->run - r % s->run;
    return order->first + s->first + r / s->run * s->step + r % s->run;
}

/* The row of the same section that holds row r. */
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
