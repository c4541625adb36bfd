/* SPDX-License-Identifier: MIT
 *
 * Compiles a regular expression into an automaton in one pass.
 *
 * The fragment read last is always at the end of the automaton, so a quantifier copies it as one
 * block (Thompson's construction with contiguous fragments).
 */
#include "grammar/regex.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/error.h"
#include "grammar/regex_class.h"

/* A fragment of the automaton; `in` is its entry. */
struct fragment {
    uint32_t in, out;
    uint32_t edge; /* its first edge */
};

struct parser {
    struct tn_regex_text text;
    struct tn_nfa *nfa;
    uint32_t at; /* the state after what was read */
    struct group {
        struct fragment fragment;
        const char *begin;
    } groups[TN_REGEX_MAX_GROUPS];
    uint32_t n_groups;
    struct tn_character_set set;
};

static bool refuse(struct parser *p, tern_status status, const char *at, const char *what)
{
    return tn_regex_refuse(&p->text, status, at, what);
}

/* ---- fragments ---- */

/* Connects a new entry state to the current state.  No edge of the fragment itself enters from
 * outside, so it can be copied. */
static struct fragment begin_fragment(struct parser *p)
{
    struct fragment fragment = {.in = tn_nfa_state(p->nfa)};
    tn_nfa_edge(p->nfa, TN_NFA_EMPTY, p->at, fragment.in, 0);
    fragment.edge = p->nfa->n_edges;
    return fragment;
}

static void add_assertion(struct parser *p, enum tn_nfa_kind kind)
{
    const uint32_t to = tn_nfa_state(p->nfa);
    tn_nfa_edge(p->nfa, kind, p->at, to, 0);
    p->at = to;
}

static struct fragment add_set(struct parser *p)
{
    struct fragment fragment = begin_fragment(p);
    fragment.out = tn_nfa_state(p->nfa);
    tn_nfa_edge(p->nfa, TN_NFA_CLASS, fragment.in, fragment.out,
                tn_nfa_class(p->nfa, p->set.ranges, p->set.n));
    return fragment;
}

/* ---- alternatives and groups ---- */

static void begin_alternative(struct parser *p, uint32_t in)
{
    const uint32_t state = tn_nfa_state(p->nfa);
    tn_nfa_edge(p->nfa, TN_NFA_EMPTY, in, state, 0);
    p->at = state;
}

static bool begin_group(struct parser *p, const char *begin)
{
    if (p->n_groups == TN_REGEX_MAX_GROUPS)
        return refuse(p, TERN_LIMIT, begin, "groups are nested more than 64 deep");
    struct fragment fragment = begin_fragment(p);
    fragment.out = tn_nfa_state(p->nfa);
    p->groups[p->n_groups++] = (struct group){fragment, begin};
    begin_alternative(p, fragment.in);
    return true;
}

static struct fragment end_group(struct parser *p)
{
    const struct fragment fragment = p->groups[--p->n_groups].fragment;
    tn_nfa_edge(p->nfa, TN_NFA_EMPTY, p->at, fragment.out, 0);
    return fragment;
}

/* Reads the kind of a group, after "(?". */
static bool read_group_kind(struct parser *p, const char *begin)
{
    struct tn_regex_text *t = &p->text;
    const size_t n = (size_t)(t->end - t->at);
    if (n > 0 && *t->at == ':') {
        t->at++;
        return true;
    }
    if (n > 0 && (*t->at == '=' || *t->at == '!'))
        return refuse(p, TERN_UNSUPPORTED, begin, "look-ahead");
    if (n > 1 && *t->at == '<' && (t->at[1] == '=' || t->at[1] == '!'))
        return refuse(p, TERN_UNSUPPORTED, begin, "look-behind");
    const char *name_end = n > 1 && *t->at == '<' ? memchr(t->at, '>', n) : NULL;
    if (!name_end || name_end == t->at + 1)
        return refuse(p, TERN_UNSUPPORTED, begin, "unknown kind of group");
    t->at = name_end + 1;
    return true;
}

static bool open_group(struct parser *p)
{
    struct tn_regex_text *t = &p->text;
    const char *begin = t->at++;
    if (t->at < t->end && *t->at == '?') {
        t->at++;
        if (!read_group_kind(p, begin))
            return false;
    }
    return begin_group(p, begin);
}

