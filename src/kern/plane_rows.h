/* SPDX-License-Identifier: MIT
 *
 * The order in which the kernels of the head's planes read rows, listed or all, and how far they
 * look ahead.  Only for the planes_*.c files.
 */
#ifndef TN_PLANE_ROWS_H
#define TN_PLANE_ROWS_H

#include "kern/kern.h"

/* Bytes in the order of use: far enough for memory, near enough for the first-level cache, from
 * which bytes that are read once should not drive anything else out. */
#define PLANE_AHEAD_BYTES 8192u

struct plane_rows {
    const uint8_t *plane;
    const uint32_t *rows; /* NULL: all in order */
    uint32_t n_rows;
    const uint8_t *next;  /* where reading goes on behind them; NULL: not known */
    size_t row_bytes;
};

static TN_ALWAYS_INLINE const uint8_t *plane_row(const struct plane_rows *p, uint32_t i)
{
    return p->plane + (p->rows ? p->rows[i] : i) * p->row_bytes;
}

/* Where reading is when about PLANE_AHEAD_BYTES more have been read, `used_bytes` of each row; row
 * i itself where that is not known, so that nothing is prefetched. */
static TN_ALWAYS_INLINE const uint8_t *plane_row_ahead(const struct plane_rows *p, uint32_t i,
                                                       uint32_t used_bytes)
{
    uint32_t ahead = i + TN_MAX(PLANE_AHEAD_BYTES / used_bytes, 1u);
    if (ahead < p->n_rows)
        return plane_row(p, ahead);
    return p->next ? p->next + (ahead - p->n_rows) * p->row_bytes : plane_row(p, i);
}

/* Inputs, and where their sums go. */
struct plane_inputs {
    int32_t *dst;
    size_t dst_stride;
    uint32_t cols;
    const int16_t *const *x;
    uint32_t n_x;
};

/* Defines tn_dot_u4_i16_<isa>, tn_dot_u2_i16_<isa> and tn_dot_u1_i16_<isa> from
 * dot_planes(bits, plane_rows, plane_inputs); or from dot(row, bits, cols, x), the sum of one row:
 * all inputs pass it while it is in the first-level cache. */
#define PLANE_ROWS_DEFINE(isa, dot)                                                                \
    static TN_ALWAYS_INLINE void dot_planes(uint32_t bits, struct plane_rows p,                    \
                                            const struct plane_inputs *in)                         \
    {                                                                                              \
        for (uint32_t i = 0; i < p.n_rows; i++)                                                    \
            for (uint32_t t = 0; t < in->n_x; t++)                                                 \
                in->dst[t * in->dst_stride + i] = dot(plane_row(&p, i), bits, in->cols, in->x[t]); \
    }                                                                                              \
    PLANE_ROWS_DEFINE_FEW(isa)
#define PLANE_ROWS_DEFINE_FEW(isa)                                                                 \
    PLANE_ROWS_DEFINE_BITS(4, isa)                                                                 \
    PLANE_ROWS_DEFINE_BITS(2, isa)                                                                 \
    PLANE_ROWS_DEFINE_BITS(1, isa)
#define PLANE_ROWS_DEFINE_BITS(bits, isa)                                                          \
    void tn_dot_u##bits##_i16_##isa(int32_t *dst, size_t dst_stride, const uint8_t *plane,         \
                                    const uint32_t *rows, uint32_t n_rows, const uint8_t *next,    \
                                    uint32_t cols, const int16_t *const *x, uint32_t n_x)          \
    {                                                                                              \
        const size_t row_bytes = tn_plane_row_bytes(cols, bits);                                   \
        const struct plane_inputs in = {dst, dst_stride, cols, x, n_x};                            \
        dot_planes(bits, (struct plane_rows){plane, rows, n_rows, next, row_bytes}, &in);          \
    }

#endif
