/* SPDX-License-Identifier: MIT
 *
 * UTF-8 decoding, maximal subparts, case and strip.
 */
#include "text/unicode.h"

#include <utf8proc.h>

size_t tn_utf8_next_multibyte(const char *text, size_t n, uint32_t *c)
{
    utf8proc_int32_t value;
    utf8proc_ssize_t length = utf8proc_iterate((const utf8proc_uint8_t *)text,
                                               n < 4 ? (utf8proc_ssize_t)n : 4, &value);
    if (length <= 0) {
        *c = TN_NOT_UTF8;
        return 1;
    }
    *c = (uint32_t)value;
    return (size_t)length;
}

/* Length that a first byte announces (0: no character starts with it) and the range of the second
 * byte: Unicode standard, table 3-7. */
static size_t sequence_length(unsigned char first, unsigned char *low, unsigned char *high)
{
    *low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    *high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    if (first < 0x80)
        return 1;
    if (first < 0xC2 || first > 0xF4)
        return 0;
    return first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

enum tn_utf8_kind tn_utf8_scan(const char *text, size_t n, size_t *n_bytes)
{
    unsigned char low, high;
    size_t length = sequence_length((unsigned char)text[0], &low, &high);
    *n_bytes = 1;
    if (length == 0)
        return TN_UTF8_INVALID;
    for (; *n_bytes < length; ++*n_bytes) {
        if (*n_bytes == n)
            return TN_UTF8_PARTIAL;
        unsigned char c = (unsigned char)text[*n_bytes];
        if (c < low || c > high)
            return TN_UTF8_INVALID;
        low = 0x80;
        high = 0xBF;
    }
    return TN_UTF8_CHARACTER;
}

static bool is_stripped(uint32_t c)
{
    return (c >= 0x1C && c <= 0x1F) || tn_char_class(c) == TN_CHAR_SPACE;
}

size_t tn_utf8_last(const char *text, size_t n)
{
    for (size_t back = 1; back <= 4 && back <= n; back++) {
        uint32_t c;
        if (((unsigned char)text[n - back] & 0xC0) != 0x80)
            return tn_utf8_next(text + n - back, back, &c) == back ? n - back : n - 1;
    }
    return n - 1;
}

void tn_text_skip_space(const char **text, size_t *n)
{
    uint32_t c;
    while (*n > 0) {
        size_t length = tn_utf8_next(*text, *n, &c);
        if (!is_stripped(c))
            break;
        *text += length;
        *n -= length;
    }
}

void tn_text_strip_end(const char *text, size_t *n)
{
    uint32_t c;
    while (*n > 0) {
        size_t start = tn_utf8_last(text, *n);
        tn_utf8_next(text + start, *n - start, &c);
        if (!is_stripped(c))
            break;
        *n = start;
    }
}

void tn_text_strip(const char **text, size_t *n)
{
    tn_text_skip_space(text, n);
    tn_text_strip_end(*text, n);
}

void tn_text_skip_word(const char **text, size_t *n)
{
    uint32_t c;
    while (*n > 0) {
        size_t length = tn_utf8_next(*text, *n, &c);
        if (is_stripped(c))
            break;
        *text += length;
        *n -= length;
    }
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

size_t tn_utf8_put(uint32_t c, char *out)
{
    return (size_t)utf8proc_encode_char((utf8proc_int32_t)c, (utf8proc_uint8_t *)out);
}
