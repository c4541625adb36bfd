/* SPDX-License-Identifier: MIT
 *
 * Well-formed UTF-8 (Unicode, table 3-7): no overlong forms, no surrogates, nothing beyond
 * U+10FFFF.
 */
#include "base/utf8.h"

#include <string.h>

/* The length that a first byte announces (0: no character begins with it), its bits of the code
 * point, and the range of the second byte. */
static size_t sequence_length(unsigned char first, uint32_t *bits, unsigned char *low,
                              unsigned char *high)
{
    *low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    *high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    *bits = first;
    if (first < 0x80)
        return 1;
    if (first < 0xC2 || first > 0xF4)
        return 0;
    const size_t length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    *bits = first & (0x7Fu >> length);
    return length;
}

enum tn_utf8_kind tn_utf8_scan(const char *text, size_t n, size_t *n_bytes, uint32_t *c)
{
    unsigned char low, high;
    uint32_t code;
    const size_t length = sequence_length((unsigned char)text[0], &code, &low, &high);
    *c = TN_NOT_UTF8;
    *n_bytes = 1;
    if (length == 0)
        return TN_UTF8_INVALID;
    for (; *n_bytes < length; ++*n_bytes) {
        if (*n_bytes == n)
            return TN_UTF8_PARTIAL;
        const unsigned char byte = (unsigned char)text[*n_bytes];
        if (byte < low || byte > high)
            return TN_UTF8_INVALID;
        code = code << 6 | (byte & 0x3F);
        low = 0x80;
        high = 0xBF;
    }
    *c = code;
    return TN_UTF8_CHARACTER;
}

size_t tn_utf8_next_multibyte(const char *text, size_t n, uint32_t *c)
{
    size_t length;
    return tn_utf8_scan(text, n, &length, c) == TN_UTF8_CHARACTER ? length : 1;
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

size_t tn_utf8_put(uint32_t c, char *out)
{
    static const unsigned char marks[] = {0, 0, 0xC0, 0xE0, 0xF0};
    const size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    if (c > 0x10FFFF)
        return 0;
    for (size_t i = n; i-- > 1; c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3F));
    out[0] = (char)(marks[n] | c);
    return n;
}

/* Which control characters make a text unprintable. */
enum controls { CONTROLS_ALLOWED, CONTROLS_OF_LINES, NO_CONTROLS };

static bool is_refused(uint32_t c, enum controls controls)
{
    bool of_lines = c == '\n' || c == '\r' || c == '\t' || c == '\f' || c >= 0x80;
    return controls != CONTROLS_ALLOWED && tn_is_control(c) &&
           (controls == NO_CONTROLS || !of_lines);
}

static size_t find(const char *text, size_t n, enum controls controls)
{
    size_t i = 0;
    uint32_t c;
    for (size_t length; i < n; i += length) {
        length = tn_utf8_next(text + i, n - i, &c);
        if (c == TN_NOT_UTF8 || is_refused(c, controls))
            break;
    }
    return i;
}

size_t tn_utf8_find_invalid(const char *text, size_t n)
{
    return find(text, n, CONTROLS_ALLOWED);
}

size_t tn_utf8_find_bad(const char *text, size_t n, bool single_line)
{
    return find(text, n, single_line ? NO_CONTROLS : CONTROLS_OF_LINES);
}

void tn_utf8_make_printable(char *text)
{
    const size_t n = strlen(text);
    char *end = text;
    for (size_t i = 0, length; i < n; i += length) {
        uint32_t c;
        length = tn_utf8_next(text + i, n - i, &c);
        if (c == TN_NOT_UTF8 || tn_is_control(c)) {
            *end++ = '?';
        } else {
            memmove(end, text + i, length);
            end += length;
        }
    }
    *end = '\0';
}
