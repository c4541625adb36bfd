/* SPDX-License-Identifier: MIT
 *
 * Turns an automaton over characters into one over the bytes of a JSON string, or of raw text.
 *
 * A range of characters is split into pieces whose UTF-8 encodings are products of byte ranges.
 */
#include "grammar/string_rule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/text_match.h"
#include "base/utf8.h"
#include "grammar/dfa.h"
#include "grammar/regex.h"

/* ---- characters ---- */

/* Escapes for characters below U+0020. */
static void add_control(struct tern_grammar *g, uint32_t from, uint32_t c, uint32_t to)
{
    static const char shorts[32] = {['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f',
                                    ['\r'] = 'r'};
    uint8_t last = (uint8_t)"0123456789abcdef"[c & 15];
    uint32_t at = tn_grammar_step(g, from, '\\', '\\');
    if (shorts[c])
        last = (uint8_t)shorts[c];
    else
        at = tn_grammar_text(g, at, c < 16 ? "u000" : "u001", 4);
    tn_grammar_bytes(g, at, last, last, to);
}

/* Characters below U+0080 in JSON. */
static void add_ascii(struct tern_grammar *g, uint32_t from, uint32_t low, uint32_t high,
                      uint32_t to)
{
    /* start of the run that is not yet added and needs no escape */
    uint32_t first = TN_MAX(low, 0x20);
    for (uint32_t c = low; c <= high; c++) {
        if (c < 0x20)
            add_control(g, from, c, to);
        if (c != '"' && c != '\\')
            continue;
        if (first < c)
            tn_grammar_bytes(g, from, (uint8_t)first, (uint8_t)(c - 1), to);
        tn_grammar_bytes(g, tn_grammar_step(g, from, '\\', '\\'), (uint8_t)c, (uint8_t)c, to);
        first = c + 1;
    }
    if (first <= high)
        tn_grammar_bytes(g, from, (uint8_t)first, (uint8_t)high, to);
}

/* UTF-8 length of a character from U+0080. */
static uint32_t n_bytes_of(uint32_t c)
{
    return c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
}

/* The last character from `low` up to which the UTF-8 encodings are the product of the byte ranges
 * between the two ends. */
static uint32_t piece_end(uint32_t low, uint32_t high)
{
    static const uint32_t last_of_length[] = {0, 0, 0x7FF, 0xFFFF, TN_LAST_CHARACTER};
    const uint32_t n = n_bytes_of(low);
    uint32_t end = TN_MIN(high, last_of_length[n]);
    for (uint32_t i = 1; i < n; i++) {
        const uint32_t mask = (1u << 6 * i) - 1; /* covers the last i bytes */
        if ((low & ~mask) == (end & ~mask))
            return end;
        if (low & mask)
            return low | mask;
        if ((end & mask) != mask)
            end = (end & ~mask) - 1;
    }
    return end;
}

static uint8_t byte_of(uint32_t c, uint32_t i)
{
    char bytes[4];
    tn_utf8_put(c, bytes);
    return (uint8_t)bytes[i];
}

static void add_characters(struct tern_grammar *g, bool is_raw, uint32_t from, uint32_t low,
                           uint32_t high, uint32_t to)
{
    if (low < 0x80 && is_raw)
        tn_grammar_bytes(g, from, (uint8_t)low, (uint8_t)TN_MIN(high, 0x7F), to);
    else if (low < 0x80)
        add_ascii(g, from, low, TN_MIN(high, 0x7F), to);
    for (low = TN_MAX(low, 0x80); low <= high && !g->failed;) {
        const uint32_t end = piece_end(low, high), n = n_bytes_of(low);
        uint32_t at = from;
        for (uint32_t i = 0; i + 1 < n; i++)
            at = tn_grammar_step(g, at, byte_of(low, i), byte_of(end, i));
        tn_grammar_bytes(g, at, byte_of(low, n - 1), byte_of(end, n - 1), to);
        low = end + 1;
    }
}

/* The same without surrogates and the characters of `except`, which are ascending and below U+0080.
 */
static void add_range(struct tern_grammar *g, bool is_raw, uint32_t from, uint32_t low,
                      uint32_t high, const char *except, uint32_t to)
{
    for (; *except; except++) {
        const uint32_t c = (unsigned char)*except;
        if (c < low || c > high)
            continue;
        if (low < c)
            add_characters(g, is_raw, from, low, c - 1, to);
        low = c + 1;
    }
    if (low < 0xD800 && low <= high)
        add_characters(g, is_raw, from, low, TN_MIN(high, 0xD7FF), to);
    low = TN_MAX(low, 0xE000);
    if (low <= high)
        add_characters(g, is_raw, from, low, high, to);
}

void tn_string_range(struct tern_grammar *g, uint32_t from, uint32_t low, uint32_t high,
                     uint32_t to)
{
    add_range(g, true, from, low, high, "", to);
}

void tn_string_characters(struct tern_grammar *g, uint32_t from, const char *except, uint32_t to)
{
    add_range(g, true, from, 1, TN_LAST_CHARACTER, except, to);
}

/* ---- states ---- */

struct writer {
    struct tern_grammar *g;
    bool is_raw;
    const struct tn_dfa *dfa;
    uint32_t *states; /* [n_states] grammar states; 0: not yet added */
    uint32_t *todo;   /* [n_states] queue of added states */
    uint32_t n_todo;
};

static uint32_t state_of(struct writer *w, uint32_t i)
{
    if (!w->states[i]) {
        w->states[i] = tn_grammar_state(w->g);
        w->todo[w->n_todo++] = i;
    }
    return w->states[i];
}

static void write_state(struct writer *w, uint32_t i)
{
    const struct tn_dfa *dfa = w->dfa;
    const uint32_t *next = dfa->next + (size_t)i * dfa->n_symbols;
    for (uint32_t k = 0; k < dfa->n_ranges && !w->g->failed;) {
        const uint32_t to = next[dfa->ranges[k].symbol], low = dfa->ranges[k].characters.low;
        uint32_t high = dfa->ranges[k].characters.high;
        while (++k < dfa->n_ranges && next[dfa->ranges[k].symbol] == to &&
               dfa->ranges[k].characters.low == high + 1)
            high = dfa->ranges[k].characters.high;
        if (to != TN_DFA_DEAD)
            add_characters(w->g, w->is_raw, w->states[i], low, high, state_of(w, to));
    }
}

/* The quote at the start or end of a string that is not raw. */
static void add_quote(struct tern_grammar *g, bool is_raw, uint32_t from, uint32_t to)
{
    if (is_raw)
        tn_grammar_empty(g, from, to);
    else
        tn_grammar_bytes(g, from, '"', '"', to);
}

static bool write_all(struct tern_grammar *g, bool is_raw, uint32_t start,
                      const struct tn_dfa *dfa)
{
    struct writer w = {.g = g, .is_raw = is_raw, .dfa = dfa};
    w.states = tn_alloc_zeroed(dfa->n_states, sizeof *w.states);
    w.todo = tn_alloc(dfa->n_states * sizeof *w.todo);
    const bool has_memory = w.states && w.todo;
    if (has_memory) {
        const uint32_t end = tn_grammar_state(g);
        tn_grammar_end(g, end);
        add_quote(g, is_raw, start, state_of(&w, TN_DFA_START));
        for (uint32_t i = 0; i < w.n_todo && !g->failed; i++) {
            if (dfa->is_end[w.todo[i]])
                add_quote(g, is_raw, w.states[w.todo[i]], end);
            write_state(&w, w.todo[i]);
        }
    }
    tn_free(w.states);
    tn_free(w.todo);
    return has_memory;
}

/* ---- expressions ---- */

/* Adds an expression for texts of a length. */
static tern_status add_length(struct tn_nfa *nfa, struct tn_count_range length,
                              struct tern_error *err)
{
    char text[48], max[16] = "";
    if ((length.max == TN_NO_MAXIMUM ? length.min : length.max) > TN_REGEX_MAX_REPEAT)
        return tn_fail(err, TERN_LIMIT, "a length of more than %u combined with it",
                       TN_REGEX_MAX_REPEAT);
    if (length.max != TN_NO_MAXIMUM)
        snprintf(max, sizeof max, "%u", length.max);
    snprintf(text, sizeof text, "^[^]{%u,%s}$", length.min, max);
    return tn_regex_add(nfa, text, false, err);
}

/* Do all texts of the automaton have a length in this range? */
static bool has_length(const struct tn_dfa *dfa, struct tn_count_range length)
{
    return dfa->shortest >= length.min && dfa->longest <= length.max;
}

/* Builds one automaton from the expressions.  Most imply the length; only where they do not is it
 * added as another expression. */
static tern_status make_automaton(struct tn_dfa *out, struct tn_nfa *nfa,
                                  struct tn_count_range length, uint64_t *steps,
                                  struct tern_error *err)
{
    tern_status status = tn_dfa_create(out, nfa, steps, err);
    if (status != TERN_OK || has_length(out, length))
        return status;
    tn_dfa_fini(out);
    status = add_length(nfa, length, err);
    return status == TERN_OK ? tn_dfa_create(out, nfa, steps, err) : status;
}

static tern_status add_all(struct tn_nfa *nfa, const char *const *expressions, uint32_t n,
                           struct tern_error *err)
{
    tern_status status = TERN_OK;
    for (uint32_t i = 0; i < n && status == TERN_OK; i++)
        status = tn_regex_add(nfa, expressions[i], false, err);
    return status;
}

/* Adds the rule for the expressions of an automaton. */
static tern_status add_rule(struct tern_grammar *g, bool is_raw, uint32_t start,
                            struct tn_nfa *nfa, struct tn_count_range length, uint64_t *steps,
                            struct tern_error *err)
{
    struct tn_dfa dfa = {0};
    tern_status status = make_automaton(&dfa, nfa, length, steps, err);
    if (status == TERN_OK && !write_all(g, is_raw, start, &dfa))
        status = tn_fail(err, TERN_MEMORY, "no memory for a grammar");
    tn_dfa_fini(&dfa);
    return status;
}

tern_status tn_string_rule(struct tern_grammar *g, bool is_raw, uint32_t start,
                           const char *const *expressions, uint32_t n,
                           struct tn_count_range length, uint64_t *steps, struct tern_error *err)
{
    static const char *const raw[] = {"^(?:[^<]|<+[^</])*<*$"}; /* no "</" */
    struct tn_nfa nfa = {0};
    tern_status status = add_all(&nfa, expressions, n, err);
    if (status == TERN_OK && is_raw)
        status = add_all(&nfa, raw, 1, err);
    if (status == TERN_OK)
        status = add_rule(g, is_raw, start, &nfa, length, steps, err);
    tn_nfa_fini(&nfa);
    return status;
}

tern_status tn_string_rule_of_text(struct tern_grammar *g, uint32_t start, const char *expression,
                                   uint64_t *steps, struct tern_error *err)
{
    const struct tn_count_range any = {.max = TN_NO_MAXIMUM};
    struct tn_nfa nfa = {0};
    tern_status status = tn_regex_add(&nfa, expression, true, err);
    if (status == TERN_OK)
        status = add_rule(g, true, start, &nfa, any, steps, err);
    tn_nfa_fini(&nfa);
    return status;
}

tern_status tn_string_fits(bool *fits, const char *const *expressions, uint32_t n,
                           const char *text, uint64_t *steps, struct tern_error *err)
{
    struct tn_nfa nfa = {0};
    struct tn_dfa dfa = {0};
    tern_status status = add_all(&nfa, expressions, n, err);
    if (status == TERN_OK)
        status = tn_dfa_create(&dfa, &nfa, steps, err);
    *fits = status == TERN_OK && tn_dfa_takes(&dfa, text);
    tn_dfa_fini(&dfa);
    tn_nfa_fini(&nfa);
    return status;
}

/* ---- lengths ---- */

/* Start of the rule for any single character but those of `except`. */
static uint32_t add_any_character(struct tern_grammar *g, bool is_raw, const char *except)
{
    const uint32_t start = tn_grammar_state(g), end = tn_grammar_state(g);
    add_range(g, is_raw, start, 1, TN_LAST_CHARACTER, except, end);
    tn_grammar_end(g, end);
    return start;
}

void tn_string_rule_of_length(struct tern_grammar *g, uint32_t start,
                              struct tn_count_range length)
{
    const uint32_t end = tn_grammar_state(g), character = add_any_character(g, false, "");
    const uint32_t n = length.max == TN_NO_MAXIMUM ? length.min : length.max;
    uint32_t at = tn_grammar_text(g, start, "\"", 1);
    tn_grammar_end(g, end);
    for (uint32_t i = 0; i <= n && !g->failed; i++) {
        const uint32_t next = i < n ? tn_grammar_state(g) : at;
        if (i >= length.min) {
            tn_grammar_bytes(g, at, '"', '"', end);
            tn_grammar_count(g, at, n - i);
        }
        if (i < n || length.max == TN_NO_MAXIMUM)
            tn_grammar_call(g, at, character, next);
        at = next;
    }
}

/* A second chain of states follows '<', after which a slash is impossible. */
void tn_string_rule_of_raw_length(struct tern_grammar *g, uint32_t start,
                                  struct tn_count_range length)
{
    const uint32_t end = tn_grammar_state(g), plain = add_any_character(g, true, "<");
    const uint32_t after = add_any_character(g, true, "/<");
    const bool is_endless = length.max == TN_NO_MAXIMUM;
    const uint32_t n = is_endless ? length.min : length.max, first = tn_grammar_state(g);
    for (uint32_t i = 1; i < 2 * (n + 1) && !g->failed; i++)
        tn_grammar_state(g);
    tn_grammar_end(g, end);
    tn_grammar_empty(g, start, first);
    for (uint32_t i = 0; i < 2 * (n + 1) && !g->failed; i++) {
        const bool is_after = i > n;
        const uint32_t k = is_after ? i - n - 1 : i, next = first + TN_MIN(k + 1, n);
        if (k >= length.min) {
            tn_grammar_empty(g, first + i, end);
            tn_grammar_count(g, first + i, n - k);
        }
        if (k == n && !is_endless)
            continue;
        tn_grammar_call(g, first + i, is_after ? after : plain, next);
        tn_grammar_bytes(g, first + i, '<', '<', next + n + 1);
    }
}

/* ---- strings other than given names ---- */

/* Names [low, high) share their first n bytes, after which the automaton is in `state`. */
struct branch {
    size_t low, high, n;
    uint32_t state;
};

struct others {
    struct tern_grammar *g;
    bool is_name; /* in a tag: raw, not empty, and '>' ends it */
    const char **names; /* sorted */
    uint32_t free, end; /* states: after text that no name begins with, and after the string */
    struct tn_buf todo; /* queue of branches */
};

/* Characters in low..high (except surrogates) lead to the state after which any text may follow. */
static void add_free(struct others *o, uint32_t from, uint32_t low, uint32_t high)
{
    add_range(o->g, o->is_name, from, low, high, o->is_name ? "\n<>" : "", o->free);
}

static void end_other(struct others *o, uint32_t from)
{
    const uint8_t last = o->is_name ? '>' : '"';
    tn_grammar_bytes(o->g, from, last, last, o->end);
}

/* Each character that continues a name becomes a branch; all others leave the names. */
static void add_branches(struct others *o, struct branch b)
{
    uint32_t next = 1;
    if (b.low < b.high && o->names[b.low][b.n] == '\0')
        b.low++;
    else if (b.n > 0 || !o->is_name)
        end_other(o, b.state);
    while (b.low < b.high && !o->g->failed) {
        const char *at = o->names[b.low] + b.n;
        uint32_t c;
        const size_t n = tn_utf8_character(at, strlen(at), &c);
        struct branch more = {b.low, b.low + 1, b.n + n, tn_grammar_state(o->g)};
        while (more.high < b.high && strncmp(o->names[more.high] + b.n, at, n) == 0)
            more.high++;
        add_free(o, b.state, next, c - 1);
        add_characters(o->g, o->is_name, b.state, c, c, more.state);
        tn_buf_append(&o->todo, (const char *)&more, sizeof more);
        next = c + 1;
        b.low = more.high;
    }
    add_free(o, b.state, next, TN_LAST_CHARACTER);
}

tern_status tn_string_rule_of_others(struct tern_grammar *g, bool is_name, uint32_t start,
                                     const json_t *object, struct tern_error *err)
{
    struct others o = {.g = g, .is_name = is_name, .free = tn_grammar_state(g),
                       .end = tn_grammar_state(g)};
    struct branch b = {.high = json_object_size(object)};
    json_t *members = (json_t *)object; /* jansson's iterators are not const-correct */
    size_t n = 0;
    o.names = tn_alloc((b.high + 1) * sizeof *o.names);
    if (!o.names)
        return tn_fail(err, TERN_MEMORY, "no memory for a grammar");
    for (void *i = json_object_iter(members); i; i = json_object_iter_next(members, i))
        o.names[n++] = json_object_iter_key(i);
    qsort(o.names, n, sizeof *o.names, tn_text_compare);
    b.state = is_name ? start : tn_grammar_text(g, start, "\"", 1);
    tn_grammar_end(g, o.end);
    add_free(&o, o.free, 1, TN_LAST_CHARACTER);
    end_other(&o, o.free);
    tn_buf_append(&o.todo, (const char *)&b, sizeof b);
    for (size_t i = 0; i < o.todo.n_bytes && !o.todo.failed && !g->failed; i += sizeof b) {
        memcpy(&b, o.todo.data + i, sizeof b);
        add_branches(&o, b);
    }
    tn_free(o.names);
    const bool is_good = !o.todo.failed;
    tn_buf_fini(&o.todo);
    return is_good ? tn_ok(err) : tn_fail(err, TERN_MEMORY, "no memory for a grammar");
}
