/* SPDX-License-Identifier: MIT
 *
 * Compiles a grammar in GBNF, the notation of llama.cpp, in one pass.
 *
 * An item (a text, a class, a dot, the name of a rule, a group) becomes a piece of automaton from
 * a new state `in` to a new state `out`; what follows it adds edges to the piece, which is then
 * connected:
 *
 *   x?       an edge around it
 *   x+       a loop from its end to its beginning
 *   x*       both
 *   x{m,n}   it becomes a rule, which is called from m to n times
 *
 * In the end a call with nothing after it becomes an empty edge, so that right recursion ("list
 * ::= item | item list") nests nothing.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/utf8.h"
#include "grammar/gbnf_text.h"
#include "grammar/grammar.h"
#include "grammar/preamble_rule.h"
#include "grammar/string_rule.h"

#define MAX_GROUPS 64u /* nesting depth */
#define MAX_RULES 32768u
#define MAX_REPEAT 10000u
#define MAX_TAIL (2 * MAX_GROUPS) /* empty edges between a call and the end of its rule */

struct piece {
    uint32_t in, out;
    bool reads; /* one byte at least */
};

struct rule {
    const char *name; /* in its definition; without one, where it was first met */
    size_t n;
    uint32_t start;
    uint32_t first; /* the states of its definition begin there; 0: not defined yet */
};

struct parser {
    struct tn_gbnf_text text;
    struct tern_grammar *g;
    json_t *indices;     /* of rules, by name */
    struct tn_buf rules; /* struct rule */
    uint32_t at;         /* the state after what was read */
    struct group {
        uint32_t in, out;
        uint32_t at; /* the state before an inner group that is open */
        const char *begin;
    } groups[MAX_GROUPS + 1]; /* the first is the rule */
    uint32_t n_groups;
    struct tn_character_set set;
};

static bool refuse(struct parser *p, const char *at, const char *what)
{
    return tn_gbnf_refuse(&p->text, TERN_USAGE, at, "%s", what);
}

static bool lacks_memory(struct parser *p)
{
    p->text.status = tn_fail(p->text.err, TERN_MEMORY, "no memory for a grammar");
    return false;
}

/* ---- rules ---- */

static struct rule *rule_at(const struct parser *p, size_t i)
{
    return (struct rule *)(void *)p->rules.data + i;
}

static size_t n_rules(const struct parser *p)
{
    return p->rules.n_bytes / sizeof(struct rule);
}

/* Reads the name of a rule, which is added when it is first met.  Returns NULL after a refusal;
 * the next call may move the rule. */
static struct rule *read_name(struct parser *p)
{
    char name[TN_GBNF_MAX_NAME + 1];
    struct rule rule = {.name = p->text.at, .n = tn_gbnf_name(&p->text)};
    if (rule.n > TN_GBNF_MAX_NAME) {
        tn_gbnf_refuse(&p->text, TERN_LIMIT, rule.name, "a name of more than %u bytes",
                       TN_GBNF_MAX_NAME);
        return NULL;
    }
    memcpy(name, rule.name, rule.n);
    name[rule.n] = '\0';
    p->text.at += rule.n;
    const json_t *known = json_object_get(p->indices, name);
    if (known)
        return rule_at(p, (size_t)json_integer_value(known));
    if (n_rules(p) == MAX_RULES) {
        tn_gbnf_refuse(&p->text, TERN_LIMIT, rule.name, "more than %u rules", MAX_RULES);
        return NULL;
    }
    rule.start = tn_grammar_state(p->g);
    if (json_object_set_new(p->indices, name, json_integer((json_int_t)n_rules(p))) != 0 ||
        !tn_buf_append(&p->rules, (const char *)&rule, sizeof rule)) {
        lacks_memory(p);
        return NULL;
    }
    return rule_at(p, n_rules(p) - 1);
}

/* ---- items ---- */

static bool read_text(struct parser *p, struct piece *piece)
{
    const char *begin = p->text.at - 1;
    char bytes[4];
    uint32_t c, at = piece->in;
    while (!tn_gbnf_accept(&p->text, "\"")) {
        if (p->text.at == p->text.end)
            return refuse(p, begin, "a text without its closing quote");
        const char *character = p->text.at;
        if (!tn_gbnf_character(&p->text, &c))
            return false;
        if (c == 0)
            return refuse(p, character, "U+0000, which no answer has");
        at = tn_grammar_text(p->g, at, bytes, tn_utf8_put(c, bytes));
        piece->reads = true;
    }
    tn_grammar_empty(p->g, at, piece->out);
    return true;
}

