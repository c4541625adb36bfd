/* SPDX-License-Identifier: MIT
 *
 * Well-formed UTF-8 (Unicode, table 3-7): no overlong forms, no surrogates, nothing beyond
 * U+10FFFF.
 */
#include "base/utf8.h"

#include <string.h>

size_t tn_utf8_character(const char *text, size_t n, uint32_t *c)
{
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char lead = (unsigned char)text[0];
    if (lead < 0x80) {
        *c = lead;
        return 1;
    }
    size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (lead < 0xC2 || lead > 0xF4 || n < length)
        return 0;
    uint32_t code = lead & (0xFFu >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        unsigned char byte = (unsigned char)text[i];
        if ((byte & 0xC0) != 0x80)
            return 0;
        code = code << 6 | (byte & 0x3F);
    }
    if (code < least[length] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF))
        return 0;
    *c = code;
    return length;
}

/* Which control characters keep a text from being shown. */
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
        length = tn_utf8_character(text + i, n - i, &c);
        if (length == 0 || is_refused(c, controls))
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
        length = tn_utf8_character(text + i, n - i, &c);
        if (length == 0 || tn_is_control(c)) {
            *end++ = '?';
            length = length ? length : 1;
        } else {
            memmove(end, text + i, length);
            end += length;
        }
    }
    *end = '\0';
}
