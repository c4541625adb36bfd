/* SPDX-License-Identifier: MIT
 *
 * Ternary matrices in the file's layouts T2, R2 and C2 (tern/model_format.h),
 * from and to trits: int8 values -1, 0, +1, row after row, [rows][cols].
 *
 * Portable and without state.  The converter packs with these, tests and
 * `verify` unpack.
 */
#ifndef TN_PACK_H
#define TN_PACK_H

#include <stddef.h>
#include <stdint.h>

/* Rows to pack at a time: the height of a T2 band and of a C2 block. */
#define TN_PACK_ROWS 256u

/* Bytes of a packed matrix. layout is TERN_LAYOUT_T2, _R2 or _C2; rows and cols are at most
 * TERN_MAX_DIM. */
uint64_t tn_pack_bytes(uint32_t layout, uint32_t rows, uint32_t cols);

/* Packs rows [row_begin, row_begin + n_rows) of a matrix, padding included.
 *   dst        the whole packed matrix, tn_pack_bytes(layout, rows, cols)
 *   row_begin  multiple of TN_PACK_ROWS
 *   n_rows     multiple of TN_PACK_ROWS, unless these are the last rows
 *   trits      [n_rows][cols]
 * T2 and R2 lie row block after row block, so a stream may pack each block of TN_PACK_ROWS rows
 * as a matrix of its own. */
void tn_pack_rows(uint8_t *dst, uint32_t layout, uint32_t rows, uint32_t cols, uint32_t row_begin,
                  uint32_t n_rows, const int8_t *trits);

/* The opposite, for any rows: trits [n_rows][cols]. Code 3, which no valid file holds, comes out
 * as +2. */
void tn_unpack_rows(int8_t *trits, const uint8_t *src, uint32_t layout, uint32_t rows,
                    uint32_t cols, uint32_t row_begin, uint32_t n_rows);

#endif
