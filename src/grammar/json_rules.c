/* SPDX-License-Identifier: MIT
 *
 * The rules of JSON (RFC 8259).
 *
 * White space and digits are bounded: a model must not be able to extend a value forever without
 * saying anything.
 */
#include <string.h>

#include "base/compiler.h"
#include "grammar/grammar.h"

/* Spaces and tabs after a line break. */
#define MAX_INDENT 20u
/* Maximum digits of an integer part after the first, of a fraction, and of an exponent. */
#define MAX_WHOLE 15u
#define MAX_FRACTION 16u
#define MAX_EXPONENT 2u

static uint32_t byte_to_new(struct tern_grammar *g, uint32_t from, uint8_t low, uint8_t high)
{
    const uint32_t to = tn_grammar_state(g);
    tn_grammar_bytes(g, from, low, high, to);
    return to;
}

static uint32_t add_space(struct tern_grammar *g)
{
    const uint32_t start = tn_grammar_state(g), end = tn_grammar_state(g);
    uint32_t at = tn_grammar_text(g, start, "\n", 1);
    tn_grammar_end(g, start);
    tn_grammar_end(g, end);
    tn_grammar_bytes(g, start, ' ', ' ', end);
    for (uint32_t i = 0; i < MAX_INDENT; i++) {
        const uint32_t next = byte_to_new(g, at, ' ', ' ');
        tn_grammar_bytes(g, at, '\t', '\t', next);
        tn_grammar_end(g, at);
        at = next;
    }
    tn_grammar_end(g, at);
    return start;
}

/* ---- strings ---- */

/* A hexadecimal digit in low..high (0..15). */
static void hex(struct tern_grammar *g, uint32_t from, uint8_t low, uint8_t high, uint32_t to)
{
    if (low < 10)
        tn_grammar_bytes(g, from, '0' + low, '0' + (high < 10 ? high : 9), to);
    if (high >= 10) {
        const uint8_t first = low < 10 ? 0 : low - 10, last = high - 10;
        tn_grammar_bytes(g, from, 'a' + first, 'a' + last, to);
        tn_grammar_bytes(g, from, 'A' + first, 'A' + last, to);
    }
}

/* n arbitrary hexadecimal digits. */
static void any_hex(struct tern_grammar *g, uint32_t from, uint32_t n, uint32_t to)
{
    for (; n > 1; n--) {
        const uint32_t next = tn_grammar_state(g);
        hex(g, from, 0, 15, next);
        from = next;
    }
    hex(g, from, 0, 15, to);
}

/* The digits after \u: any character but U+0000; beyond U+FFFF two surrogates. */
static void add_escaped_unit(struct tern_grammar *g, uint32_t from, uint32_t to)
{
    uint32_t zeros = from;
    /* leading zeros, then a digit that is not 0 */
    for (uint32_t n_left = 3; n_left > 0; n_left--) {
        const uint32_t rest = tn_grammar_state(g), next = tn_grammar_state(g);
        if (zeros == from) {
            hex(g, zeros, 1, 12, rest);
            hex(g, zeros, 14, 15, rest);
        } else {
            hex(g, zeros, 1, 15, rest);
        }
        any_hex(g, rest, n_left, to);
        hex(g, zeros, 0, 0, next);
        zeros = next;
    }
    hex(g, zeros, 1, 15, to);
    const uint32_t d = tn_grammar_state(g), d_rest = tn_grammar_state(g);
    const uint32_t high = tn_grammar_state(g), high_end = tn_grammar_state(g);
    hex(g, from, 13, 13, d);
    hex(g, d, 0, 7, d_rest);
    any_hex(g, d_rest, 2, to);
    hex(g, d, 8, 11, high);
    any_hex(g, high, 2, high_end);
    const uint32_t low = tn_grammar_text(g, high_end, "\\u", 2), low_d = tn_grammar_state(g);
    const uint32_t low_rest = tn_grammar_state(g);
    hex(g, low, 13, 13, low_d);
    hex(g, low_d, 12, 15, low_rest);
    any_hex(g, low_rest, 2, to);
}

