/* SPDX-License-Identifier: MIT
 *
 * Case, classes and white space of characters.
 *
 * Case and printability come from utf8proc: templates show them, and they never decide token ids.
 */
#include "text/unicode.h"

#include <utf8proc.h>

/* Skips characters that are white space, or are not. */
static void skip(const char **text, size_t *n, bool is_space)
{
    uint32_t c;
    while (*n > 0) {
        size_t length = tn_utf8_next(*text, *n, &c);
        if (tn_char_is_stripped(c) != is_space)
            break;
        *text += length;
        *n -= length;
    }
}

void tn_text_skip_space(const char **text, size_t *n)
{
    skip(text, n, true);
}

void tn_text_strip_end(const char *text, size_t *n)
{
    uint32_t c;
    while (*n > 0) {
        size_t start = tn_utf8_last(text, *n);
        tn_utf8_next(text + start, *n - start, &c);
        if (!tn_char_is_stripped(c))
            break;
        *n = start;
    }
}

void tn_text_skip_word(const char **text, size_t *n)
{
    skip(text, n, false);
}

bool tn_char_is_printable(uint32_t c)
{
    if (c < 0x80)
        return c >= 0x20 && c != 0x7F;
    switch (utf8proc_category((utf8proc_int32_t)c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
        return false;
    default:
        return true;
    }
}

uint32_t tn_char_upper(uint32_t c)
{
    return c < 0x110000 ? (uint32_t)utf8proc_toupper((utf8proc_int32_t)c) : c;
}

uint32_t tn_char_title(uint32_t c)
{
    return c < 0x110000 ? (uint32_t)utf8proc_totitle((utf8proc_int32_t)c) : c;
}

uint32_t tn_char_lower(uint32_t c)
{
    return c < 0x110000 ? (uint32_t)utf8proc_tolower((utf8proc_int32_t)c) : c;
}
