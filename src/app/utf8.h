/* SPDX-License-Identifier: MIT
 *
 * Is this UTF-8, and where is it not.
 */
#ifndef TN_APP_UTF8_H
#define TN_APP_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of the well-formed character at text[0], n > 0, and its code point; 0: there is none. */
size_t tn_utf8_character(const char *text, size_t n, uint32_t *c);

/* Offset of the first byte that begins no well-formed character; n when all is well. */
size_t tn_utf8_find_invalid(const char *text, size_t n);

#endif