static void add_escape(struct tern_grammar *g, uint32_t from, uint32_t to)
{
    static const char simple[] = "\"\\/bfnrt";
    for (size_t i = 0; simple[i]; i++)
        tn_grammar_bytes(g, from, (uint8_t)simple[i], (uint8_t)simple[i], to);
    add_escaped_unit(g, byte_to_new(g, from, 'u', 'u'), to);
}

/* Well-formed UTF-8 of two bytes and more (Unicode, table 3-7). */
static void add_long_characters(struct tern_grammar *g, uint32_t from, uint32_t to)
{
    static const struct {
        uint8_t low, high;               /* the first byte */
        uint8_t second_low, second_high; /* the second */
        uint8_t n_more;                  /* remaining bytes after the second */
    } rows[] = {
        {0xC2, 0xDF, 0x80, 0xBF, 0}, {0xE0, 0xE0, 0xA0, 0xBF, 1}, {0xE1, 0xEC, 0x80, 0xBF, 1},
        {0xED, 0xED, 0x80, 0x9F, 1}, {0xEE, 0xEF, 0x80, 0xBF, 1}, {0xF0, 0xF0, 0x90, 0xBF, 2},
        {0xF1, 0xF3, 0x80, 0xBF, 2}, {0xF4, 0xF4, 0x80, 0x8F, 2},
    };
    /* number of continuation bytes still to read */
    const uint32_t one = tn_grammar_state(g), two = tn_grammar_state(g);
    const uint32_t left[] = {to, one, two};
    tn_grammar_bytes(g, one, 0x80, 0xBF, to);
    tn_grammar_bytes(g, two, 0x80, 0xBF, one);
    for (size_t i = 0; i < TN_COUNT_OF(rows); i++) {
        const uint32_t second = byte_to_new(g, from, rows[i].low, rows[i].high);
        tn_grammar_bytes(g, second, rows[i].second_low, rows[i].second_high,
                         left[rows[i].n_more]);
    }
}

static uint32_t add_string(struct tern_grammar *g)
{
    const uint32_t start = tn_grammar_state(g), body = tn_grammar_state(g);
    tn_grammar_bytes(g, start, '"', '"', body);
    tn_grammar_bytes(g, body, 0x20, '"' - 1, body);
    tn_grammar_bytes(g, body, '"' + 1, '\\' - 1, body);
    tn_grammar_bytes(g, body, '\\' + 1, 0x7F, body);
    add_long_characters(g, body, body);
    add_escape(g, byte_to_new(g, body, '\\', '\\'), body);
    tn_grammar_end(g, byte_to_new(g, body, '"', '"'));
    return start;
}

/* ---- numbers ---- */

/* 1 to n digits, each of which may be the last of the rule.  *last [n]: the states after them. */
static void add_digits(struct tern_grammar *g, uint32_t from, uint32_t n, uint32_t *last)
{
    for (uint32_t i = 0; i < n; i++) {
        from = last[i] = byte_to_new(g, from, '0', '9');
        tn_grammar_end(g, from);
    }
}

/* States after an integer part: 0, and 1 + MAX_WHOLE lengths of other numbers. */
#define N_WHOLE (2 + MAX_WHOLE)

static uint32_t add_whole(struct tern_grammar *g, uint32_t last[N_WHOLE])
{
    const uint32_t start = tn_grammar_state(g);
    const uint32_t minus = byte_to_new(g, start, '-', '-');
    last[0] = byte_to_new(g, start, '0', '0');
    last[1] = byte_to_new(g, start, '1', '9');
    tn_grammar_bytes(g, minus, '0', '0', last[0]);
    tn_grammar_bytes(g, minus, '1', '9', last[1]);
    tn_grammar_end(g, last[0]);
    tn_grammar_end(g, last[1]);
    add_digits(g, last[1], MAX_WHOLE, last + 2);
    return start;
}

