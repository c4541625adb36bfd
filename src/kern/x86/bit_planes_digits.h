/* SPDX-License-Identifier: MIT
 *
 * Shared by bit_planes_ssse3.c and bit_planes_avx2.c: activations as two signed digits, x = 256 *
 * high + low, and the loop over rows.  Up to PLANES_TOGETHER inputs share the codes extracted from
 * a row.  Groups of columns whose high digits are all zero (most groups, thanks to the caller) are
 * multiplied once.  Each file compiles its own copy.
 */
#ifndef TN_PLANES_DIGITS_H
#define TN_PLANES_DIGITS_H

#include <stdbool.h>
#include <string.h>

#include "base/bits.h"
#include "kern/kern.h"
#include "kern/plane_rows.h"

/* Columns whose digits are stored at a time; a multiple of 256. */
#define CHUNK_COLS 4096u

struct digits {
    _Alignas(32) int8_t low[CHUNK_COLS];
    _Alignas(32) int8_t high[CHUNK_COLS]; /* of the wide groups, consecutive */
    uint32_t wide[CHUNK_COLS / TN_PLANE_COLS]; /* numbers of the groups with high digits */
    uint32_t n_wide;
    uint32_t n_groups;
};
_Static_assert(TN_PLANE_MAX_X * sizeof(struct digits) <= TN_PLANE_SCRATCH_BYTES,
               "the digits of all inputs fit the scratch memory");

/* Splits 16 activations; returns whether one has a high digit. */
typedef bool split_16_fn(int8_t *low, int8_t *high, const int16_t *x);
/* The start of a row, and the lines to request meanwhile, in the planes of its codes: one plane, or
 * two for codes of 5 bits. */
struct row_at {
    const uint8_t *row[2];
    struct plane_lines lines[2];
};

/* sums[k], k < n: one row times the groups of x[k]. */
#define PLANES_TOGETHER 4u
typedef void row_sums_fn(int32_t sums[PLANES_TOGETHER], uint32_t bits, const struct row_at *at,
                         const struct digits *x, uint32_t n);

/* Splits n columns, a multiple of TN_PLANE_COLS. */
static TN_ALWAYS_INLINE void split_columns(struct digits *s, const int16_t *x, uint32_t n,
                                           split_16_fn *split_16)
{
    s->n_groups = n / TN_PLANE_COLS;
    s->n_wide = 0;
    for (uint32_t g = 0; g < s->n_groups; g++) {
        int8_t *high = s->high + TN_PLANE_COLS * s->n_wide;
        bool is_wide = false;
        for (uint32_t j = 0; j < TN_PLANE_COLS; j += 16) {
            uint32_t c = TN_PLANE_COLS * g + j;
            is_wide |= split_16(s->low + c, high + j, x + c);
        }
        s->wide[s->n_wide] = g;
        s->n_wide += is_wide;
    }
}

/* Sums for n inputs, at most PLANES_TOGETHER. */
static TN_ALWAYS_INLINE void sums_of_few(int32_t sums[PLANES_TOGETHER], uint32_t bits,
                                         const struct row_at *at, const struct digits *x,
                                         uint32_t n, row_sums_fn *row_sums)
{
    switch (n) {
    case 1:
        row_sums(sums, bits, at, x, 1);
        break;
    case 2:
        row_sums(sums, bits, at, x, 2);
        break;
    case 3:
        row_sums(sums, bits, at, x, 3);
        break;
    default:
        row_sums(sums, bits, at, x, 4);
    }
}

/* Row i, with n_cols columns used. */
static TN_ALWAYS_INLINE struct row_at find_row(const struct tn_plane_rows *p, uint32_t bits,
                                               uint32_t i, uint32_t n_cols)
{
    struct row_at at = {0};
    for (uint32_t k = 0; k < (bits == 5 ? 2u : 1u); k++) {
        at.row[k] = plane_row(p, bits, k, i);
        at.lines[k] = plane_lines(p, bits, k, i, n_cols * plane_bits(bits, k) / 8,
                                  TN_PREFETCH_OF(PLANES));
    }
    return at;
}

/* Multiplies PLANES_TOGETHER inputs at a time, while the row is in the first-level cache. */
static TN_ALWAYS_INLINE void dot_rows(uint32_t bits, struct tn_plane_rows p,
                                      const struct plane_inputs *in, split_16_fn *split_16,
                                      row_sums_fn *row_sums)
{
    const uint32_t padded = (uint32_t)tn_plane_row_bytes(p.cols, 8);
    const uint32_t n_calls = tn_div_ceil_u32(in->n_x, PLANES_TOGETHER);
    const uint32_t together = tn_div_ceil_u32(in->n_x, n_calls);
    struct digits *s = in->scratch;
    for (uint32_t c = 0; c < padded; c += CHUNK_COLS, plane_skip(&p, bits, CHUNK_COLS)) {
        const uint32_t n = TN_MIN(CHUNK_COLS, padded - c);
        for (uint32_t t = 0; t < in->n_x; t++)
            split_columns(&s[t], in->x[t] + c, n, split_16);
        for (uint32_t i = 0; i < p.n_rows; i++) {
            struct row_at at = find_row(&p, bits, i, n);
            for (uint32_t t = 0, m; t < in->n_x; t += m) {
                int32_t sums[PLANES_TOGETHER], *dst = in->dst + t * in->dst_stride + i;
                m = TN_MIN(together, in->n_x - t);
                sums_of_few(sums, bits, &at, &s[t], m, row_sums);
                for (uint32_t k = 0; k < m; k++, dst += in->dst_stride)
                    *dst = c ? (int32_t)((uint32_t)*dst + (uint32_t)sums[k]) : sums[k];
                at.lines[0] = no_lines(at.row[0]);
                at.lines[1] = no_lines(at.row[1]);
            }
        }
    }
}

/* Defines the kernels of a level from its split_16_fn and row_sums_fn. */
#define PLANE_DIGITS_DEFINE(isa, split_16, row_sums)                                               \
    static TN_ALWAYS_INLINE void dot_planes(uint32_t bits, struct tn_plane_rows p,                 \
                                            const struct plane_inputs *in)                         \
    {                                                                                              \
        dot_rows(bits, p, in, split_16, row_sums);                                                 \
    }                                                                                              \
    PLANE_ROWS_DEFINE_FEW(isa)

#endif
