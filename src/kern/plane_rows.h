/* SPDX-License-Identifier: MIT
 *
 * The order in which the kernels of the head's planes read rows, listed or all, and how far they
 * look ahead.  Only for the bit_planes_*.c files.
 *
 * Codes of 5 bits are those of 4 bits in plane[0] and their lowest bits in plane[1].
 */
#ifndef TN_PLANE_ROWS_H
#define TN_PLANE_ROWS_H

#include "kern/kern.h"
#include "kern/prefetch.h"

/* Bits per code in plane i. */
static TN_ALWAYS_INLINE uint32_t plane_bits(uint32_t bits, uint32_t i_plane)
{
    return bits != 5 ? bits : i_plane == 0 ? 4 : 1;
}

static TN_ALWAYS_INLINE const uint8_t *plane_row(const struct tn_plane_rows *p, uint32_t bits,
                                                 uint32_t i_plane, uint32_t i)
{
    return p->plane[i_plane] +
           (p->rows ? p->rows[i] : i) * tn_plane_row_bytes(p->cols, plane_bits(bits, i_plane));
}

/* The address that will be read after about n_ahead more bytes, `used_bytes` of each row; row i
 * itself where that is unknown, so that nothing is prefetched. */
static TN_ALWAYS_INLINE const uint8_t *plane_row_ahead(const struct tn_plane_rows *p, uint32_t bits,
                                                       uint32_t i_plane, uint32_t i,
                                                       uint32_t used_bytes, uint32_t n_ahead)
{
    const uint32_t ahead = i + TN_MAX(n_ahead / used_bytes, 1u);
    if (ahead < p->n_rows)
        return plane_row(p, bits, i_plane, ahead);
    if (!p->next[i_plane])
        return plane_row(p, bits, i_plane, i);
    return p->next[i_plane] +
           (ahead - p->n_rows) * tn_plane_row_bytes(p->cols, plane_bits(bits, i_plane));
}

/* The lines to request while row i is multiplied. */
struct plane_lines {
    const uint8_t *far, *l2, *l1;
};

static TN_ALWAYS_INLINE struct plane_lines plane_lines(const struct tn_plane_rows *p, uint32_t bits,
                                                       uint32_t i_plane, uint32_t i,
                                                       uint32_t used_bytes,
                                                       struct tn_prefetch ahead)
{
    return (struct plane_lines){plane_row_ahead(p, bits, i_plane, i, used_bytes, ahead.far),
                                plane_row_ahead(p, bits, i_plane, i, used_bytes, ahead.l2),
                                plane_row_ahead(p, bits, i_plane, i, used_bytes, ahead.l1)};
}

/* Lines that were requested before. */
static TN_ALWAYS_INLINE struct plane_lines no_lines(const uint8_t *row)
{
    return (struct plane_lines){row, row, row};
}

static TN_ALWAYS_INLINE void request_lines(const struct plane_lines *lines, size_t offset,
                                           struct tn_prefetch ahead)
{
    if (ahead.far)
        __builtin_prefetch(lines->far + offset, 0, 2);
    tn_request_l2(lines->l2 + offset, ahead);
    tn_request_l1(lines->l1 + offset, ahead);
}

/* Skips n columns, a multiple of TN_PLANE_COLS. */
static TN_ALWAYS_INLINE void plane_skip(struct tn_plane_rows *p, uint32_t bits, uint32_t n)
{
    p->plane[0] += n * plane_bits(bits, 0) / 8;
    if (bits == 5)
        p->plane[1] += n / 8;
}

/* Inputs, and the destination of their sums. */
struct plane_inputs {
    int32_t *dst;
    size_t dst_stride;
    const int16_t *const *x;
    uint32_t n_x;
    void *scratch;
};

/* Defines tn_dot_u5_i16_<isa> and those of 4, 2 and 1 bits from
 * dot_planes(bits, tn_plane_rows, plane_inputs); or from dot(row, bits, cols, x), the sum of one
 * row for 4, 2 or 1 bits: all inputs are multiplied while the row is in the first-level cache. */
#define PLANE_ROWS_DEFINE(isa, dot)                                                                \
    static TN_ALWAYS_INLINE void dot_planes(uint32_t bits, struct tn_plane_rows p,                 \
                                            const struct plane_inputs *in)                         \
    {                                                                                              \
        for (uint32_t i = 0; i < p.n_rows; i++)                                                    \
            for (uint32_t t = 0; t < in->n_x; t++) {                                               \
                int32_t *sum = in->dst + t * in->dst_stride + i;                                   \
                *sum = dot(plane_row(&p, bits, 0, i), plane_bits(bits, 0), p.cols, in->x[t]);      \
                if (bits == 5)                                                                     \
                    *sum = 2 * *sum + dot(plane_row(&p, 5, 1, i), 1, p.cols, in->x[t]);            \
            }                                                                                      \
    }                                                                                              \
    PLANE_ROWS_DEFINE_FEW(isa)
#define PLANE_ROWS_DEFINE_FEW(isa)                                                                 \
    PLANE_ROWS_DEFINE_BITS(5, isa)                                                                 \
    PLANE_ROWS_DEFINE_BITS(4, isa)                                                                 \
    PLANE_ROWS_DEFINE_BITS(2, isa)                                                                 \
    PLANE_ROWS_DEFINE_BITS(1, isa)
#define PLANE_ROWS_DEFINE_BITS(bits, isa)                                                          \
    void tn_dot_u##bits##_i16_##isa(int32_t *dst, size_t dst_stride,                               \
                                    const struct tn_plane_rows *p, const int16_t *const *x,        \
                                    uint32_t n_x, void *scratch)                                   \
    {                                                                                              \
        const struct plane_inputs in = {dst, dst_stride, x, n_x, scratch};                         \
        dot_planes(bits, *p, &in);                                                                 \
    }

#endif
