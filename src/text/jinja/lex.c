/* SPDX-License-Identifier: MIT
 *
 * Splits a template into tokens.  White space follows Jinja2's lexer (3.1) with trim_blocks and
 * lstrip_blocks:
 *
 *   {%- {{- {#-   remove all white space before the tag
 *   {% {#         remove blanks from the start of the line to the tag if there is nothing else;
 *                 {%+ keeps them
 *   -%} -}} -#}   remove all white space after the tag
 *   %} #}         remove one newline after the tag; +%} keeps it
 */
#include "text/jinja/lex.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/float_text.h"
#include "text/jinja/escape.h"
#include "text/unicode.h"

struct lexer {
    struct tn_jtokens *out;
    struct tn_pool *pool;
    const char *source; /* with LF newlines, without the final one */
    size_t n;
    size_t at;
    uint32_t line;
    struct tern_error *err;
};

static tern_status no_memory(const struct lexer *l)
{
    return tn_fail(l->err, TERN_MEMORY, "no memory for a chat template of %zu bytes", l->n);
}

static tern_status add(struct lexer *l, struct tn_jtoken token)
{
    struct tn_jtokens *out = l->out;
    struct tn_jtoken *items =
        tn_pool_grow(l->pool, out->items, sizeof *items, out->n, &out->capacity);
    if (!items)
        return no_memory(l);
    out->items = items;
    token.line = l->line;
    out->items[out->n++] = token;
    return TERN_OK;
}

/* Advances to `end` and counts lines. */
static void advance(struct lexer *l, size_t end)
{
    for (; l->at < end; l->at++)
        l->line += l->source[l->at] == '\n';
}

static bool looking_at(const struct lexer *l, size_t at, const char *text)
{
    size_t n = strlen(text);
    return l->n - at >= n && memcmp(l->source + at, text, n) == 0;
}

/* ---- white space, as Python's \s and strip() define it ---- */

static size_t skip_space(const struct lexer *l, size_t at)
{
    const char *text = l->source + at;
    size_t n = l->n - at;
    tn_text_skip_space(&text, &n);
    return l->n - n;
}

/* The end of source[begin, end) without trailing white space. */
static size_t strip_end(const struct lexer *l, size_t begin, size_t end)
{
    size_t n = end - begin;
    tn_text_strip_end(l->source + begin, &n);
    return begin + n;
}

/* The end of the text [begin, end) before a tag with this sign. */
static size_t end_of_data(const struct lexer *l, size_t begin, size_t end, char sign, bool is_print)
{
    if (sign == '-')
        return strip_end(l, begin, end);
    if (sign == '+' || is_print)
        return end;
    size_t start = end;
    while (start > begin && l->source[start - 1] != '\n')
        start--;
    bool at_line_start = start > begin || begin == 0 || l->source[begin - 1] == '\n';
    return at_line_start && strip_end(l, start, end) == start ? start : end;
}

static tern_status add_data(struct lexer *l, size_t begin, size_t end)
{
    if (begin == end)
        return TERN_OK;
    return add(l,
               (struct tn_jtoken){.type = TN_T_DATA, .text = l->source + begin, .n = end - begin});
}

/* Length of the tag end ("%}", "}}" or "#}", with an optional sign) at `at`; 0: none. */
static size_t tag_end(const struct lexer *l, size_t at, const char *close)
{
    bool is_print = close[0] == '}';
    if (l->source[at] == '-' && looking_at(l, at + 1, close))
        return skip_space(l, at + 3) - at;
    if (!is_print && l->source[at] == '+' && looking_at(l, at + 1, close))
        return 3;
    if (!looking_at(l, at, close))
        return 0;
    return 2 + (!is_print && at + 2 < l->n && l->source[at + 2] == '\n');
}

/* ---- tokens inside a tag ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (unsigned char)c >= 0x80;
}

static tern_status lex_name(struct lexer *l)
{
    size_t end = l->at;
    while (end < l->n && (is_name_start(l->source[end]) || is_digit(l->source[end])))
        end++;
    tern_status status =
        add(l, (struct tn_jtoken){.type = TN_T_NAME, .text = l->source + l->at, .n = end - l->at});
    advance(l, end);
    return status;
}

static size_t skip_digits(const struct lexer *l, size_t at)
{
    while (at < l->n && (is_digit(l->source[at]) ||
                         (l->source[at] == '_' && at + 1 < l->n && is_digit(l->source[at + 1]))))
        at++;
    return at;
}

/* End of a number's fraction and exponent, given the end of its integer part.  After a dot a number
 * has none: x.0.1 is an item of an item. */
