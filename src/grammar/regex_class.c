/* SPDX-License-Identifier: MIT
 *
 * Parses escapes and bracket classes of regular expressions (ECMA-262, "Pattern Semantics").
 *
 * Results are unsorted ranges of code points; nfa.c sorts and merges them.
 */
#include "grammar/regex_class.h"

#include <string.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/text_match.h"
#include "base/utf8.h"

/* ---- reading text ---- */

bool tn_regex_refuse(struct tn_regex_text *t, tern_status status, const char *at,
                     const char *what)
{
    size_t n = 0;
    for (const char *c = t->begin; c < at; c++)
        n += (*c & 0xC0) != 0x80;
    t->status = tn_fail(t->err, status, "%s at character %zu", what, n);
    return false;
}

uint32_t tn_regex_next(struct tn_regex_text *t)
{
    uint32_t c = 0;
    t->at += tn_utf8_character(t->at, (size_t)(t->end - t->at), &c);
    return c;
}

static bool accept_byte(struct tn_regex_text *t, char c)
{
    if (t->at == t->end || *t->at != c)
        return false;
    t->at++;
    return true;
}

/* ---- sets ---- */

static bool add(struct tn_regex_text *t, struct tn_character_set *set, uint32_t low,
                uint32_t high)
{
    if (set->n == TN_REGEX_MAX_RANGES)
        return tn_regex_refuse(t, TERN_LIMIT, t->at, "a class of more than 512 ranges");
    set->ranges[set->n++] = (struct tn_characters){low, high};
    return true;
}

/* Adds the ranges, or their complement.  They must ascend. */
static bool add_all(struct tn_regex_text *t, struct tn_character_set *set,
                    const struct tn_characters *ranges, size_t n, bool is_inverse)
{
    uint32_t next = 0;
    for (size_t i = 0; i < n; i++) {
        if (!is_inverse && !add(t, set, ranges[i].low, ranges[i].high))
            return false;
        if (is_inverse && ranges[i].low > next && !add(t, set, next, ranges[i].low - 1))
            return false;
        next = ranges[i].high + 1;
    }
    return !is_inverse || next > TN_LAST_CHARACTER || add(t, set, next, TN_LAST_CHARACTER);
}

