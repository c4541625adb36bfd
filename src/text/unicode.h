/* SPDX-License-Identifier: MIT
 *
 * Character classes, case and NFC.
 *
 * Whatever decides token ids comes from tables pinned to the reference's Unicode versions
 * (unicode_tables.c), never from a library of the system.  unicode.c uses utf8proc for case and
 * printability only.
 */
#ifndef TN_UNICODE_H
#define TN_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "text/unicode_tables.h"

enum tn_char_class {
    TN_CHAR_OTHER = 0,
    TN_CHAR_LETTER = 1, /* \p{L} */
    TN_CHAR_NUMBER = 2, /* \p{N} */
    TN_CHAR_SPACE = 3,  /* \s: White_Space */
};

/* Properties independent of the class and of each other; the class takes bits 0 and 1. */
enum tn_char_flag {
    TN_CHAR_PUNCTUATION = 4,     /* \p{P} */
    /* the reference's Punctuation: ASCII punctuation, and P of Unicode 8 */
    TN_CHAR_OLD_PUNCTUATION = 8,
    TN_CHAR_WORD = 16,           /* \w */
    TN_CHAR_MARK = 32,           /* \p{M} */
    TN_CHAR_CAPITAL = 64,        /* \p{Lu}, \p{Lt} */
    TN_CHAR_SMALL = 128,         /* \p{Ll} */
    TN_CHAR_SYMBOL = 256,        /* \p{S} */
};

/* Class and flags; TN_CHAR_OTHER for TN_NOT_UTF8. */
static inline uint32_t tn_char_properties(uint32_t c)
{
    if (c >= 0x110000)
        return TN_CHAR_OTHER;
    const uint8_t pair = tn_unicode_kinds[tn_unicode_block[c >> 8]][(c & 0xFF) >> 1];
    return tn_unicode_properties[pair >> (c & 1) * 4 & 15];
}

static inline enum tn_char_class tn_char_class(uint32_t c)
{
    return (enum tn_char_class)(tn_char_properties(c) & 3);
}

static inline bool tn_char_is(uint32_t c, enum tn_char_flag flag)
{
    return tn_char_properties(c) & flag;
}

/* Is the text in NFC already?  An invalid byte is a starter. */
bool tn_nfc_is_normal(const char *text, size_t n);
/* Appends the text in NFC.  false: out of memory.  O(n log n); needs work memory for the longest
 * run of combining marks. */
bool tn_nfc_append(struct tn_buf *out, const char *text, size_t n);

/* Python's str.isspace() for one character: White_Space and U+001C..001F. */
static inline bool tn_char_is_stripped(uint32_t c)
{
    return (c >= 0x1C && c <= 0x1F) || tn_char_class(c) == TN_CHAR_SPACE;
}

/* Python's str.lstrip() and rstrip(). */
void tn_text_skip_space(const char **text, size_t *n);
void tn_text_strip_end(const char *text, size_t *n);
/* Skips characters up to the next white space. */
void tn_text_skip_word(const char **text, size_t *n);

/* Simple case mapping of a character; itself if it has none. */
uint32_t tn_char_title(uint32_t c);
uint32_t tn_char_upper(uint32_t c);
uint32_t tn_char_lower(uint32_t c);
/* Python's str.isprintable() for one character: not a control, format, surrogate, private-use or
 * unassigned character, nor a separator other than the blank. */
bool tn_char_is_printable(uint32_t c);

#endif
