/* SPDX-License-Identifier: MIT
 *
 * Writes JSON strings (RFC 8259, section 7) without an intermediate copy.
 *
 * Only quotes, backslashes and control characters are escaped; other characters stay UTF-8.
 */
#include "chat/json_text.h"

#include <string.h>

/* The letter of a two-character escape; 0: none. */
static char short_escape(unsigned char c)
{
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    const char *at = c ? strchr(from, c) : NULL;
    return at ? to[at - from] : '\0';
}

void tn_json_put_string(struct tn_buf *out, const char *text, size_t n)
{
    size_t start = 0;
    tn_buf_append(out, "\"", 1);
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        char letter = short_escape(c);
        if (!letter && c >= 0x20 && c != 0x7F)
            continue;
        tn_buf_append(out, text + start, i - start);
        start = i + 1;
        if (letter)
            tn_buf_append(out, (char[]){'\\', letter}, 2);
        else
            tn_buf_printf(out, "\\u%04x", c);
    }
    if (n > start)
        tn_buf_append(out, text + start, n - start);
    tn_buf_append(out, "\"", 1);
}
