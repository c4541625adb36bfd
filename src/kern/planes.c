/* SPDX-License-Identifier: MIT
 *
 * Packing and unpacking rows in planes.
 */
#include "kern/planes.h"

#include <math.h>
#include <string.h>

/* Column j of a group of 128 lies in byte j % n_bytes, field j / n_bytes. */
static void put(uint8_t *row, uint32_t bits, uint32_t column, uint32_t code)
{
    uint32_t n_bytes = TN_PLANE_COLS / 8 * bits, j = column % TN_PLANE_COLS;
    row[column / TN_PLANE_COLS * n_bytes + j % n_bytes] |= (uint8_t)(code << j / n_bytes * bits);
}

void tn_planes_pack_row(uint8_t *u4, uint8_t *u2_high, uint8_t *u2_low, float *rest4, float *rest6,
                        const int8_t *q, uint32_t cols)
{
    uint64_t squares4 = 0, squares6 = 0; /* of twice the distance: halves become integers */
    memset(u4, 0, tn_plane_row_bytes(cols, 4));
    memset(u2_high, 0, tn_plane_row_bytes(cols, 2));
    memset(u2_low, 0, tn_plane_row_bytes(cols, 2));
    for (uint32_t c = 0; c < cols; c++) {
        uint32_t u = (uint32_t)(q[c] + 128);
        put(u4, 4, c, u >> 4);
        put(u2_high, 2, c, u >> 2 & 3);
        put(u2_low, 2, c, u & 3);
        int64_t d4 = 2 * (int64_t)(u & 15) - 15, d6 = 2 * (int64_t)(u & 3) - 3;
        squares4 += (uint64_t)(d4 * d4);
        squares6 += (uint64_t)(d6 * d6);
    }
    /* A little more than the norm, so that no rounding makes it less. */
    *rest4 = (float)(0.5 * sqrt((double)squares4) * 1.000001);
    *rest6 = (float)(0.5 * sqrt((double)squares6) * 1.000001);
}

void tn_planes_unpack_row(int8_t *q, const struct tn_planes *w, uint32_t row)
{
    const uint8_t *u4 = w->u4 + row * tn_plane_row_bytes(w->cols, 4);
    const uint8_t *high = w->u2_high + row * tn_plane_row_bytes(w->cols, 2);
    const uint8_t *low = w->u2_low + row * tn_plane_row_bytes(w->cols, 2);
    for (uint32_t c = 0; c < w->cols; c += TN_PLANE_COLS, u4 += 64, high += 32, low += 32) {
        uint32_t n = TN_MIN(TN_PLANE_COLS, w->cols - c);
        for (uint32_t j = 0; j < n; j++)
            q[c + j] = (int8_t)((u4[j % 64] >> j / 64 * 4 & 15) * 16 +
                                (high[j % 32] >> j / 32 * 2 & 3) * 4 +
                                (low[j % 32] >> j / 32 * 2 & 3) - 128);
    }
}
