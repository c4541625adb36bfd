/* SPDX-License-Identifier: MIT
 *
 * Rows of small integers as planes of bits: the layouts Q8_PLANES, Q6 and Q4 of
 * tern/matrix_layouts.h.  The first plane holds the 4 high bits, the next two one further bit each,
 * the last one two bits: 4, 3 or 1 planes for 8, 6 or 4 bits.
 */
#ifndef TN_BIT_PLANES_H
#define TN_BIT_PLANES_H

#include <stdint.h>

#include "kern/kern.h"

#define TN_MAX_PLANES 4u

/* A matrix in the file's layout. */
struct tn_bit_planes {
    const uint8_t *data;
    const float *scales;   /* [rows]: w = q * scale */
    const float *norms;    /* [rows] of v */
    const float *open;     /* [n_planes - 1][rows] norms of the bits that plane i and those above it
                            * leave open */
    const int8_t *offsets; /* [cols] */
    const uint8_t *forms;  /* [rows]: shift and TERN_PLANE_CENTRED */
    uint32_t rows;
    uint32_t cols;
    uint32_t n_planes;
};

/* Finds the arrays inside data and scales, which have the file's layout. */
struct tn_bit_planes tn_bit_planes_view(const void *data, const void *scales, uint32_t rows,
                                        uint32_t cols, uint32_t n_planes);

/* Bits of plane i. */
static inline uint32_t tn_plane_bits(uint32_t i_plane)
{
    return i_plane == 0 ? 4 : i_plane == 3 ? 2 : 1;
}

/* Bits of the first n planes together.  All planes: 8, 6 or 4 bits, with |q| <= 127, 31 or 7. */
static inline uint32_t tn_bit_planes_bits(uint32_t n_planes)
{
    uint32_t bits = 0;
    for (uint32_t i = 0; i < n_planes; i++)
        bits += tn_plane_bits(i);
    return bits;
}

static inline int32_t tn_bit_planes_max(uint32_t n_planes)
{
    return (1 << (tn_bit_planes_bits(n_planes) - 1)) - 1;
}

/* Bytes of one row in plane i. */
static inline size_t tn_plane_row(uint32_t cols, uint32_t i_plane)
{
    return tn_plane_row_bytes(cols, tn_plane_bits(i_plane));
}

/* Plane i_plane of the block of TERN_PLANE_BLOCK_ROWS rows that begins at row `block_row`. */
const uint8_t *tn_bit_planes_block(const struct tn_bit_planes *w, uint32_t block_row,
                                   uint32_t i_plane);
/* One row of plane i_plane. */
const uint8_t *tn_bit_planes_row(const struct tn_bit_planes *w, uint32_t row, uint32_t i_plane);

/* offsets [cols]: the medians of the columns of q [n][cols], n > 0. */
void tn_bit_planes_offsets(int8_t *offsets, const int8_t *q, uint32_t n, uint32_t cols);
/* The address of the offsets inside scales. */
int8_t *tn_bit_planes_place_offsets(void *scales, uint32_t rows, uint32_t n_planes);

/* Packs the block of rows [row, row + n), q [n][cols] in [-max, max], to dst
 * (tn_bit_planes_block_bytes), and writes their norms and forms into scales, which already contains
 * the offsets. */
void tn_bit_planes_pack(uint8_t *dst, void *scales, const int8_t *q, uint32_t row, uint32_t n,
                        uint32_t rows, uint32_t cols, uint32_t n_planes);
size_t tn_bit_planes_block_bytes(uint32_t n, uint32_t cols, uint32_t n_planes);

#endif