static size_t skip_fraction(const struct lexer *l, size_t at)
{
    if (l->at > 0 && l->source[l->at - 1] == '.')
        return at;
    if (at + 1 < l->n && l->source[at] == '.' && is_digit(l->source[at + 1]))
        at = skip_digits(l, at + 1);
    size_t e = at;
    if (e < l->n && (l->source[e] == 'e' || l->source[e] == 'E')) {
        e++;
        e += e < l->n && (l->source[e] == '+' || l->source[e] == '-');
        if (e < l->n && is_digit(l->source[e]))
            at = skip_digits(l, e);
    }
    return at;
}

static tern_status lex_number(struct lexer *l)
{
    char digits[64];
    size_t n = 0;
    size_t whole = skip_digits(l, l->at), end = skip_fraction(l, whole);
    for (size_t i = l->at; i < end; i++)
        if (l->source[i] != '_' && n + 1 < sizeof digits)
            digits[n++] = l->source[i];
    digits[n] = '\0';
    if (n + 1 == sizeof digits || (end == whole && n > 18))
        return tn_fail(l->err, TERN_UNSUPPORTED,
                       "chat template, line %u: a number of %zu digits is too long", l->line, n);
    struct tn_jtoken token = {
        .type = end == whole ? TN_T_INT : TN_T_FLOAT, .text = l->source + l->at, .n = end - l->at};
    if (end == whole)
        token.integer = strtoll(digits, NULL, 10);
    else
        token.real = tn_float_parse(digits, NULL);
    tern_status status = add(l, token);
    advance(l, end);
    return status;
}

static tern_status lex_string(struct lexer *l)
{
    char quote = l->source[l->at];
    size_t end = l->at + 1;
    while (end < l->n && l->source[end] != quote)
        end += l->source[end] == '\\' ? 2 : 1;
    if (end >= l->n)
        return tn_fail(l->err, TERN_UNSUPPORTED,
                       "chat template, line %u: a string has no closing quote", l->line);
    size_t n_raw = end - l->at - 1;
    char *value = tn_pool_take(l->pool, n_raw + 1);
    if (!value)
        return no_memory(l);
    size_t n;
    if (!tn_jinja_unescape(value, &n, l->source + l->at + 1, n_raw))
        return tn_fail(l->err, TERN_UNSUPPORTED,
                       "chat template, line %u: an escape in a string is not known or not a "
                       "character",
                       l->line);
    tern_status status = add(l, (struct tn_jtoken){.type = TN_T_STRING, .text = value, .n = n});
    advance(l, end + 1);
    return status;
}

