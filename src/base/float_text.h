/* SPDX-License-Identifier: MIT
 *
 * Floats as text, as Python writes them.
 */
#ifndef TN_FLOAT_TEXT_H
#define TN_FLOAT_TEXT_H

#include <stddef.h>

#define TN_FLOAT_TEXT 40u

/* repr(x): the shortest digits that give x again; "1.0", "1e-05", "inf", "nan".  Returns dst
 * [TN_FLOAT_TEXT]. */
const char *tn_float_text(char *dst, double x);
/* The shortest digits of a finite x > 0, without a point, into digits [TN_FLOAT_TEXT]; returns how
 * many they are, at most 17.  *exponent: x = 0.d1d2d3... * 10^it. */
size_t tn_float_digits(char *digits, int *exponent, double x);

#endif
