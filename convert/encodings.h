/* SPDX-License-Identifier: MIT
 *
 * Encodings of matrices in GGUF files, one row each: bytes to trits and scales, or bytes to floats.
 * No I/O, no allocation.
 *
 * Weights are coded in consecutive units: a block of some columns, a row, or (one layout of I2_S)
 * four rows.  Blocks of I2_S may cross the end of a row, all others are inside one.  I2_S has
 * blocks of 128 weights in every published file, of 64 if the program that quantised was built for
 * Arm, and four interleaved rows from bitnet.cpp of 2026 without ACT_PARALLEL.
 *
 * The layouts were checked bit for bit against the programs that write them; the comments in
 * encodings.c give the order of weights in each.
 */
#ifndef TN_ENCODINGS_H
#define TN_ENCODINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/convert.h"

/* Decodes n units of `unit` weights each (see tn_encoding_unit).
 *   trits   [n * unit] -1, 0 or 1, in order of rows
 *   scales  [n] >= 0, finite; NULL if the tensor has one scale elsewhere (I2_S).  In a unit with
 *           scale 0 all trits are 0
 * Returns the number of good units: n, or the index of the first one with a code that no ternary
 * weight has, or a scale that is not finite. */
typedef size_t tn_decode_trits_fn(int8_t *trits, float *scales, const uint8_t *src, size_t n,
                                  uint32_t unit);

/* Writes n units as source blocks of the encoding's layout (kern/blocks.h).  A scale that these
 * cannot hold becomes infinite. */
typedef void tn_recode_fn(uint8_t *dst, const uint8_t *src, size_t n);

/* The type of a unit's scale. */
enum tn_scale_place { TN_NO_SCALE, TN_SCALE_F16, TN_SCALE_F32 };

struct tn_encoding {
    uint32_t type;  /* in GGUF files */
    uint32_t param; /* type 42: the block; type 36: enum tern_i2s_layout */
    const char *name;
    uint32_t unit;       /* weights per unit; 0: `unit_rows` whole rows */
    uint32_t unit_rows;
    uint32_t unit_bytes; /* for units of fixed size */
    enum tn_scale_place scale;
    uint32_t scale_at; /* byte offset in the unit */
    tn_decode_trits_fn *trits; /* NULL: there is a layout */
    uint32_t layout; /* enum tern_layout that preserves every value; 0: ternary */
    bool has_four_values; /* code 3 is valid: it means twice the scale */
    tn_recode_fn *recode; /* NULL: units are blocks of `layout` already */
};

/* The encoding of a type; NULL for plain floats, and if tern does not read it.  q2_block: struct
 * tn_gguf_part. */
const struct tn_encoding *tn_encoding_find(uint32_t type, uint32_t q2_block,
                                           enum tern_i2s_layout i2s);

/* Weights in a unit of a matrix with `cols` columns, and bytes per unit. */
uint32_t tn_encoding_unit(const struct tn_encoding *encoding, uint32_t cols);
uint32_t tn_encoding_unit_bytes(const struct tn_encoding *encoding, uint32_t cols);

/* The scales of n units as `trits` of the encoding returns them, without decoding.  Returns the
 * number of good ones: n, or the index of the first that is not finite. */
size_t tn_encoding_scales(const struct tn_encoding *encoding, float *scales, const uint8_t *src,
                          size_t n, uint32_t unit_bytes);

/* Decodes n units of an encoding with a layout into floats [n * unit], which may be NaN or
 * infinite. */
void tn_encoding_floats(const struct tn_encoding *encoding, float *dst, const uint8_t *src,
                        size_t n);

/* MXFP4, a byte for the exponent and 32 codes of 4 bits, as Q5_0: its values are -12 to 12 times a
 * power of 2, which is exact in f16 from 2^-24 to 2^15. */
tn_recode_fn tn_recode_mxfp4;

/* The types that index a grid (encodings_grid.c). */
tn_recode_fn tn_recode_iq2_xxs, tn_recode_iq2_xs, tn_recode_iq2_s;
tn_recode_fn tn_recode_iq3_xxs, tn_recode_iq3_s;

/* The reason why tern does not read a type, and advice; NULL for supported types. */
const char *tn_encoding_refusal(uint32_t type);

#endif
