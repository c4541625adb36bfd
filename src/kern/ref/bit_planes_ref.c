/* SPDX-License-Identifier: MIT
 *
 * Bit planes in portable C: exact sums of small codes times int16, and unpacking of rows to bytes.
 * The specification of dot_u*_i16 and unpack_planes (kern.h).
 */
#include "kern/bit_planes.h"
#include "kern/bound_logit.h"
#include "kern/plane_rows.h"

/* The codes of a group of 128 columns are stored field after field: byte j of the group holds
 * column j in its lowest bits, then the columns j + n_bytes, j + 2 n_bytes ... */
static TN_ALWAYS_INLINE int32_t dot(const uint8_t *row, uint32_t bits, uint32_t cols,
                                    const int16_t *x)
{
    const uint32_t n_bytes = TN_PLANE_COLS / 8 * bits;
    int32_t sum = 0;
    for (uint32_t c = 0; c < cols; c += TN_PLANE_COLS, row += n_bytes)
        for (uint32_t field = 0; field < 8 / bits; field++)
            for (uint32_t j = 0; j < n_bytes; j++)
                sum += (row[j] >> field * bits & ((1 << bits) - 1)) * x[c + field * n_bytes + j];
    return sum;
}

PLANE_ROWS_DEFINE(ref, dot)
BOUND_LOGITS_DEFINE(ref)

/* Column c of a row of one plane. */
static TN_ALWAYS_INLINE uint32_t code(const uint8_t *row, uint32_t bits, uint32_t c)
{
    const uint32_t n_bytes = TN_PLANE_COLS / 8 * bits, j = c % TN_PLANE_COLS;
    const uint8_t byte = row[c / TN_PLANE_COLS * n_bytes + j % n_bytes];
    return byte >> j / n_bytes * bits & ((1u << bits) - 1);
}

void tn_unpack_planes_ref(int8_t *q, const struct tn_bit_planes *w, uint32_t row)
{
    const uint32_t shift = w->forms[row] & TERN_PLANE_SHIFT;
    const uint32_t bias = (uint32_t)(tn_bit_planes_max(w->n_planes) + 1) >> shift;
    const uint32_t keep = w->forms[row] & TERN_PLANE_CENTRED ? 255 : 0;
    const uint8_t *plane[TN_MAX_PLANES];
    for (uint32_t i = 0; i < w->n_planes; i++)
        plane[i] = tn_bit_planes_row(w, row, i);
    for (uint32_t c = 0; c < w->cols; c++) {
        uint32_t u = 0;
        for (uint32_t i = 0; i < w->n_planes; i++)
            u = u << tn_plane_bits(i) | code(plane[i], tn_plane_bits(i), c);
        /* Modulo 256, so that a damaged file cannot overflow. */
        q[c] = (int8_t)(uint8_t)((u >> shift) - bias + ((uint8_t)w->offsets[c] & keep));
    }
}
