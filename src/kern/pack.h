/* SPDX-License-Identifier: MIT
 *
 * Ternary matrices in the file's layouts T2, T5, R2 and C2 (tern/matrix_layouts.h), from and to
 * trits: int8 values -1, 0, +1, row after row, [rows][cols].  Portable and stateless.  The
 * converter packs with these; formats, tests and `verify` unpack.
 */
#ifndef TN_PACK_H
#define TN_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Rows to pack at a time: the height of a T2 band and of a C2 block. */
#define TN_PACK_ROWS 256u

/* Packs rows [row_begin, row_begin + n_rows) of a matrix, padding included.
 *   dst        the whole packed matrix, tn_layout_bytes long
 *   layout     TERN_LAYOUT_T2, _T5, _R2 or _C2
 *   row_begin  multiple of TN_PACK_ROWS
 *   n_rows     multiple of TN_PACK_ROWS, unless these are the last rows
 *   trits      [n_rows][cols]
 * T2, T5 and R2 store row block after row block, so a stream may pack each block of TN_PACK_ROWS
 * rows as a separate matrix. */
void tn_pack_rows(uint8_t *dst, uint32_t layout, uint32_t rows, uint32_t cols, uint32_t row_begin,
                  uint32_t n_rows, const int8_t *trits);

/* The inverse, for any rows: trits [n_rows][cols].  Code 3, which no valid file contains, is
 * returned as +2. */
void tn_unpack_rows(int8_t *trits, const uint8_t *src, uint32_t layout, uint32_t rows,
                    uint32_t cols, uint32_t row_begin, uint32_t n_rows);

/* Scales of T2 (TERN_SCALE_COL_GROUP): one per row and `group` columns, rows padded to 64 with
 * zeros, in the order in which a product reads T2: within every 256 rows group after group, within
 * a group tile after tile of 64 rows. */
static inline uint32_t tn_n_groups(uint32_t cols, uint32_t group)
{
    return cols / group + (cols % group != 0);
}
static inline size_t tn_n_scales(uint32_t rows, uint32_t cols, uint32_t group)
{
    return (size_t)(rows / 64 + (rows % 64 != 0)) * 64 * tn_n_groups(cols, group);
}

/* The index of the scale of a row and a group; row may be a padding row. */
size_t tn_scale_index(uint32_t rows, uint32_t cols, uint32_t group, uint32_t row, uint32_t i_group);

/* Packs the scales of rows [row_begin, row_begin + n_rows), padding included.
 *   dst        all scales, tn_n_scales(rows, cols, group) of f16 or f32
 *   row_begin, n_rows  as for tn_pack_rows
 *   scales     [n_rows][tn_n_groups(cols, group)]; f16: each must be exact in f16 */
void tn_pack_scales(void *dst, bool is_f16, uint32_t rows, uint32_t cols, uint32_t group,
                    uint32_t row_begin, uint32_t n_rows, const float *scales);

struct tn_scaled_ternary; /* of kern.h */

/* One row of a matrix with such scales as floats, t * scale: dst [cols]. */
void tn_unpack_row_f32(float *dst, const struct tn_scaled_ternary *m, uint32_t row);

#endif