static const struct tn_characters line_ends[] = {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};
static const struct tn_characters digits[] = {{'0', '9'}};
static const struct tn_characters words[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
static const struct tn_characters spaces[] = {
    {'\t', '\r'},     {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680}, {0x2000, 0x200A},
    {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};

void tn_regex_dot(struct tn_character_set *set)
{
    set->n = 0;
    (void)add_all(NULL, set, line_ends, TN_COUNT_OF(line_ends), true);
}

/* ---- escapes ---- */

/* Reads n hexadecimal digits. */
static bool read_hex(struct tn_regex_text *t, uint32_t n, uint32_t *c)
{
    *c = 0;
    for (; n > 0; n--, t->at++) {
        if (t->at == t->end || tn_hex_digit(*t->at) < 0)
            return tn_regex_refuse(t, TERN_USAGE, t->at, "a hexadecimal digit is missing");
        *c = *c * 16 + (uint32_t)tn_hex_digit(*t->at);
    }
    return true;
}

/* Reads the digits after \u{. */
static bool read_long_unit(struct tn_regex_text *t, uint32_t *c)
{
    const char *begin = t->at;
    *c = 0;
    while (t->at < t->end && tn_hex_digit(*t->at) >= 0 && *c <= TN_LAST_CHARACTER)
        *c = *c * 16 + (uint32_t)tn_hex_digit(*t->at++);
    if (t->at == begin || *c > TN_LAST_CHARACTER || !accept_byte(t, '}'))
        return tn_regex_refuse(t, TERN_USAGE, begin, "not a code point");
    return true;
}

/* Reads the digits after \u; a surrogate pair is one character. */
static bool read_unit(struct tn_regex_text *t, uint32_t *c)
{
    uint32_t low;
    if (accept_byte(t, '{'))
        return read_long_unit(t, c);
    if (!read_hex(t, 4, c))
        return false;
    if (*c < 0xD800 || *c > 0xDBFF || t->end - t->at < 6 || t->at[0] != '\\' || t->at[1] != 'u')
        return true;
    const char *second = t->at;
    t->at += 2;
    if (!read_hex(t, 4, &low))
        return false;
    if (low >= 0xDC00 && low <= 0xDFFF)
        *c = 0x10000 + ((*c - 0xD800) << 10) + (low - 0xDC00);
    else
        t->at = second;
    return true;
}

static bool read_control(struct tn_regex_text *t, uint32_t *c)
{
    const char letter = t->at < t->end ? *t->at : 0;
    if (!((letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z')))
        return tn_regex_refuse(t, TERN_USAGE, t->at, "no letter after \\c");
    t->at++;
    *c = (uint32_t)letter % 32;
    return true;
}

/* Reads an escape of a single character. */
static bool read_escaped(struct tn_regex_text *t, uint32_t *c)
{
    static const char names[] = "tnvfr0", values[] = "\t\n\v\f\r";
    const char *at = t->at;
    *c = tn_regex_next(t);
    const char *name = *c < 0x80 ? strchr(names, (int)*c) : NULL;
    if (*c == '0' && t->at < t->end && *t->at >= '0' && *t->at <= '9')
        return tn_regex_refuse(t, TERN_USAGE, at, "octal escape");
    if (name) {
        *c = (uint32_t)values[name - names];
        return true;
    }
    if (*c == 'c')
        return read_control(t, c);
    if (*c == 'x')
        return read_hex(t, 2, c);
    if (*c == 'u')
        return read_unit(t, c);
    if ((*c >= '1' && *c <= '9') || *c == 'k')
        return tn_regex_refuse(t, TERN_UNSUPPORTED, at - 1, "back-reference");
    if (*c == 'b' || *c == 'B')
        return tn_regex_refuse(t, TERN_UNSUPPORTED, at - 1, "word boundary");
    if (*c == 'p' || *c == 'P')
        return tn_regex_refuse(t, TERN_UNSUPPORTED, at - 1, "Unicode property");
    const bool is_letter = (*c | 32) >= 'a' && (*c | 32) <= 'z';
    if (*c >= 0x80 || is_letter)
        return tn_regex_refuse(t, TERN_USAGE, at - 1, "unknown escape");
    return true;
}

/* Reads \d and the like.  *is_set: there was one. */
static bool read_set(struct tn_regex_text *t, struct tn_character_set *set, bool *is_set)
{
    const char letter = *t->at, kind = letter | 32;
    *is_set = strchr("dDwWsS", letter) != NULL;
    if (!*is_set)
        return true;
    t->at++;
    const bool is_inverse = letter != kind;
    if (kind == 'd')
        return add_all(t, set, digits, TN_COUNT_OF(digits), is_inverse);
    if (kind == 'w')
        return add_all(t, set, words, TN_COUNT_OF(words), is_inverse);
    return add_all(t, set, spaces, TN_COUNT_OF(spaces), is_inverse);
}

bool tn_regex_escape(struct tn_regex_text *t, struct tn_character_set *set)
{
    bool is_set;
    uint32_t c;
    if (t->at == t->end)
        return tn_regex_refuse(t, TERN_USAGE, t->at, "nothing after \\");
    if (!read_set(t, set, &is_set) || is_set)
        return t->status == TERN_OK;
    return read_escaped(t, &c) && add(t, set, c, c);
}

/* ---- classes ---- */

/* Reads a character or a class escape in brackets.  *is_set: a class escape, which cannot bound a
 * range. */
static bool read_member(struct tn_regex_text *t, struct tn_character_set *set, bool *is_set,
                        uint32_t *c)
{
    *is_set = false;
    if (!accept_byte(t, '\\')) {
        *c = tn_regex_next(t);
        return true;
    }
    if (t->at == t->end)
        return tn_regex_refuse(t, TERN_USAGE, t->at, "nothing after \\");
    if (*t->at == 'b') { /* backspace, only in brackets */
        t->at++;
        *c = '\b';
        return true;
    }
    if (!read_set(t, set, is_set) || *is_set)
        return t->status == TERN_OK;
    return read_escaped(t, c);
}

/* Reads a range or a single member. */
static bool read_range(struct tn_regex_text *t, struct tn_character_set *set)
{
    const char *at = t->at;
    bool is_set, is_second_set;
    uint32_t low, high;
    if (!read_member(t, set, &is_set, &low))
        return false;
    const bool is_range = t->end - t->at >= 2 && t->at[0] == '-' && t->at[1] != ']';
    if (!is_range)
        return is_set || add(t, set, low, low);
    t->at++;
    if (!read_member(t, set, &is_second_set, &high))
        return false;
    if (is_set || is_second_set)
        return tn_regex_refuse(t, TERN_USAGE, at, "a range must be between single characters");
    if (low > high)
        return tn_regex_refuse(t, TERN_USAGE, at, "a range out of order");
    return add(t, set, low, high);
}

static bool invert(struct tn_regex_text *t, struct tn_character_set *set)
{
    struct tn_character_set copy = *set;
    copy.n = tn_characters_join(copy.ranges, copy.n);
    set->n = 0;
    return add_all(t, set, copy.ranges, copy.n, true);
}

bool tn_regex_brackets(struct tn_regex_text *t, struct tn_character_set *set)
{
    const char *begin = t->at - 1;
    const bool is_inverse = accept_byte(t, '^');
    while (t->at < t->end && *t->at != ']')
        if (!read_range(t, set))
            return false;
    if (!accept_byte(t, ']'))
        return tn_regex_refuse(t, TERN_USAGE, begin, "unclosed class");
    return !is_inverse || invert(t, set);
}
