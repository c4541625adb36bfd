/* SPDX-License-Identifier: MIT
 *
 * Floats as text in Python's format: templates and JSON output print the same digits as the Python
 * programs that they replace.  The decimal point is '.' whatever locale the host program has set.
 */
#ifndef TN_FLOAT_TEXT_H
#define TN_FLOAT_TEXT_H

#include <stddef.h>

#define TN_FLOAT_TEXT 40u

/* repr(x): the shortest digits that read back as x; "1.0", "1e-05", "inf", "nan".  Returns dst
 * [TN_FLOAT_TEXT]. */
const char *tn_float_text(char *dst, double x);
/* Writes the shortest digits of a finite x > 0, without a point, to digits [TN_FLOAT_TEXT]; returns
 * their number, at most 17.  *exponent: x = 0.d1d2d3... * 10^*exponent. */
size_t tn_float_digits(char *digits, int *exponent, double x);

/* strtod of a text that may be changed. */
double tn_float_parse(char *text, char **end);
/* Corrects the decimal point that snprintf wrote. */
void tn_float_put_point(char *text);

#endif
