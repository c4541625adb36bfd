/* SPDX-License-Identifier: MIT
 *
 * Unpacks rows in planes to bytes, with vector types that the compiler maps to instructions.  Only
 * for the bit_planes_*.c files; each compiles its own copy.
 *
 * A vector of 16 columns is inside one field of each plane.  Bytes are shifted as halves of uint16:
 * the bits shifted in from the other byte are masked away, and none is lost on the left, because a
 * code has at most 8 bits.
 */
#ifndef TN_PLANE_UNPACK_H
#define TN_PLANE_UNPACK_H

#include <string.h>

#include "kern/bit_planes.h"

typedef uint8_t unpack_bytes __attribute__((vector_size(16)));
typedef uint16_t unpack_halves __attribute__((vector_size(16)));

static TN_ALWAYS_INLINE unpack_bytes load_bytes(const void *p)
{
    unpack_bytes v;
    memcpy(&v, p, sizeof v);
    return v;
}

static TN_ALWAYS_INLINE unpack_bytes shift_right(unpack_bytes v, uint32_t n)
{
    return (unpack_bytes)((unpack_halves)v >> (uint16_t)n);
}

/* The parameters that turn a code into q. */
struct unpack_form {
    uint8_t shift, mask, bias, keep;
};

/* The 16 codes of plane i_plane at column c of group g. */
static TN_ALWAYS_INLINE unpack_bytes load_codes(const uint8_t *plane, uint32_t i_plane, size_t g,
                                                uint32_t c)
{
    const uint32_t bits = tn_plane_bits(i_plane), n_bytes = TN_PLANE_COLS / 8 * bits;
    const unpack_bytes v = load_bytes(plane + g * n_bytes + c % n_bytes);
    return shift_right(v, c / n_bytes * bits) & (uint8_t)((1u << bits) - 1);
}

/* Unpacks the 128 columns of group g. */
static TN_ALWAYS_INLINE void unpack_group(int8_t *q, const uint8_t *const plane[TN_MAX_PLANES],
                                          uint32_t n_planes, size_t g, const int8_t *offsets,
                                          struct unpack_form form)
{
    for (uint32_t c = 0; c < TN_PLANE_COLS; c += sizeof(unpack_bytes)) {
        unpack_bytes u = load_codes(plane[0], 0, g, c);
        for (uint32_t i = 1; i < n_planes; i++)
            u = (unpack_bytes)((unpack_halves)u << (uint16_t)tn_plane_bits(i)) |
                load_codes(plane[i], i, g, c);
        u = (shift_right(u, form.shift) & form.mask) - form.bias +
            (load_bytes(offsets + c) & form.keep);
        memcpy(q + c, &u, sizeof u);
    }
}

/* A constant n_planes lets the compiler unroll the loops over planes and fields. */
static TN_ALWAYS_INLINE void unpack_row(int8_t *q, const struct tn_bit_planes *w, uint32_t row,
                                        uint32_t n_planes)
{
    const uint32_t shift = w->forms[row] & TERN_PLANE_SHIFT;
    const struct unpack_form form = {
        .shift = (uint8_t)shift,
        .mask = (uint8_t)(255 >> shift),
        .bias = (uint8_t)((tn_bit_planes_max(n_planes) + 1) >> shift),
        .keep = w->forms[row] & TERN_PLANE_CENTRED ? 255 : 0,
    };
    const uint8_t *plane[TN_MAX_PLANES];
    for (uint32_t i = 0; i < n_planes; i++)
        plane[i] = tn_bit_planes_row(w, row, i);
    int8_t last[TN_PLANE_COLS], last_offsets[TN_PLANE_COLS] = {0};
    for (uint32_t c = 0; c < w->cols; c += TN_PLANE_COLS) {
        const uint32_t n = TN_MIN(TN_PLANE_COLS, w->cols - c);
        const int8_t *offsets = w->offsets + c;
        if (n < TN_PLANE_COLS)
            offsets = memcpy(last_offsets, offsets, n);
        int8_t *dst = n < TN_PLANE_COLS ? last : q + c;
        unpack_group(dst, plane, n_planes, c / TN_PLANE_COLS, offsets, form);
        if (n < TN_PLANE_COLS)
            memcpy(q + c, last, n);
    }
}

/* Defines tn_unpack_planes_<isa>. */
#define PLANE_UNPACK_DEFINE(isa)                                                                   \
    void tn_unpack_planes_##isa(int8_t *q, const struct tn_bit_planes *w, uint32_t row)            \
    {                                                                                              \
        if (w->n_planes == 4)                                                                      \
            unpack_row(q, w, row, 4);                                                              \
        else                                                                                       \
            unpack_row(q, w, row, w->n_planes);                                                    \
    }

#endif
