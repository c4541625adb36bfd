/* SPDX-License-Identifier: MIT
 *
 * Reads names, escapes, classes and numbers as llama.cpp does; escaped punctuation is itself, which
 * llama.cpp refuses for some of it.
 */
#include "grammar/gbnf_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text_match.h"
#include "base/utf8.h"

void tn_gbnf_add_place(const struct tn_gbnf_text *t, const char *at)
{
    size_t line = 1, column = 1;
    char place[64];
    for (const char *c = t->begin; c < at; c++) {
        line += *c == '\n';
        column = *c == '\n' ? 1 : column + ((*c & 0xC0) != 0x80);
    }
    snprintf(place, sizeof place, "line %zu, column %zu", line, column);
    tn_fail_prefix(t->err, place);
}

bool tn_gbnf_refuse(struct tn_gbnf_text *t, tern_status status, const char *at,
                    const char *format, ...)
{
    va_list args;
    va_start(args, format);
    t->status = tn_vfail(t->err, status, format, args);
    va_end(args);
    tn_gbnf_add_place(t, at);
    return false;
}

char tn_gbnf_peek(const struct tn_gbnf_text *t)
{
    return t->at < t->end ? *t->at : '\0';
}

bool tn_gbnf_accept(struct tn_gbnf_text *t, const char *word)
{
    const size_t n = strlen(word);
    if ((size_t)(t->end - t->at) < n || memcmp(t->at, word, n) != 0)
        return false;
    t->at += n;
    return true;
}

void tn_gbnf_space(struct tn_gbnf_text *t, bool with_lines)
{
    for (;; t->at++) {
        const char c = tn_gbnf_peek(t);
        if (c == '#')
            while (t->at + 1 < t->end && t->at[1] != '\n' && t->at[1] != '\r')
                t->at++;
        else if (!(c == ' ' || c == '\t' || (with_lines && (c == '\n' || c == '\r'))))
            return;
    }
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_alphanumeric(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_in_name(char c)
{
    return is_alphanumeric(c) || c == '-' || c == '_';
}

size_t tn_gbnf_name(const struct tn_gbnf_text *t)
{
    size_t n = 0;
    while (t->at + n < t->end && is_in_name(t->at[n]))
        n++;
    return n;
}

bool tn_gbnf_number(struct tn_gbnf_text *t, uint32_t max, uint32_t *n)
{
    const char *begin = t->at;
    for (*n = 0; is_digit(tn_gbnf_peek(t)) && *n <= max; t->at++)
        *n = *n * 10 + (uint32_t)(*t->at - '0');
    if (t->at == begin)
        return tn_gbnf_refuse(t, TERN_USAGE, begin, "a number is missing");
    return *n <= max || tn_gbnf_refuse(t, TERN_LIMIT, begin, "more than %u repetitions", max);
}

/* Reads n hexadecimal digits of a code point. */
static bool read_code_point(struct tn_gbnf_text *t, uint32_t n, uint32_t *c)
{
    const char *begin = t->at;
    for (*c = 0; n > 0; n--, t->at++) {
        if (tn_hex_digit(tn_gbnf_peek(t)) < 0)
            return tn_gbnf_refuse(t, TERN_USAGE, t->at, "a hexadecimal digit is missing");
        *c = *c * 16 + (uint32_t)tn_hex_digit(*t->at);
    }
    return !(*c > TN_LAST_CHARACTER || (*c >= 0xD800 && *c <= 0xDFFF)) ||
           tn_gbnf_refuse(t, TERN_USAGE, begin, "not a character");
}

bool tn_gbnf_character(struct tn_gbnf_text *t, uint32_t *c)
{
    const char *begin = t->at;
    t->at += tn_utf8_next(t->at, (size_t)(t->end - t->at), c);
    if (*c != '\\')
        return true;
    const char escape = tn_gbnf_peek(t);
    t->at += t->at < t->end;
    switch (escape) {
    case 'x':
        return read_code_point(t, 2, c);
    case 'u':
        return read_code_point(t, 4, c);
    case 'U':
        return read_code_point(t, 8, c);
    case 't':
        *c = '\t';
        return true;
    case 'r':
        *c = '\r';
        return true;
    case 'n':
        *c = '\n';
        return true;
    default:
        *c = (unsigned char)escape;
        return (escape > ' ' && escape < 0x7F && !is_alphanumeric(escape)) ||
               tn_gbnf_refuse(t, TERN_USAGE, begin, "an unknown escape");
    }
}

/* Turns ranges that ascend with gaps between them into their complement. */
static void invert(struct tn_character_set *set)
{
    uint32_t next = 1, n = 0;
    for (uint32_t i = 0; i < set->n; i++) {
        const struct tn_characters range = set->ranges[i];
        if (range.low > next)
            set->ranges[n++] = (struct tn_characters){next, range.low - 1};
        next = range.high + 1;
    }
    if (next <= TN_LAST_CHARACTER)
        set->ranges[n++] = (struct tn_characters){next, TN_LAST_CHARACTER};
    set->n = n;
}

/* Reads a character or a range of them. */
static bool read_range(struct tn_gbnf_text *t, struct tn_characters *range)
{
    const char *begin = t->at;
    if (!tn_gbnf_character(t, &range->low))
        return false;
    range->high = range->low;
    if (t->end - t->at < 2 || t->at[0] != '-' || t->at[1] == ']')
        return true;
    t->at++;
    if (!tn_gbnf_character(t, &range->high))
        return false;
    return range->low <= range->high ||
           tn_gbnf_refuse(t, TERN_USAGE, begin, "a range that ends before it begins");
}

bool tn_gbnf_class(struct tn_gbnf_text *t, struct tn_character_set *set)
{
    const char *begin = t->at - 1;
    const bool is_inverse = tn_gbnf_accept(t, "^");
    struct tn_characters range;
    for (set->n = 0; !tn_gbnf_accept(t, "]");) {
        if (t->at == t->end)
            return tn_gbnf_refuse(t, TERN_USAGE, begin, "a class without its closing bracket");
        /* the complement may have one range more */
        if (set->n + 1 == TN_REGEX_MAX_RANGES)
            return tn_gbnf_refuse(t, TERN_LIMIT, begin, "a class of more than %u ranges",
                                  TN_REGEX_MAX_RANGES - 1);
        if (!read_range(t, &range))
            return false;
        if (range.high > 0) /* no answer has U+0000 */
            set->ranges[set->n++] = (struct tn_characters){TN_MAX(range.low, 1u), range.high};
    }
    set->n = tn_characters_join(set->ranges, set->n);
    if (is_inverse)
        invert(set);
    return set->n > 0 || tn_gbnf_refuse(t, TERN_USAGE, begin, "a class without characters");
}
