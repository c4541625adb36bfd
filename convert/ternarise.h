/* SPDX-License-Identifier: MIT
 *
 * Arithmetic of the conversion: latent floats to trits (absmean), packed codes to trits, and rows
 * of the embedding to q8.  No I/O, no allocation.  Written so that compilers vectorise it for any
 * processor, with the same results.
 */
#ifndef TN_TERNARISE_H
#define TN_TERNARISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "convert/source.h"

/* ---- floats of any of the three types: BF16, F16, F32 ---- */

/* Values to f32, exact. src needs no alignment. */
void tn_floats_load(float *dst, enum tn_dtype dtype, const void *src, size_t n);

/* Index of the first NaN or infinity; n if there is none. */
size_t tn_floats_find_nonfinite(enum tn_dtype dtype, const void *src, size_t n);

/* ---- absmean ---- */

/* Running sum of |w|: element i of the whole tensor is added to lane i mod 16 in ascending order,
 * in float64; then the lanes are added as a tree (8 to 8, 4 to 4, ...).  So the result does not
 * depend on how a tensor is cut into pieces, as long as all except the last have a multiple of 16
 * elements. */
struct tn_absmean {
    double lane[16];
    uint64_t n;
};

void tn_absmean_add(struct tn_absmean *sum, enum tn_dtype dtype, const void *src, size_t n);
/* max(mean of |w|, 1e-5); NaN or infinity if some value is. */
double tn_absmean_get(const struct tn_absmean *sum);

/* The trit of w is clamp(rne(w * (1 / mean)), -1, 1), with the product in float64.  It is nonzero
 * exactly if the product exceeds one half, and the product grows with |w|: returns the smallest
 * magnitude, as bits of the type without the sign, whose trit is not 0. */
uint32_t tn_trit_threshold(enum tn_dtype dtype, double mean);

/* Trits of n finite values. */
void tn_trits_from_floats(int8_t *dst, enum tn_dtype dtype, const void *src, size_t n,
                          uint32_t threshold);

/* ---- floats that are exactly scale * trit ---- */

/* Trits of n finite values that are 0 or of one magnitude, which becomes the scale (0 if all are
 * 0). False if there are two magnitudes: dst is then invalid. */
bool tn_trits_exact(int8_t *dst, float *scale, enum tn_dtype dtype, const void *src, size_t n);

/* How many of the values are farther than a sixteenth of the largest magnitude from 0 and from it:
 * most of n random weights, few of ternary ones that were rounded or damaged. */
size_t tn_trits_count_far(enum tn_dtype dtype, const void *src, size_t n);

/* The largest distance of a magnitude from 0 and from the largest magnitude, whichever is nearer,
 * in units of the latter: 0 to 0.5.  *i: the index of that value. */
double tn_trits_distance(enum tn_dtype dtype, const void *src, size_t n, size_t *i);

/* ---- packed codes ---- */

/* dst[i] = ((src[i] >> shift) & 3) - 1; ORs into *bad bits that only code 3 sets.  Vectors of bytes
 * can only be shifted by a constant, so callers pass one. */
static TN_ALWAYS_INLINE void tn_codes_to_trits(int8_t *dst, const uint8_t *src, size_t n, int shift,
                                               uint8_t *bad)
{
    uint8_t seen = *bad;
    for (size_t i = 0; i < n; i++) {
        const uint8_t code = (uint8_t)(src[i] >> shift) & 3;
        seen |= code & (uint8_t)(code >> 1);
        dst[i] = (int8_t)(code - 1);
    }
    *bad = seen;
}

/* The same for 0, 2, 4 and 6.  False if a code is 3 (dst is 2 there). */
bool tn_trits_from_codes(int8_t *dst, const uint8_t *src, size_t n, uint32_t shift);

size_t tn_trits_count_zeros(const int8_t *trits, size_t n);

/* ---- rows of embedding and head ---- */

/* scale = max|w| / max, dst[i] = rne(w / scale) in [-max, max]; 0 and scale 0 for a row of zeros.
 * max: 127 for q8, 31 for q6, 7 for q4. All values are finite. Returns the scale. */
float tn_round_row(int8_t *dst, const float *src, size_t n, int32_t max);

#endif
