/* SPDX-License-Identifier: MIT
 *
 * Floats as text, as Python writes them.
 */
#ifndef TN_JINJA_NUMBER_H
#define TN_JINJA_NUMBER_H

#define TN_NUMBER_TEXT 40u

/* repr(x): the shortest digits that give x again; "1.0", "1e-05", "inf", "nan".  Returns dst
 * [TN_NUMBER_TEXT]. */
const char *tn_float_text(char *dst, double x);

#endif
