/* SPDX-License-Identifier: MIT
 *
 * Escapes of string literals in templates, by Python's rules.
 *
 * Called by lex.c only; knows nothing of tokens.
 */
#ifndef TN_JINJA_ESCAPE_H
#define TN_JINJA_ESCAPE_H

#include <stdbool.h>
#include <stddef.h>

/* Decodes a literal without its quotes: \n \t \\ \' \" \xHH \uHHHH \UHHHHHHHH \ooo and so on; an
 * unknown escape is kept verbatim.  dst has room for n bytes.  false: a truncated escape, a
 * surrogate, or \N{...}. */
bool tn_jinja_unescape(char *dst, size_t *n_dst, const char *src, size_t n);

#endif