static tern_status lex_operator(struct lexer *l, int *depth)
{
    static const char *const operators[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                            "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                            ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};
    for (size_t i = 0; i < TN_COUNT_OF(operators); i++) {
        if (!looking_at(l, l->at, operators[i]))
            continue;
        char c = operators[i][0];
        *depth += c == '(' || c == '[' || c == '{';
        *depth -= c == ')' || c == ']' || c == '}';
        tern_status status =
            add(l, (struct tn_jtoken){
                       .type = TN_T_OPERATOR, .text = operators[i], .n = strlen(operators[i])});
        advance(l, l->at + strlen(operators[i]));
        return status;
    }
    return tn_fail(l->err, TERN_UNSUPPORTED, "chat template, line %u: '%c' has no meaning here",
                   l->line, l->source[l->at]);
}

static tern_status lex_word(struct lexer *l, int *depth)
{
    char c = l->source[l->at];
    if (is_name_start(c))
        return lex_name(l);
    if (is_digit(c))
        return lex_number(l);
    if (c == '"' || c == '\'')
        return lex_string(l);
    return lex_operator(l, depth);
}

/* Reads from after "{%" or "{{" and its sign through the end of the tag.  A tag end inside brackets
 * does not count: {{ {'a': {}} }}. */
static tern_status lex_tag(struct lexer *l, bool is_print)
{
    const char *close = is_print ? "}}" : "%}";
    int depth = 0;
    tern_status status =
        add(l, (struct tn_jtoken){.type = is_print ? TN_T_PRINT_BEGIN : TN_T_BLOCK_BEGIN});
    while (status == TERN_OK) {
        advance(l, skip_space(l, l->at));
        if (l->at >= l->n)
            return tn_fail(l->err, TERN_UNSUPPORTED,
                           "chat template, line %u: a tag is not closed by %s", l->line, close);
        size_t n_end = depth == 0 ? tag_end(l, l->at, close) : 0;
        if (n_end) {
            status = add(l, (struct tn_jtoken){.type = is_print ? TN_T_PRINT_END : TN_T_BLOCK_END});
            advance(l, l->at + n_end);
            return status;
        }
        status = lex_word(l, &depth);
    }
    return status;
}

/* ---- comments and raw blocks ---- */

/* A comment that begins at the very end of the source counts as closed, as in Jinja2. */
static tern_status lex_comment(struct lexer *l)
{
    if (l->at == l->n)
        return TERN_OK;
    for (size_t at = l->at; at < l->n; at++) {
        size_t n_end = tag_end(l, at, "#}");
        if (n_end) {
            advance(l, at + n_end);
            return TERN_OK;
        }
    }
    return tn_fail(l->err, TERN_UNSUPPORTED, "chat template, line %u: a comment is not closed",
                   l->line);
}

/* If "{% WORD" is at `at`: the offset after the word, else 0; *sign is the tag's sign. */
static size_t match_block_word(const struct lexer *l, size_t at, const char *word, char *sign)
{
    if (!looking_at(l, at, "{%"))
        return 0;
    at += 2;
    *sign = at < l->n && (l->source[at] == '-' || l->source[at] == '+') ? l->source[at] : '\0';
    at = skip_space(l, at + (*sign != '\0'));
    return looking_at(l, at, word) ? skip_space(l, at + strlen(word)) : 0;
}

/* Matches "{% raw %}" at l->at; *end is the offset after it.  Unlike after other tags, a newline
 * after it is kept. */
static bool match_raw_begin(const struct lexer *l, size_t *end)
{
    char sign;
    size_t at = match_block_word(l, l->at, "raw", &sign);
    if (!at || at >= l->n)
        return false;
    if (l->source[at] == '-' && looking_at(l, at + 1, "%}"))
        *end = skip_space(l, at + 3);
    else if (looking_at(l, at, "%}"))
        *end = at + 2;
    else
        return false;
    return true;
}

static tern_status lex_raw(struct lexer *l, size_t begin)
{
    for (size_t at = begin; at < l->n; at++) {
        char sign;
        size_t close = match_block_word(l, at, "endraw", &sign);
        size_t n_end = close && close < l->n ? tag_end(l, close, "%}") : 0;
        if (!n_end)
            continue;
        advance(l, begin);
        tern_status status = add_data(l, begin, end_of_data(l, begin, at, sign, false));
        advance(l, close + n_end);
        return status;
    }
    return tn_fail(l->err, TERN_UNSUPPORTED, "chat template, line %u: {%% raw %%} is not closed",
                   l->line);
}

/* ---- the whole source ---- */

/* Reads from the current position through the next tag, or to the end. */
static tern_status lex_piece(struct lexer *l)
{
    size_t begin = l->at, tag = begin;
    while (tag < l->n &&
           !(l->source[tag] == '{' && tag + 1 < l->n && memchr("%{#", l->source[tag + 1], 3)))
        tag++;
    if (tag == l->n) {
        tern_status status = add_data(l, begin, tag);
        l->at = l->n;
        return status;
    }
    char kind = l->source[tag + 1];
    char sign = tag + 2 < l->n ? l->source[tag + 2] : '\0';
    bool has_sign = sign == '-' || sign == '+';
    tern_status status = add_data(l, begin, end_of_data(l, begin, tag, sign, kind == '{'));
    if (status != TERN_OK)
        return status;
    advance(l, tag);
    size_t raw;
    if (kind == '%' && match_raw_begin(l, &raw))
        return lex_raw(l, raw);
    advance(l, tag + 2 + has_sign);
    return kind == '#' ? lex_comment(l) : lex_tag(l, kind == '{');
}

/* Converts CR LF and CR to LF and removes the final newline. */
static char *normalise(struct tn_pool *pool, const char *source, size_t *n)
{
    char *out = tn_pool_take(pool, *n + 1);
    size_t n_out = 0;
    for (size_t i = 0; out && i < *n; i++) {
        if (source[i] == '\r' && i + 1 < *n && source[i + 1] == '\n')
            continue;
        out[n_out++] = source[i] == '\r' ? '\n' : source[i];
    }
    if (n_out > 0 && out[n_out - 1] == '\n')
        n_out--;
    *n = n_out;
    return out;
}

tern_status tn_jinja_lex(struct tn_jtokens *out, struct tn_pool *pool, const char *source, size_t n,
                         struct tern_error *err)
{
    struct lexer l = {.out = out, .pool = pool, .n = n, .line = 1, .err = err};
    *out = (struct tn_jtokens){0};
    l.source = normalise(pool, source, &l.n);
    if (!l.source)
        return no_memory(&l);
    tern_status status = TERN_OK;
    while (status == TERN_OK && l.at < l.n)
        status = lex_piece(&l);
    return status == TERN_OK ? add(&l, (struct tn_jtoken){.type = TN_T_END}) : status;
}
