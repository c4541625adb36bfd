/* SPDX-License-Identifier: MIT
 *
 * UTF-8: decoding, encoding, the first malformed byte of a text, and the characters that may not
 * reach a terminal.
 */
#ifndef TN_UTF8_H
#define TN_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A byte that is not part of a UTF-8 character. */
#define TN_NOT_UTF8 0xFFFFFFFFu

/* Classifies the bytes at text[0], n > 0. */
enum tn_utf8_kind {
    TN_UTF8_CHARACTER, /* *n_bytes is its length */
    TN_UTF8_PARTIAL,   /* all n bytes are the beginning of a character */
    TN_UTF8_INVALID,   /* n_bytes is the maximal subpart, which one U+FFFD replaces */
};
/* Writes the code point to *c, TN_NOT_UTF8 unless the character is complete. */
enum tn_utf8_kind tn_utf8_scan(const char *text, size_t n, size_t *n_bytes, uint32_t *c);

size_t tn_utf8_next_multibyte(const char *text, size_t n, uint32_t *c);

/* The character at text[0], n > 0: stores the code point and returns its length, or stores
 * TN_NOT_UTF8 and returns 1. */
static inline size_t tn_utf8_next(const char *text, size_t n, uint32_t *c)
{
    const unsigned char first = (unsigned char)text[0];
    if (first >= 0x80)
        return tn_utf8_next_multibyte(text, n, c);
    *c = first;
    return 1;
}

/* Length of the character at text[0], n > 0, and its code point; 0: there is none. */
static inline size_t tn_utf8_character(const char *text, size_t n, uint32_t *c)
{
    const size_t length = tn_utf8_next(text, n, c);
    return *c == TN_NOT_UTF8 ? 0 : length;
}

/* Offset of the character that ends at text[n - 1], n > 0. */
size_t tn_utf8_last(const char *text, size_t n);

/* Writes a code point to out[4]; returns its length, 0 beyond U+10FFFF. */
size_t tn_utf8_put(uint32_t c, char *out);

/* Offset of the first byte that does not begin a well-formed character; n if there is none. */
size_t tn_utf8_find_invalid(const char *text, size_t n);

/* Offset of the first byte that does not begin a printable character: not UTF-8, or a control
 * character.  Texts of several lines may contain LF, CR, FF, tabs and C1.  n: there is none. */
size_t tn_utf8_find_bad(const char *text, size_t n, bool single_line);

/* The largest length up to n that ends between characters; text[n] is read. */
static inline size_t tn_utf8_cut(const char *text, size_t n)
{
    while (n > 0 && ((unsigned char)text[n] & 0xC0) == 0x80)
        n--;
    return n;
}

/* Replaces bytes that are not UTF-8 (such as a name cut by %.80s) and control characters by '?'. */
void tn_utf8_make_printable(char *text);

/* C0, DEL and C1 (U+0080 to U+009F, also used by UTF-8 terminals), including line endings. */
static inline bool tn_is_control(uint32_t c)
{
    return c < 0x20 || (c >= 0x7F && c < 0xA0);
}

#endif