/* ---- quantifiers ---- */

struct repeat {
    uint32_t min, max; /* TN_NFA_NONE: unbounded */
};

/* A decimal number.  false: no digits, or the number is too large. */
static bool read_number(const char **at, const char *end, uint32_t *value)
{
    const char *begin = *at;
    *value = 0;
    for (; *at < end && **at >= '0' && **at <= '9'; ++*at)
        *value = TN_MIN(*value * 10 + (uint32_t)(**at - '0'), TN_REGEX_MAX_REPEAT + 1);
    return *at > begin;
}

/* Reads {m}, {m,} or {m,n}.  *is_one: there is a quantifier. */
static bool read_braces(struct parser *p, struct repeat *r, bool *is_one)
{
    struct tn_regex_text *t = &p->text;
    const char *at = t->at + 1;
    *is_one = false;
    if (!read_number(&at, t->end, &r->min))
        return true;
    r->max = r->min;
    if (at < t->end && *at == ',') {
        at++;
        if (!read_number(&at, t->end, &r->max))
            r->max = TN_NFA_NONE;
    }
    if (at == t->end || *at != '}')
        return true;
    if (r->min > TN_REGEX_MAX_REPEAT || (r->max > TN_REGEX_MAX_REPEAT && r->max != TN_NFA_NONE))
        return refuse(p, TERN_LIMIT, t->at, "a count of more than 10000");
    if (r->min > r->max)
        return refuse(p, TERN_USAGE, t->at, "a count out of order");
    t->at = at + 1;
    *is_one = true;
    return true;
}

static bool read_quantifier(struct parser *p, struct repeat *r, bool *is_one)
{
    struct tn_regex_text *t = &p->text;
    const char c = t->at < t->end ? *t->at : 0;
    *is_one = c == '*' || c == '+' || c == '?';
    if (*is_one) {
        *r = (struct repeat){c == '+', c == '?' ? 1 : TN_NFA_NONE};
        t->at++;
    } else if (c == '{' && !read_braces(p, r, is_one)) {
        return false;
    }
    if (*is_one && t->at < t->end && *t->at == '?') /* a lazy quantifier matches the same texts */
        t->at++;
    return true;
}

/* Chains copies of a fragment; copies beyond r.min are optional. */
static bool repeat_fragment(struct parser *p, struct fragment fragment, struct repeat r,
                            const char *at)
{
    struct tn_nfa *nfa = p->nfa;
    const uint32_t n = r.max != TN_NFA_NONE ? r.max : TN_MAX(r.min, 1);
    const uint32_t end = nfa->n_states, end_edge = nfa->n_edges, size = end - fragment.in;
    const uint64_t n_states = (uint64_t)size * n;
    if (n > 1 && n_states > TN_NFA_MAX_STATES) {
        char what[80];
        snprintf(what, sizeof what, "%" PRIu64 " states (the limit is %u)", n_states,
                 TN_NFA_MAX_STATES);
        return refuse(p, TERN_LIMIT, at, what);
    }
    for (uint32_t i = 1; i < n; i++)
        (void)tn_nfa_copy(nfa, fragment.in, end, fragment.edge, end_edge);
    const uint32_t after = tn_nfa_state(nfa);
    for (uint32_t i = 0; i < n && !nfa->failed; i++) {
        const uint32_t in = fragment.in + i * size, out = fragment.out + i * size;
        tn_nfa_edge(nfa, TN_NFA_EMPTY, out, i + 1 < n ? in + size : after, 0);
        if (i >= r.min)
            tn_nfa_edge(nfa, TN_NFA_EMPTY, in, after, 0);
    }
    if (n == 0)
        tn_nfa_edge(nfa, TN_NFA_EMPTY, fragment.in, after, 0);
    else if (r.max == TN_NFA_NONE && !nfa->failed)
        tn_nfa_edge(nfa, TN_NFA_EMPTY, fragment.out + (n - 1) * size,
                    fragment.in + (n - 1) * size, 0);
    p->at = after;
    return true;
}

/* Reads the quantifier after an atom, if there is one. */
static bool end_atom(struct parser *p, struct fragment fragment)
{
    const char *at = p->text.at;
    struct repeat r;
    bool is_one;
    p->at = fragment.out;
    return read_quantifier(p, &r, &is_one) && (!is_one || repeat_fragment(p, fragment, r, at));
}

