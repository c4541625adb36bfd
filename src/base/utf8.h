/* SPDX-License-Identifier: MIT
 *
 * UTF-8, decoded and written; where a text stops being UTF-8; which characters may not reach a
 * terminal.
 */
#ifndef TN_UTF8_H
#define TN_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A byte that is no part of a UTF-8 character. */
#define TN_NOT_UTF8 0xFFFFFFFFu

/* What the bytes at text[0], n > 0, are. */
enum tn_utf8_kind {
    TN_UTF8_CHARACTER, /* *n_bytes is its length */
    TN_UTF8_PARTIAL,   /* all n bytes are the start of a character */
    TN_UTF8_INVALID,   /* *n_bytes is the maximal subpart: what one U+FFFD replaces */
};
/* *c: the code point, TN_NOT_UTF8 unless it is a whole character. */
enum tn_utf8_kind tn_utf8_scan(const char *text, size_t n, size_t *n_bytes, uint32_t *c);

size_t tn_utf8_next_multibyte(const char *text, size_t n, uint32_t *c);

/* The character at text[0], n > 0: stores the code point and returns its bytes, or stores
 * TN_NOT_UTF8 and returns 1. */
static inline size_t tn_utf8_next(const char *text, size_t n, uint32_t *c)
{
    const unsigned char first = (unsigned char)text[0];
    if (first >= 0x80)
        return tn_utf8_next_multibyte(text, n, c);
    *c = first;
    return 1;
}

/* Bytes of the character at text[0], n > 0, and its code point; 0: there is none. */
static inline size_t tn_utf8_character(const char *text, size_t n, uint32_t *c)
{
    const size_t length = tn_utf8_next(text, n, c);
    return *c == TN_NOT_UTF8 ? 0 : length;
}

/* Start of the character that ends at text[n - 1], n > 0. */
size_t tn_utf8_last(const char *text, size_t n);

/* Writes a code point to out[4]; returns the bytes, 0 beyond U+10FFFF. */
size_t tn_utf8_put(uint32_t c, char *out);

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
