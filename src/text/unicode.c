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

/* Start of the character that ends at text[n - 1], n > 0. */
static size_t last_character(const char *text, size_t n)
{
    for (size_t back = 1; back <= 4 && back <= n; back++) {
        uint32_t c;
        if (((unsigned char)text[n - back] & 0xC0) != 0x80)
            return tn_utf8_next(text + n - back, back, &c) == back ? n - back : n - 1;
    }
    return n - 1;
}

void tn_text_strip(const char **text, size_t *n)
{
    uint32_t c;
    while (*n > 0) {
        size_t length = tn_utf8_next(*text, *n, &c);
        if (!is_stripped(c))
            break;
        *text += length;
        *n -= length;
    }
    while (*n > 0) {
        size_t start = last_character(*text, *n);
        tn_utf8_next(*text + start, *n - start, &c);
        if (!is_stripped(c))
            break;
        *n = start;
    }
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
