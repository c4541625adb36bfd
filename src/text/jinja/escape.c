/* SPDX-License-Identifier: MIT
 *
 * Decodes the escapes of string literals by Python's rules.
 *
 * Called by the lexer for each string literal; the result is never longer than the literal.
 */
#include "text/jinja/escape.h"

#include <stdint.h>
#include <string.h>

#include "base/text_match.h"
#include "base/utf8.h"

static int digit_of(char c, unsigned base)
{
    const int d = tn_hex_digit(c);
    return d < (int)base ? d : -1;
}

/* Reads up to `most` digits.  Returns their number. */
static size_t read_digits(uint32_t *value, const char *src, size_t n, size_t most, unsigned base)
{
    size_t i = 0;
    *value = 0;
    for (; i < n && i < most && digit_of(src[i], base) >= 0; i++)
        *value = *value * base + (uint32_t)digit_of(src[i], base);
    return i;
}

static bool put_character(char *dst, size_t *n_dst, uint32_t c)
{
    if (c >= 0x110000 || (c >= 0xD800 && c < 0xE000))
        return false;
    *n_dst += tn_utf8_put(c, dst + *n_dst);
    return true;
}

/* Decodes \x, \u or \U with exactly n_digits digits and advances *at past them. */
static bool unescape_hex(char *dst, size_t *n_dst, const char *src, size_t n, size_t *at,
                         size_t n_digits)
{
    uint32_t c;
    if (read_digits(&c, src + *at, n - *at, n_digits, 16) != n_digits)
        return false;
    *at += n_digits;
    return put_character(dst, n_dst, c);
}

bool tn_jinja_unescape(char *dst, size_t *n_dst, const char *src, size_t n)
{
    static const char from[] = "abfnrtv\\'\"", to[] = "\a\b\f\n\r\t\v\\'\"";
    size_t at = 0;
    *n_dst = 0;
    while (at < n) {
        char c = src[at++];
        if (c != '\\' || at == n) {
            dst[(*n_dst)++] = c;
            continue;
        }
        c = src[at++];
        const char *simple = memchr(from, c, sizeof from - 1);
        uint32_t octal;
        if (c == '\n')
            continue; /* line continuation */
        if (simple) {
            dst[(*n_dst)++] = to[simple - from];
        } else if (c == 'x' || c == 'u' || c == 'U') {
            if (!unescape_hex(dst, n_dst, src, n, &at, c == 'x' ? 2 : c == 'u' ? 4 : 8))
                return false;
        } else if (c >= '0' && c <= '7') {
            at += read_digits(&octal, src + at - 1, n - at + 1, 3, 8) - 1;
            if (!put_character(dst, n_dst, octal))
                return false;
        } else if (c == 'N') {
            return false;
        } else {
            dst[(*n_dst)++] = '\\';
            dst[(*n_dst)++] = c;
        }
    }
    return true;
}