/* ---- whole expression ---- */

static bool read_character(struct parser *p)
{
    struct tn_regex_text *t = &p->text;
    const char *begin = t->at;
    struct repeat r;
    bool is_one = false;
    p->set.n = 0;
    if (*t->at == '{' && !read_braces(p, &r, &is_one))
        return false;
    if (is_one || strchr("*+?", *begin))
        return refuse(p, TERN_USAGE, begin, "nothing to repeat");
    const uint32_t c = tn_regex_next(t);
    bool is_good = true;
    if (c == '\\')
        is_good = tn_regex_escape(t, &p->set);
    else if (c == '[')
        is_good = tn_regex_brackets(t, &p->set);
    else if (c == '.')
        tn_regex_dot(&p->set);
    else
        p->set.ranges[p->set.n++] = (struct tn_characters){c, c};
    return is_good && end_atom(p, add_set(p));
}

static bool read_one(struct parser *p)
{
    struct tn_regex_text *t = &p->text;
    switch (*t->at) {
    case '(':
        return open_group(p);
    case ')':
        if (p->n_groups == 1)
            return refuse(p, TERN_USAGE, t->at, "unopened group");
        t->at++;
        return end_atom(p, end_group(p));
    case '|':
        t->at++;
        tn_nfa_edge(p->nfa, TN_NFA_EMPTY, p->at, p->groups[p->n_groups - 1].fragment.out, 0);
        begin_alternative(p, p->groups[p->n_groups - 1].fragment.in);
        return true;
    case '^':
    case '$':
        add_assertion(p, *t->at++ == '^' ? TN_NFA_BEGIN : TN_NFA_END);
        return true;
    default:
        return read_character(p);
    }
}

/* Adds a loop over any text, for an expression that is not anchored at that end. */
static uint32_t add_any_text(struct parser *p)
{
    struct tn_characters all = {0, TN_LAST_CHARACTER};
    const uint32_t state = tn_nfa_state(p->nfa);
    tn_nfa_edge(p->nfa, TN_NFA_CLASS, state, state, tn_nfa_class(p->nfa, &all, 1));
    return state;
}

static bool read_all(struct parser *p, bool is_whole)
{
    struct tn_regex_text *t = &p->text;
    struct tn_nfa *nfa = p->nfa;
    const uint32_t start = p->at = add_any_text(p);
    if (is_whole)
        add_assertion(p, TN_NFA_BEGIN);
    (void)begin_group(p, t->begin);
    while (t->at < t->end && !nfa->failed)
        if (!read_one(p))
            return false;
    if (!nfa->failed && p->n_groups > 1)
        return refuse(p, TERN_USAGE, p->groups[p->n_groups - 1].begin, "unclosed group");
    p->at = end_group(p).out;
    if (is_whole)
        add_assertion(p, TN_NFA_END);
    const uint32_t accept = add_any_text(p);
    tn_nfa_edge(nfa, TN_NFA_EMPTY, p->at, accept, 0);
    nfa->expressions[nfa->n_expressions].start = start;
    nfa->expressions[nfa->n_expressions++].accept = accept;
    return true;
}

tern_status tn_regex_add(struct tn_nfa *nfa, const char *text, bool is_whole,
                         struct tern_error *err)
{
    const size_t n = strlen(text);
    struct parser p = {.text = {text, text, text + n, err, TERN_OK}, .nfa = nfa};
    if (n > TN_REGEX_MAX_BYTES)
        return tn_fail(err, TERN_LIMIT, "%zu bytes; the limit is %u", n, TN_REGEX_MAX_BYTES);
    if (nfa->n_expressions == TN_NFA_MAX_EXPRESSIONS)
        return tn_fail(err, TERN_LIMIT, "more than %u expressions", TN_NFA_MAX_EXPRESSIONS);
    if (!read_all(&p, is_whole))
        return p.text.status;
    if (nfa->failed == TERN_MEMORY)
        return tn_fail(err, TERN_MEMORY, "no memory for a grammar");
    if (nfa->failed)
        return tn_fail(err, TERN_LIMIT, "more than %u states", TN_NFA_MAX_STATES);
    return tn_ok(err);
}
