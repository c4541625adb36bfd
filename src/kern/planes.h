/* SPDX-License-Identifier: MIT
 *
 * Rows of a q8 matrix as three planes of bits (layout Q8_PLANES of tern/model_format.h).
 */
#ifndef TN_PLANES_H
#define TN_PLANES_H

#include <stdint.h>

#include "kern/kern.h"

/* The matrix as it lies in the file.  q = 16 * u4 + 4 * u2_high + u2_low - 128. */
struct tn_planes {
    const uint8_t *u4;      /* [rows][tn_plane_row_bytes(cols, 4)] */
    const uint8_t *u2_high; /* [rows][tn_plane_row_bytes(cols, 2)] */
    const uint8_t *u2_low;
    const float *scales;    /* [rows] */
    const float *rest4;     /* [rows] norm of what u4 leaves open around its middle, rounded up */
    const float *rest6;     /* the same for u4 and u2_high */
    uint32_t rows;
    uint32_t cols;
};

/* One row.  q: cols values in [-127, 127]; padding columns get code 0. */
void tn_planes_pack_row(uint8_t *u4, uint8_t *u2_high, uint8_t *u2_low, float *rest4, float *rest6,
                        const int8_t *q, uint32_t cols);
void tn_planes_unpack_row(int8_t *q, const struct tn_planes *w, uint32_t row);

#endif
