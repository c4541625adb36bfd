/* SPDX-License-Identifier: MIT
 *
 * Packing and unpacking rows in planes.
 */
#include "kern/planes.h"

#include <math.h>
#include <string.h>

uint32_t tn_planes_of_layout(uint32_t layout)
{
    return layout == TERN_LAYOUT_Q8_PLANES ? 3
           : layout == TERN_LAYOUT_Q6      ? 2
           : layout == TERN_LAYOUT_Q4      ? 1
                                           : 0;
}

size_t tn_planes_block_bytes(uint32_t n, uint32_t cols, uint32_t n_planes)
{
    return n * tn_plane_row_bytes(cols, tn_planes_bits(n_planes));
}

const uint8_t *tn_planes_block(const struct tn_planes *w, uint32_t block_row, uint32_t i_plane)
{
    uint32_t n = TN_MIN(TERN_PLANE_BLOCK_ROWS, w->rows - block_row);
    size_t before = tn_plane_row_bytes(w->cols, tn_planes_bits(w->n_planes));
    size_t inside = i_plane == 0 ? 0 : tn_plane_row_bytes(w->cols, 2 + 2 * i_plane);
    return w->data + block_row * before + n * inside;
}

/* ---- packing ---- */

/* A group of 128 codes of 4 or 2 bits: code j lies in byte j % n_bytes, field j / n_bytes. */
static void put_group(uint8_t *dst, const uint8_t code[TN_PLANE_COLS], uint32_t bits)
{
    if (bits == 4) {
        for (uint32_t j = 0; j < 64; j++)
            dst[j] = (uint8_t)(code[j] | code[j + 64] << 4);
    } else {
        for (uint32_t j = 0; j < 32; j++)
            dst[j] = (uint8_t)(code[j] | code[j + 32] << 2 | code[j + 64] << 4 | code[j + 96] << 6);
    }
}

/* One plane of one row: the `bits` bits of u above the `open` lowest.  Returns the norm of what
 * stays open around its middle, a little more than it is, so that no rounding makes it less. */
static float pack_plane(uint8_t *dst, uint32_t bits, uint32_t open, const int8_t *q, uint32_t cols,
                        int32_t bias)
{
    uint64_t squares = 0; /* of twice the distance: halves become integers */
    const int32_t top = (1 << open) - 1, mask = (1 << bits) - 1;
    for (uint32_t c = 0; c < cols; c += TN_PLANE_COLS, dst += TN_PLANE_COLS / 8 * bits) {
        const uint32_t n = TN_MIN(TN_PLANE_COLS, cols - c);
        uint8_t code[TN_PLANE_COLS] = {0};
        int32_t sum = 0;
        for (uint32_t j = 0; j < n; j++) {
            const int32_t u = q[c + j] + bias;
            const int32_t d = 2 * (u & top) - top;
            code[j] = (uint8_t)(u >> open & mask);
            sum += d * d;
        }
        put_group(dst, code, bits);
        squares += (uint32_t)sum;
    }
    return (float)(0.5 * sqrt((double)squares) * 1.000001);
}

void tn_planes_pack(uint8_t *dst, float *rests, size_t rest_stride, const int8_t *q, uint32_t n,
                    uint32_t cols, uint32_t n_planes)
{
    int32_t bias = tn_planes_max(n_planes) + 1;
    for (uint32_t i = 0; i < n_planes; i++) {
        uint32_t open = 2 * (n_planes - 1 - i);
        for (uint32_t r = 0; r < n; r++, dst += tn_plane_row(cols, i)) {
            float rest = pack_plane(dst, i == 0 ? 4 : 2, open, q + (size_t)r * cols, cols, bias);
            if (open)
                rests[i * rest_stride + r] = rest;
        }
    }
}

/* ---- unpacking ---- */

/* Adds the 2 bits of a group of 128 columns: u = 4 * u + code. */
static void append_bits(uint8_t u[TN_PLANE_COLS], const uint8_t *group)
{
    for (uint32_t j = 0; j < 32; j++) {
        u[j] = (uint8_t)(u[j] << 2 | (group[j] & 3));
        u[j + 32] = (uint8_t)(u[j + 32] << 2 | (group[j] >> 2 & 3));
        u[j + 64] = (uint8_t)(u[j + 64] << 2 | (group[j] >> 4 & 3));
        u[j + 96] = (uint8_t)(u[j + 96] << 2 | group[j] >> 6);
    }
}

void tn_planes_unpack_row(int8_t *q, const struct tn_planes *w, uint32_t row)
{
    uint32_t block = row / TERN_PLANE_BLOCK_ROWS * TERN_PLANE_BLOCK_ROWS;
    const uint8_t *plane[TN_MAX_PLANES];
    uint8_t bias = (uint8_t)(tn_planes_max(w->n_planes) + 1);
    for (uint32_t i = 0; i < w->n_planes; i++)
        plane[i] = tn_planes_block(w, block, i) + (row - block) * tn_plane_row(w->cols, i);
    for (uint32_t c = 0; c < w->cols; c += TN_PLANE_COLS) {
        uint8_t u[TN_PLANE_COLS];
        for (uint32_t j = 0; j < 64; j++) {
            u[j] = plane[0][j] & 15;
            u[j + 64] = plane[0][j] >> 4;
        }
        plane[0] += 64;
        for (uint32_t i = 1; i < w->n_planes; i++) {
            append_bits(u, plane[i]);
            plane[i] += 32;
        }
        for (uint32_t j = 0; j < TN_PLANE_COLS; j++)
            u[j] = (uint8_t)(u[j] - bias);
        memcpy(q + c, u, TN_MIN(TN_PLANE_COLS, w->cols - c));
    }
}