static void add_set(struct parser *p, struct piece *piece)
{
    for (uint32_t i = 0; i < p->set.n; i++)
        tn_string_range(p->g, piece->in, p->set.ranges[i].low, p->set.ranges[i].high, piece->out);
    piece->reads = true;
}

/* Reads an item that is no group. */
static bool read_item(struct parser *p, struct piece *piece)
{
    const char *begin = p->text.at;
    if (tn_gbnf_accept(&p->text, "\""))
        return read_text(p, piece);
    if (tn_gbnf_accept(&p->text, "[")) {
        if (!tn_gbnf_class(&p->text, &p->set))
            return false;
        add_set(p, piece);
        return true;
    }
    if (tn_gbnf_accept(&p->text, ".")) {
        p->set.n = 1;
        p->set.ranges[0] = (struct tn_characters){1, TN_LAST_CHARACTER};
        add_set(p, piece);
        return true;
    }
    if (*begin == '<' || *begin == '!')
        return tn_gbnf_refuse(&p->text, TERN_UNSUPPORTED, begin,
                              "tokens (<name>, <[id]>) are not supported");
    if (tn_gbnf_name(&p->text) == 0)
        return refuse(p, begin, "neither a text, a class, a name, a group nor a line end");
    const struct rule *rule = read_name(p);
    if (rule)
        tn_grammar_call(p->g, piece->in, rule->start, piece->out);
    return rule != NULL;
}

/* ---- repetitions ---- */

/* Adds a call, and returns the new state after it. */
static uint32_t call(struct tern_grammar *g, uint32_t from, uint32_t rule)
{
    const uint32_t to = tn_grammar_state(g);
    tn_grammar_call(g, from, rule, to);
    return to;
}

/* Calls the piece, now a rule, from min to max times; max UINT32_MAX: without end. */
static void repeat(struct tern_grammar *g, struct piece *piece, uint32_t min, uint32_t max)
{
    const uint32_t rule = piece->in, out = tn_grammar_state(g), first = tn_grammar_state(g);
    uint32_t at = first;
    tn_grammar_end(g, piece->out);
    for (uint32_t i = 0; i < min && !g->failed; i++)
        at = call(g, at, rule);
    if (max == UINT32_MAX)
        tn_grammar_loop(g, call(g, at, rule), at);
    for (uint32_t i = min; i < max && max != UINT32_MAX && !g->failed; i++) {
        tn_grammar_empty(g, at, out);
        if (piece->reads)
            tn_grammar_count(g, at, max - i);
        at = call(g, at, rule);
    }
    tn_grammar_empty(g, at, out);
    *piece = (struct piece){.in = first, .out = out, .reads = piece->reads && min > 0};
}

/* Reads "m}", "m,}", ",n}" or "m,n}". */
static bool read_counts(struct parser *p, struct piece *piece)
{
    const char *begin = p->text.at - 1;
    uint32_t min = 0, max = UINT32_MAX;
    tn_gbnf_space(&p->text, true);
    if (tn_gbnf_peek(&p->text) != ',' && !tn_gbnf_number(&p->text, MAX_REPEAT, &min))
        return false;
    tn_gbnf_space(&p->text, true);
    const bool has_range = tn_gbnf_accept(&p->text, ",");
    tn_gbnf_space(&p->text, true);
    if (!has_range)
        max = min;
    else if (tn_gbnf_peek(&p->text) != '}' && !tn_gbnf_number(&p->text, MAX_REPEAT, &max))
        return false;
    tn_gbnf_space(&p->text, true);
    if (!tn_gbnf_accept(&p->text, "}"))
        return refuse(p, p->text.at, "a closing brace is missing");
    if (min > max)
        return refuse(p, begin, "a number of repetitions above its maximum");
    repeat(p->g, piece, min, max);
    return true;
}

/* Adds the edges of what follows an item, and connects it. */
static bool connect(struct parser *p, struct piece piece)
{
    for (;;) {
        tn_gbnf_space(&p->text, p->n_groups > 1);
        const char c = tn_gbnf_peek(&p->text);
        if (c == '\0' || !strchr("?*+{", c))
            break;
        p->text.at++;
        if (c == '{') {
            if (!read_counts(p, &piece))
                return false;
            continue;
        }
        if (c != '+') {
            tn_grammar_empty(p->g, piece.in, piece.out);
            piece.reads = false;
        }
        if (c != '?')
            tn_grammar_loop(p->g, piece.out, piece.in);
    }
    tn_grammar_empty(p->g, p->at, piece.in);
    p->at = piece.out;
    return true;
}

