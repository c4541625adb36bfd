/* SPDX-License-Identifier: MIT
 *
 * Is a text well-formed UTF-8, and if not, at which byte does it stop being so? Which characters
 * must not reach a terminal?
 */
#ifndef TN_UTF8_H
#define TN_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the well-formed character at text[0], n > 0, and its code point; 0: there is none. */
size_t tn_utf8_character(const char *text, size_t n, uint32_t *c);

/* Offset of the first byte that begins no well-formed character; n when all is well. */
size_t tn_utf8_find_invalid(const char *text, size_t n);

/* Offset of the first byte that begins no character of a text that people may see: not UTF-8, or a
 * control character.  Texts of several lines may hold LF, CR, FF, tabs and C1.  n: all is well. */
size_t tn_utf8_find_bad(const char *text, size_t n, bool single_line);

/* The most of the first n bytes of a text that ends between characters; text[n] is read. */
static inline size_t tn_utf8_cut(const char *text, size_t n)
{
    while (n > 0 && ((unsigned char)text[n] & 0xC0) == 0x80)
        n--;
    return n;
}

/* Bytes that are not UTF-8, such as a name that %.80s cut, and control characters become '?'. */
void tn_utf8_make_printable(char *text);

/* C0, DEL and C1 (U+0080 to U+009F, which UTF-8 terminals obey too): line ends are among them. */
static inline bool tn_is_control(uint32_t c)
{
    return c < 0x20 || (c >= 0x7F && c < 0xA0);
}

#endif