static uint32_t add_number(struct tern_grammar *g)
{
    uint32_t whole[N_WHOLE], fraction[MAX_FRACTION], exponent[MAX_EXPONENT];
    const uint32_t start = add_whole(g, whole), dot = tn_grammar_state(g);
    const uint32_t e = tn_grammar_state(g), sign = tn_grammar_state(g);
    add_digits(g, dot, MAX_FRACTION, fraction);
    add_digits(g, sign, MAX_EXPONENT, exponent);
    tn_grammar_empty(g, e, sign);
    tn_grammar_bytes(g, e, '+', '+', sign);
    tn_grammar_bytes(g, e, '-', '-', sign);
    for (uint32_t i = 0; i < N_WHOLE + MAX_FRACTION; i++) {
        const uint32_t from = i < N_WHOLE ? whole[i] : fraction[i - N_WHOLE];
        tn_grammar_bytes(g, from, 'e', 'e', e);
        tn_grammar_bytes(g, from, 'E', 'E', e);
        if (i < N_WHOLE)
            tn_grammar_bytes(g, from, '.', '.', dot);
    }
    return start;
}

/* ---- values ---- */

static uint32_t add_words(struct tern_grammar *g, const char *first, const char *second)
{
    const uint32_t start = tn_grammar_state(g);
    tn_grammar_end(g, tn_grammar_text(g, start, first, strlen(first)));
    if (second)
        tn_grammar_end(g, tn_grammar_text(g, start, second, strlen(second)));
    return start;
}

/* A bracketed, comma-separated list of zero or more items; `item` and `item_end` belong to one
 * rule. */
static void add_list(struct tern_grammar *g, uint32_t start, const char brackets[2],
                     uint32_t space, uint32_t item, uint32_t item_end)
{
    const uint32_t open = tn_grammar_text(g, start, brackets, 1), close = tn_grammar_state(g);
    const uint32_t first = tn_grammar_state(g);
    tn_grammar_call(g, open, space, first);
    tn_grammar_empty(g, first, item);
    tn_grammar_empty(g, first, close);
    tn_grammar_call(g, item_end, space, close);
    tn_grammar_call(g, tn_grammar_text(g, item_end, ",", 1), space, item);
    tn_grammar_end(g, tn_grammar_text(g, close, brackets + 1, 1));
}

static void add_containers(struct tern_grammar *g, struct tn_json_rules *r)
{
    const uint32_t item = tn_grammar_state(g), item_end = tn_grammar_state(g);
    const uint32_t member = tn_grammar_state(g), key_end = tn_grammar_state(g);
    const uint32_t value = tn_grammar_state(g), member_end = tn_grammar_state(g);
    tn_grammar_call(g, item, r->value, item_end);
    add_list(g, r->array, "[]", r->space, item, item_end);
    tn_grammar_call(g, member, r->string, key_end);
    tn_grammar_call(g, tn_grammar_text(g, key_end, ":", 1), r->space, value);
    tn_grammar_call(g, value, r->value, member_end);
    add_list(g, r->object, "{}", r->space, member, member_end);
}

void tn_grammar_add_json(struct tern_grammar *g, struct tn_json_rules *out)
{
    out->space = add_space(g);
    out->string = add_string(g);
    out->number = add_number(g);
    uint32_t whole[N_WHOLE];
    out->integer = add_whole(g, whole);
    out->boolean = add_words(g, "true", "false");
    out->null = add_words(g, "null", NULL);
    out->value = tn_grammar_state(g);
    out->object = tn_grammar_state(g);
    out->array = tn_grammar_state(g);
    add_containers(g, out);
    const uint32_t kinds[] = {out->string, out->number, out->boolean,
                              out->null,   out->object, out->array};
    for (size_t i = 0; i < TN_COUNT_OF(kinds); i++)
        tn_grammar_empty(g, out->value, kinds[i]);
}