/* ---- alternatives and groups ---- */

static void begin_alternative(struct parser *p)
{
    p->at = tn_grammar_state(p->g);
    tn_grammar_empty(p->g, p->groups[p->n_groups - 1].in, p->at);
}

static void begin_group(struct parser *p, uint32_t in)
{
    p->groups[p->n_groups++] =
        (struct group){.in = in, .out = tn_grammar_state(p->g), .begin = p->text.at};
    begin_alternative(p);
}

/* Ends the innermost group or the rule, as a piece. */
static struct piece end_group(struct parser *p)
{
    const struct group *group = &p->groups[--p->n_groups];
    tn_grammar_empty(p->g, p->at, group->out);
    return (struct piece){.in = group->in, .out = group->out};
}

static bool open_group(struct parser *p)
{
    if (p->n_groups > MAX_GROUPS)
        return tn_gbnf_refuse(&p->text, TERN_LIMIT, p->text.at - 1,
                              "groups nest more than %u deep", MAX_GROUPS);
    p->groups[p->n_groups - 1].at = p->at;
    begin_group(p, tn_grammar_state(p->g));
    return true;
}

static bool close_group(struct parser *p)
{
    if (p->n_groups == 1)
        return refuse(p, p->text.at - 1, "a closing parenthesis without an opening one");
    const struct piece piece = end_group(p);
    p->at = p->groups[p->n_groups - 1].at;
    return connect(p, piece);
}

/* At a line end: does an alternative of the same rule follow on a later line? */
static bool goes_on(struct parser *p)
{
    const char *at = p->text.at;
    tn_gbnf_space(&p->text, true);
    if (tn_gbnf_peek(&p->text) == '|')
        return true;
    p->text.at = at;
    return false;
}

/* Reads the next item, bar or parenthesis of a rule.  *is_end: the rule ends instead. */
static bool read_next(struct parser *p, bool *is_end)
{
    struct piece piece;
    tn_gbnf_space(&p->text, p->n_groups > 1);
    const char c = tn_gbnf_peek(&p->text);
    *is_end = p->text.at == p->text.end || ((c == '\n' || c == '\r') && !goes_on(p));
    if (*is_end)
        return true;
    if (tn_gbnf_accept(&p->text, "|")) {
        tn_grammar_empty(p->g, p->at, p->groups[p->n_groups - 1].out);
        begin_alternative(p);
        tn_gbnf_space(&p->text, true);
        return true;
    }
    if (tn_gbnf_accept(&p->text, "("))
        return open_group(p);
    if (tn_gbnf_accept(&p->text, ")"))
        return close_group(p);
    piece = (struct piece){.in = tn_grammar_state(p->g), .out = tn_grammar_state(p->g)};
    return read_item(p, &piece) && connect(p, piece);
}

/* ---- the grammar ---- */

static bool read_rule(struct parser *p)
{
    const char *begin = p->text.at;
    bool is_end = false;
    if (tn_gbnf_name(&p->text) == 0)
        return refuse(p, begin, "the name of a rule is missing");
    struct rule *rule = read_name(p);
    if (!rule)
        return false;
    if (rule->first)
        return refuse(p, begin, "this rule is defined already");
    rule->name = begin;
    rule->first = p->g->n_states;
    tn_gbnf_space(&p->text, false);
    if (!tn_gbnf_accept(&p->text, "::="))
        return refuse(p, p->text.at, "::= is missing");
    tn_gbnf_space(&p->text, true);
    p->n_groups = 0;
    begin_group(p, rule->start);
    while (!is_end && !p->g->failed)
        if (!read_next(p, &is_end))
            return false;
    if (p->n_groups > 1 && is_end)
        return refuse(p, p->groups[p->n_groups - 1].begin, "a group without its closing "
                                                           "parenthesis");
    tn_grammar_end(p->g, end_group(p).out);
    tn_gbnf_space(&p->text, true);
    return true;
}

/* Is nothing left to read from this state but the end of its rule? */
static bool is_tail(const struct tern_grammar *g, uint32_t state)
{
    for (uint32_t n = 0; n < MAX_TAIL; n++) {
        const uint32_t first = g->states[state].first_edge;
        if (first == TN_NO_EDGE)
            return g->states[state].is_end;
        const struct tn_edge *e = &g->edges[first];
        if (g->states[state].is_end || e->kind != TN_EDGE_EMPTY || e->next != TN_NO_EDGE)
            return false;
        state = e->to;
    }
    return false;
}

