/* SPDX-License-Identifier: MIT
 *
 * Well-formed UTF-8 (Unicode, table 3-7): no overlong forms, no surrogates, nothing beyond
 * U+10FFFF.
 */
#include "utf8.h"

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

size_t tn_utf8_find_invalid(const char *text, size_t n)
{
    size_t i = 0;
    uint32_t c;
    for (size_t length; i < n; i += length) {
        length = tn_utf8_character(text + i, n - i, &c);
        if (length == 0)
            break;
    }
    return i;
}
