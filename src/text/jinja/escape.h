/* SPDX-License-Identifier: MIT
 *
 * Escapes of string literals.
 */
#ifndef TN_JINJA_ESCAPE_H
#define TN_JINJA_ESCAPE_H

#include <stdbool.h>
#include <stddef.h>

/* The value of a literal without its quotes, by Python's rules: \n \t \\ \' \" \xHH \uHHHH
 * \UHHHHHHHH \ooo and so on; an unknown escape stays as it is.  dst has room for n bytes.  False
 * for one that is cut, a surrogate, or \N{...}. */
bool tn_jinja_unescape(char *dst, size_t *n_dst, const char *src, size_t n);

#endif