/* Turns calls with nothing after them into empty edges. */
static void link_tails(struct tern_grammar *g)
{
    for (uint32_t i = 0; i < g->n_edges; i++) {
        struct tn_edge *e = &g->edges[i];
        if (e->kind == TN_EDGE_CALL && is_tail(g, e->to)) {
            e->kind = TN_EDGE_EMPTY;
            e->to = e->callee;
        }
    }
}

/* The rule "root", after a check that every rule is defined.  NULL: refused. */
static const struct rule *find_root(struct parser *p)
{
    const json_t *root = json_object_get(p->indices, "root");
    for (size_t i = 0; i < n_rules(p); i++)
        if (!rule_at(p, i)->first) {
            refuse(p, rule_at(p, i)->name, "this rule is not defined");
            return NULL;
        }
    if (!root) {
        p->text.status = tn_fail(p->text.err, TERN_USAGE, "the rule \"root\" is missing");
        return NULL;
    }
    return rule_at(p, (size_t)json_integer_value(root));
}

/* Adds the rules, and an edge to "root". */
static bool read_rules(struct parser *p)
{
    const size_t n = (size_t)(p->text.end - p->text.begin);
    const size_t n_good = tn_utf8_find_invalid(p->text.begin, n);
    if (n_good < n)
        return refuse(p, p->text.begin + n_good, "not UTF-8");
    tn_gbnf_space(&p->text, true);
    while (p->text.at < p->text.end && !p->g->failed)
        if (!read_rule(p))
            return false;
    const struct rule *root = p->g->failed ? NULL : find_root(p);
    if (!root)
        return false;
    tn_grammar_empty(p->g, p->g->parts, root->start);
    link_tails(p->g);
    return true;
}

/* The rule that a state belongs to: the one defined last before it. */
static const struct rule *rule_of(const struct parser *p, uint32_t state)
{
    const struct rule *found = rule_at(p, 0);
    for (size_t i = 0; i < n_rules(p); i++) {
        const struct rule *rule = rule_at(p, i);
        if (rule->start == state)
            return rule;
        if (rule->first <= state && (found->first > state || rule->first > found->first))
            found = rule;
    }
    return found;
}

static tern_status finish(struct parser *p)
{
    uint32_t state;
    char name[TN_GBNF_MAX_NAME + 16];
    const tern_status status = tn_grammar_finish(p->g, &state, p->text.err);
    if (status != TERN_LIMIT)
        return status;
    const struct rule *rule = rule_of(p, state);
    snprintf(name, sizeof name, "the rule %.*s", (int)rule->n, rule->name);
    tn_fail_prefix(p->text.err, name);
    tn_gbnf_add_place(&p->text, rule->name);
    return status;
}

static tern_status compile(struct parser *p, const struct tern_grammar_preamble *preamble)
{
    tn_grammar_state(p->g); /* state 0 means "none" */
    tn_grammar_begin(p->g, preamble);
    if (read_rules(p) && !p->g->failed)
        return finish(p);
    return p->g->failed ? tn_grammar_fail(p->g, p->text.err) : p->text.status;
}

tern_status tern_grammar_from_gbnf(struct tern_grammar **out, const char *text, size_t n_bytes,
                                   const struct tern_grammar_preamble *preamble,
                                   struct tern_error *err)
{
    struct parser *p = tn_alloc_zeroed(1, sizeof *p);
    struct tern_grammar *g = tn_alloc_zeroed(1, sizeof *g);
    json_t *indices = json_object();
    tern_status status;
    if (!p || !g || !indices)
        status = tn_fail(err, TERN_MEMORY, "no memory for a grammar");
    else if (n_bytes > TERN_GRAMMAR_MAX_SCHEMA)
        status = tn_fail(err, TERN_LIMIT, "a grammar of %zu bytes; the limit is %u", n_bytes,
                         TERN_GRAMMAR_MAX_SCHEMA);
    else {
        p->text = (struct tn_gbnf_text){.begin = text, .at = text, .end = text + n_bytes,
                                        .err = err};
        p->g = g;
        p->indices = indices;
        status = compile(p, preamble);
        tn_buf_fini(&p->rules);
    }
    json_decref(indices);
    tn_free(p);
    *out = status == TERN_OK ? g : NULL;
    if (status != TERN_OK)
        tern_grammar_free(g);
    return status;
}
