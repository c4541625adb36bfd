/* SPDX-License-Identifier: MIT
 *
 * Loads the codes and scales of matrices in blocks into vectors of LANES rows.  Only for
 * blocks_loop.h, whose head lists what a level supplies.
 */
#ifndef TN_BLOCKS_CODES_H
#define TN_BLOCKS_CODES_H

#include <string.h>

#include "base/bits.h"
#include "kern/blocks.h"

typedef uint32_t words __attribute__((vector_size(4 * LANES), may_alias));
typedef int32_t ints __attribute__((vector_size(4 * LANES), may_alias));
typedef float floats __attribute__((vector_size(4 * LANES), may_alias));
typedef uint8_t bytes_16 __attribute__((vector_size(16), may_alias));

#define TILE_STEPS (TN_TILE_ROWS / LANES) /* vectors per tile */
#define ARRAY_BYTES (4 * TN_TILE_ROWS)
#define SPAN_PARTS (TN_SPAN_COLS / 16)

static TN_ALWAYS_INLINE words load_words(const uint8_t *p)
{
    return *(const words *)(const void *)p;
}

static TN_ALWAYS_INLINE floats as_floats(ints v)
{
    return __builtin_convertvector(v, floats);
}

static TN_ALWAYS_INLINE words splat_bytes(uint32_t byte)
{
    return (words){0} + byte * 0x01010101u;
}

/* ---- codes ---- */

/* Shifts left by a constant, right if it is negative. */
static TN_ALWAYS_INLINE words shifted(words v, const int by)
{
    return by >= 0 ? v << by : v >> -by;
}

/* Bits of the codes from take_codes. */
static TN_ALWAYS_INLINE uint32_t codes_bits(const struct tn_block_shape s)
{
    switch (s.code) {
    case TN_CODE_UNSIGNED:
        return s.low + s.high;
    case TN_CODE_IQ2:
        return 7;
    case TN_CODE_IQ3_XXS:
        return 6;
    case TN_CODE_IQ3_S:
        return 5;
    default:
        return 8;
    }
}

static TN_ALWAYS_INLINE bool codes_are_signed(const struct tn_block_shape s)
{
    return HAS_SIGNED_CODES && codes_bits(s) == 8;
}

/* The excess of the codes from take_codes over q. */
static TN_ALWAYS_INLINE uint32_t codes_offset(const struct tn_block_shape s)
{
    return codes_are_signed(s) ? 0 : s.offset;
}

/* Codes of group g (4 columns) of a cell, one byte each. */
static TN_ALWAYS_INLINE words take_codes(const uint8_t *cell, const uint32_t g,
                                         const uint32_t layout)
{
    const struct tn_block_shape s = tn_block_shape(layout);
    const uint32_t n = 8 / s.low; /* groups per array */
    words v = load_words(cell + g / n * ARRAY_BYTES);
    if (s.low < 8)
        v = v >> s.low * (g % n) & splat_bytes((1u << s.low) - 1);
    if (s.high) {
        const uint32_t n_high = 8 / s.high;
        const words h = load_words(cell + (s.low + g / n_high) * ARRAY_BYTES);
        v |= shifted(h, (int)s.low - (int)(s.high * (g % n_high))) &
             splat_bytes(((1u << s.high) - 1) << s.low);
    }
    if (tn_code_is_index(s.code)) {
        bytes_16 entries = *(const bytes_16 *)(const void *)tn_code_table(s.code);
        if (codes_are_signed(s))
            entries ^= 128;
        v = (words)table_of((vec)v, (table)entries);
    }
    if (s.code == TN_CODE_SIGNED && !HAS_SIGNED_CODES)
        v ^= splat_bytes(128);
    return v;
}

/* ---- scales ---- */

/* D and M of a span: scale[j][row] of scale j. */
struct span_scales {
    float *scale, *minimum;
    size_t stride; /* rows between two scales */
};

static TN_ALWAYS_INLINE void store_floats(float *dst, floats v)
{
    *(floats *)(void *)dst = v;
}

static TN_ALWAYS_INLINE floats load_floats(const float *p)
{
    return *(const floats *)(const void *)p;
}

static TN_ALWAYS_INLINE floats byte_times(words v, const uint32_t byte, floats d)
{
    return as_floats((ints)(v >> 8 * byte & 255)) * d;
}

static TN_ALWAYS_INLINE void scales_f16(const struct span_scales *s, const uint8_t *halves,
                                        uint32_t n_cells, const struct tn_block_shape shape)
{
    for (uint32_t j = 0; j < n_cells; j++, halves += 2 * TN_TILE_ROWS * shape.n_halves) {
        store_floats(s->scale + j * s->stride, floats_of_halves(halves));
        if (shape.has_min)
            store_floats(s->minimum + j * s->stride, -floats_of_halves(halves + 2 * TN_TILE_ROWS));
    }
}

static TN_ALWAYS_INLINE void scales_q4_k(const struct span_scales *s, const uint8_t *w, floats d,
                                         floats dmin)
{
    const words a = load_words(w), b = load_words(w + 64), c = load_words(w + 128);
    const words six = splat_bytes(63), four = splat_bytes(15), two = splat_bytes(48);
    const words scale[2] = {a & six, (c & four) | (a >> 2 & two)};
    const words minimum[2] = {b & six, (c >> 4 & four) | (b >> 2 & two)};
#pragma GCC unroll 8
    for (uint32_t j = 0; j < 8; j++) {
        store_floats(s->scale + j * s->stride, byte_times(scale[j / 4], j % 4, d));
        store_floats(s->minimum + j * s->stride, byte_times(minimum[j / 4], j % 4, dmin));
    }
}

static TN_ALWAYS_INLINE void scales_q6_k(const struct span_scales *s, const uint8_t *w, floats d)
{
#pragma GCC unroll 16
    for (uint32_t j = 0; j < 16; j++) {
        const words v = load_words(w + j / 4 * 64) << (24 - j % 4 * 8);
        store_floats(s->scale + j * s->stride, as_floats((ints)v >> 24) * d);
    }
}

static TN_ALWAYS_INLINE void scales_q2_k(const struct span_scales *s, const uint8_t *w, floats d,
                                         floats dmin)
{
#pragma GCC unroll 16
    for (uint32_t j = 0; j < 16; j++) {
        const words v = load_words(w + j / 4 * 64);
        store_floats(s->scale + j * s->stride, byte_times(v & splat_bytes(15), j % 4, d));
        store_floats(s->minimum + j * s->stride, byte_times(v >> 4 & splat_bytes(15), j % 4, dmin));
    }
}

static TN_ALWAYS_INLINE void scales_q3_k(const struct span_scales *s, const uint8_t *w, floats d)
{
    const words low[2] = {load_words(w), load_words(w + 64)}, high = load_words(w + 128);
#pragma GCC unroll 16
    for (uint32_t j = 0; j < 16; j++) {
        const words six = (low[j / 4 % 2] >> j / 8 * 4 & splat_bytes(15)) |
                          (shifted(high, 4 - (int)(j / 4) * 2) & splat_bytes(48));
        const ints scale = (ints)(six >> j % 4 * 8 & 255) - 32;
        store_floats(s->scale + j * s->stride, as_floats(scale) * d);
    }
}

static TN_ALWAYS_INLINE words words_of_halves(const uint8_t *p)
{
    typedef uint16_t halves __attribute__((vector_size(2 * LANES), may_alias, aligned(2)));
    return __builtin_convertvector(*(const halves *)(const void *)p, words);
}

static TN_ALWAYS_INLINE void scales_iq4_xs(const struct span_scales *s, const uint8_t *w, floats d,
                                           words high)
{
    const words low = load_words(w);
#pragma GCC unroll 8
    for (uint32_t j = 0; j < 8; j++) {
        const words six = (low >> 4 * j & 15) | (high >> 2 * j & 3) << 4;
        store_floats(s->scale + j * s->stride, as_floats((ints)six - 32) * d);
    }
}

static TN_ALWAYS_INLINE void scales_iq2_s(const struct span_scales *s, const uint8_t *w, floats d,
                                          const uint32_t n)
{
#pragma GCC unroll 16
    for (uint32_t j = 0; j < n; j++) {
        const words four = load_words(w + j / 8 * 64) >> j % 8 * 4 & 15;
        store_floats(s->scale + j * s->stride, as_floats((ints)(four * 2 + 1)) * d);
    }
}

/* Scales of LANES rows; halves and w point at those of the first row. */
static TN_ALWAYS_INLINE void take_scales(const struct span_scales *s, const uint8_t *halves,
                                         const uint8_t *w, uint32_t n_cells, const uint32_t layout)
{
    const struct tn_block_shape shape = tn_block_shape(layout);
    const floats d = floats_of_halves(halves);
    const uint8_t *second = halves + 2 * TN_TILE_ROWS;
    switch (shape.scales) {
    case TN_SCALES_F16:
        scales_f16(s, halves, n_cells, shape);
        break;
    case TN_SCALES_Q2_K:
        scales_q2_k(s, w, d, floats_of_halves(second));
        break;
    case TN_SCALES_Q3_K:
        scales_q3_k(s, w, d);
        break;
    case TN_SCALES_Q4_K:
        scales_q4_k(s, w, d, floats_of_halves(second));
        break;
    case TN_SCALES_Q6_K:
        scales_q6_k(s, w, d);
        break;
    case TN_SCALES_IQ4_XS:
        scales_iq4_xs(s, w, d, words_of_halves(second));
        break;
    case TN_SCALES_IQ2_S:
        scales_iq2_s(s, w, d * shape.factor, TN_SPAN_COLS / shape.sub);
        break;
    }
}

#endif
