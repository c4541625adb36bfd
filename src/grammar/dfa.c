/* SPDX-License-Identifier: MIT
 *
 * Builds the deterministic automaton by the subset construction.
 *
 * Characters are first partitioned into symbols, then sets of NFA states become DFA states, then
 * transitions to states without a path to an end are cut.
 */
#include "grammar/dfa.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/utf8.h"

/* Limit on the members of all sets together; bounds memory. */
#define MAX_MEMBERS (1u << 20)
#define N_SLOTS (2u * TN_DFA_MAX_STATES)

/* A set of NFA states, restricted to those that a character or the end of the text can follow. */
struct set {
    uint32_t first, n; /* slice of `members` */
};

/* How a class splits a symbol. */
struct symbol {
    uint32_t n, n_in; /* ranges of the symbol, and those inside the class */
    uint32_t other;   /* symbol of the ranges inside the class if it was split; or 0 */
};

struct builder {
    const struct tn_nfa *nfa;
    struct tn_dfa *dfa;
    uint8_t *is_in;    /* [n_classes][n_symbols] */
    struct set *sets;  /* [dfa n_states] */
    uint32_t *members; /* pool of all sets */
    uint32_t n_members, member_capacity, state_capacity;
    uint32_t *slots;             /* [N_SLOTS] hash table: DFA states by their sets */
    bool *can_end; /* [n nfa states] an accepting state is reachable after the start of the text */
    uint32_t *todo, *kept;       /* [n nfa states] the set under construction */
    uint32_t *seen, n_seen;      /* [n nfa states] marks, and the current mark */
    uint32_t n_todo, n_kept;
    uint64_t *steps;
    tern_status failed;
    const char *limit; /* detail of TERN_LIMIT */
};

/* ---- symbols ---- */

static int compare(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Sorted boundaries: starts of ranges, the positions after their ends, and the gaps of Unicode
 * (surrogates, NUL). */
static uint32_t *find_cuts(const struct tn_nfa *nfa, uint32_t *n)
{
    static const uint32_t fixed[] = {1, 0xD800, 0xE000, TN_LAST_CHARACTER + 1};
    uint32_t *cuts = tn_alloc((2 * (size_t)nfa->n_ranges + 4) * sizeof *cuts);
    if (!cuts)
        return NULL;
    memcpy(cuts, fixed, sizeof fixed);
    *n = TN_COUNT_OF(fixed);
    for (uint32_t i = 0; i < nfa->n_ranges; i++) {
        cuts[(*n)++] = nfa->ranges[i].low;
        cuts[(*n)++] = nfa->ranges[i].high + 1;
    }
    qsort(cuts, *n, sizeof *cuts, compare);
    return cuts;
}

static bool make_ranges(struct tn_dfa *dfa, const struct tn_nfa *nfa)
{
    uint32_t n_cuts = 0, *cuts = find_cuts(nfa, &n_cuts);
    if (cuts)
        dfa->ranges = tn_alloc_zeroed(n_cuts, sizeof *dfa->ranges);
    for (uint32_t i = 0; dfa->ranges && i + 1 < n_cuts; i++) {
        const bool is_character =
            cuts[i] > 0 && cuts[i] != 0xD800 && cuts[i] <= TN_LAST_CHARACTER &&
            !(cuts[i] > 0xD800 && cuts[i] < 0xE000);
        if (is_character && cuts[i] < cuts[i + 1])
            dfa->ranges[dfa->n_ranges++].characters =
                (struct tn_characters){cuts[i], cuts[i + 1] - 1};
    }
    tn_free(cuts);
    return dfa->ranges != NULL;
}

static bool has_character(const struct tn_nfa *nfa, uint32_t class, uint32_t c)
{
    uint32_t low = nfa->classes[class].first, n = nfa->classes[class].n;
    while (n > 0) { /* index of the first range that ends at or after c */
        const uint32_t half = n / 2;
        if (nfa->ranges[low + half].high < c) {
            low += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return low < nfa->classes[class].first + nfa->classes[class].n && nfa->ranges[low].low <= c;
}

/* Splits each symbol that has ranges inside and outside of a class. */
static void split_symbols(struct tn_dfa *dfa, const struct tn_nfa *nfa, uint32_t class,
                          struct symbol *symbols)
{
    memset(symbols, 0, dfa->n_symbols * sizeof *symbols);
    for (uint32_t i = 0; i < dfa->n_ranges; i++) {
        const struct tn_dfa_range *r = &dfa->ranges[i];
        symbols[r->symbol].n++;
        symbols[r->symbol].n_in += has_character(nfa, class, r->characters.low);
    }
    for (uint32_t i = 0, n = dfa->n_symbols; i < n; i++)
        if (symbols[i].n_in > 0 && symbols[i].n_in < symbols[i].n)
            symbols[i].other = dfa->n_symbols++;
    for (uint32_t i = 0; i < dfa->n_ranges; i++) {
        struct tn_dfa_range *r = &dfa->ranges[i];
        if (symbols[r->symbol].other && has_character(nfa, class, r->characters.low))
            r->symbol = symbols[r->symbol].other;
    }
}

/* Ranges that belong to the same classes share a symbol. */
static bool make_symbols(struct builder *b)
{
    struct tn_dfa *dfa = b->dfa;
    if (!make_ranges(dfa, b->nfa))
        return false;
    struct symbol *symbols = tn_alloc_zeroed(dfa->n_ranges, sizeof *symbols);
    dfa->n_symbols = 1;
    for (uint32_t class = 0; symbols && class < b->nfa->n_classes; class++)
        split_symbols(dfa, b->nfa, class, symbols);
    tn_free(symbols);
    b->is_in = tn_alloc((size_t)b->nfa->n_classes * dfa->n_symbols);
    for (uint32_t i = 0; b->is_in && i < dfa->n_ranges; i++)
        for (uint32_t class = 0; class < b->nfa->n_classes; class++)
            b->is_in[class * dfa->n_symbols + dfa->ranges[i].symbol] =
                has_character(b->nfa, class, dfa->ranges[i].characters.low);
    return symbols && b->is_in;
}

/* ---- sets ---- */

static void meet_limit(struct builder *b, const char *limit)
{
    if (b->failed)
        return;
    b->failed = TERN_LIMIT;
    b->limit = limit;
}

/* Charges n steps.  false: none are left, or an earlier failure. */
static bool spend(struct builder *b, uint64_t n)
{
    if (*b->steps < n)
        meet_limit(b, "the schema is too complex: it takes too many steps");
    if (!b->failed)
        *b->steps -= n;
    return !b->failed;
}

static void begin_set(struct builder *b)
{
    b->n_todo = 0;
    b->n_seen++;
}

static void visit(struct builder *b, uint32_t state)
{
    if (b->seen[state] == b->n_seen)
        return;
    b->seen[state] = b->n_seen;
    b->todo[b->n_todo++] = state;
}

/* Epsilon closure of `todo`.  `begins`, `ends`: assertions of the start and end of the text hold.
 */
static void close_set(struct builder *b, bool begins, bool ends)
{
    for (uint32_t i = 0; i < b->n_todo; i++)
        for (uint32_t k = b->nfa->states[b->todo[i]]; k != TN_NFA_NONE;
             k = b->nfa->edges[k].next) {
            const struct tn_nfa_edge *e = &b->nfa->edges[k];
            if (e->kind == TN_NFA_EMPTY || (e->kind == TN_NFA_BEGIN && begins) ||
                (e->kind == TN_NFA_END && ends))
                visit(b, e->to);
        }
    (void)spend(b, b->n_todo);
}

/* Is every expression's accepting state in the closure? */
static bool is_accepted(const struct builder *b)
{
    for (uint32_t i = 0; i < b->nfa->n_expressions; i++)
        if (b->seen[b->nfa->expressions[i].accept] != b->n_seen)
            return false;
    return true;
}

/* The closure accepts this state's expression whatever follows, so its other states are redundant.
 */
static bool is_settled(const struct builder *b, uint32_t state)
{
    for (uint32_t i = 0; i < b->nfa->n_expressions; i++) {
        const uint32_t accept = b->nfa->expressions[i].accept;
        if (state >= b->nfa->expressions[i].start && state < accept)
            return b->seen[accept] == b->n_seen;
    }
    return false;
}

/* Does the set contain a state of every expression?  States of an expression are contiguous. */
static bool is_hopeful(const struct builder *b)
{
    uint32_t k = 0;
    for (uint32_t i = 0; i < b->nfa->n_expressions; i++) {
        const uint32_t from = b->nfa->expressions[i].start, to = b->nfa->expressions[i].accept;
        while (k < b->n_kept && b->kept[k] < from)
            k++;
        if (k == b->n_kept || b->kept[k] > to)
            return false;
    }
    return true;
}

/* Stores in `kept`, sorted, the states of the closure that a character or the end of the text can
 * follow.  After the start of the text only states that can reach an end are kept, and none if an
 * expression has no state left. */
static void keep_set(struct builder *b, bool begins)
{
    b->n_kept = 0;
    for (uint32_t i = 0; i < b->n_todo; i++) {
        bool leads_on = false;
        for (uint32_t k = b->nfa->states[b->todo[i]]; k != TN_NFA_NONE; k = b->nfa->edges[k].next)
            leads_on = leads_on || b->nfa->edges[k].kind == TN_NFA_CLASS ||
                       b->nfa->edges[k].kind == TN_NFA_END;
        if (leads_on && (begins || b->can_end[b->todo[i]]) && !is_settled(b, b->todo[i]))
            b->kept[b->n_kept++] = b->todo[i];
    }
    qsort(b->kept, b->n_kept, sizeof *b->kept, compare);
    (void)spend(b, 8 * (uint64_t)b->n_kept);
    if (!begins && !is_hopeful(b))
        b->n_kept = 0;
}

/* Finds the states that reach an accepting one without the start-of-text assertion; edges of that
 * kind become self-loops.  `todo` is the queue; reverse edges are stored in counting-sort order. */
static bool find_ends(struct builder *b)
{
    const struct tn_nfa *nfa = b->nfa;
    uint32_t *first = tn_alloc_zeroed(nfa->n_states + 1, sizeof *first), n_todo = 0;
    uint32_t *from = tn_alloc((nfa->n_edges + 1) * sizeof *from);
    const bool has_memory = first && from;
    for (uint32_t i = 0; has_memory && i < nfa->n_edges; i++)
        first[nfa->edges[i].to]++;
    for (uint32_t i = 1; has_memory && i <= nfa->n_states; i++)
        first[i] += first[i - 1];
    for (uint32_t state = 0; has_memory && state < nfa->n_states; state++)
        for (uint32_t k = nfa->states[state]; k != TN_NFA_NONE; k = nfa->edges[k].next)
            from[--first[nfa->edges[k].to]] =
                nfa->edges[k].kind == TN_NFA_BEGIN ? nfa->edges[k].to : state;
    for (uint32_t i = 0; has_memory && i < nfa->n_expressions; i++) {
        b->can_end[nfa->expressions[i].accept] = true;
        b->todo[n_todo++] = nfa->expressions[i].accept;
    }
    for (uint32_t i = 0; i < n_todo; i++)
        for (uint32_t k = first[b->todo[i]]; k < first[b->todo[i] + 1]; k++)
            if (!b->can_end[from[k]]) {
                b->can_end[from[k]] = true;
                b->todo[n_todo++] = from[k];
            }
    tn_free(first);
    tn_free(from);
    return has_memory;
}

/* ---- states ---- */

static bool grow(struct builder *b)
{
    struct tn_dfa *dfa = b->dfa;
    if (dfa->n_states < b->state_capacity)
        return true;
    const uint32_t larger = b->state_capacity ? 2 * b->state_capacity : 64;
    uint32_t *next = tn_realloc(dfa->next, (size_t)larger * dfa->n_symbols * sizeof *next);
    dfa->next = next ? next : dfa->next;
    bool *is_end = tn_realloc(dfa->is_end, larger * sizeof *is_end);
    dfa->is_end = is_end ? is_end : dfa->is_end;
    struct set *sets = tn_realloc(b->sets, larger * sizeof *sets);
    b->sets = sets ? sets : b->sets;
    b->state_capacity = larger;
    return next && is_end && sets;
}

static bool grow_members(struct builder *b)
{
    const uint32_t n = b->n_members + b->n_kept;
    if (n > MAX_MEMBERS)
        meet_limit(b, "an automaton whose sets have more than 1048576 states");
    if (b->failed || n <= b->member_capacity)
        return !b->failed;
    const uint32_t larger = TN_MIN(TN_MAX(2 * n, 1024), MAX_MEMBERS);
    uint32_t *members = tn_realloc(b->members, larger * sizeof *members);
    if (!members)
        return false;
    b->members = members;
    b->member_capacity = larger;
    return true;
}

/* Adds a state for the set in `kept`. */
static uint32_t add_state(struct builder *b)
{
    struct tn_dfa *dfa = b->dfa;
    if (dfa->n_states == TN_DFA_MAX_STATES)
        meet_limit(b, "an automaton of more than 8192 states");
    if (!b->failed && (!grow(b) || !grow_members(b)))
        b->failed = b->failed ? b->failed : TERN_MEMORY;
    if (!spend(b, dfa->n_symbols + dfa->n_ranges))
        return TN_DFA_DEAD;
    memset(dfa->next + (size_t)dfa->n_states * dfa->n_symbols, 0,
           dfa->n_symbols * sizeof *dfa->next);
    b->sets[dfa->n_states] = (struct set){b->n_members, b->n_kept};
    if (b->n_kept > 0)
        memcpy(b->members + b->n_members, b->kept, b->n_kept * sizeof *b->kept);
    b->n_members += b->n_kept;
    dfa->is_end[dfa->n_states] = false;
    return dfa->n_states++;
}

static bool is_kept(const struct builder *b, uint32_t state)
{
    const struct set *s = &b->sets[state];
    return s->n == b->n_kept &&
           memcmp(b->members + s->first, b->kept, s->n * sizeof *b->kept) == 0;
}

/* Finds or adds the state for the set in `kept`.  It never equals the start state, where ^ still
 * holds. */
static uint32_t find_state(struct builder *b)
{
    uint32_t hash = 0;
    if (b->n_kept == 0)
        return TN_DFA_DEAD;
    for (uint32_t i = 0; i < b->n_kept; i++)
        hash = (hash ^ b->kept[i]) * 0x9E3779B1u, hash ^= hash >> 15;
    uint32_t i = hash % N_SLOTS;
    for (; b->slots[i]; i = (i + 1) % N_SLOTS)
        if (is_kept(b, b->slots[i]))
            return b->slots[i];
    return b->slots[i] = add_state(b);
}

/* ---- transitions ---- */

static void step(struct builder *b, uint32_t state, uint32_t symbol)
{
    const struct set s = b->sets[state];
    const struct tn_nfa *nfa = b->nfa;
    begin_set(b);
    for (uint32_t i = s.first; i < s.first + s.n; i++)
        for (uint32_t k = nfa->states[b->members[i]]; k != TN_NFA_NONE; k = nfa->edges[k].next) {
            const struct tn_nfa_edge *e = &nfa->edges[k];
            if (e->kind == TN_NFA_CLASS && b->is_in[e->class * b->dfa->n_symbols + symbol])
                visit(b, e->to);
        }
    if (!spend(b, 1 + s.n) || b->n_todo == 0)
        return;
    close_set(b, false, false);
    keep_set(b, false);
    const uint32_t next = find_state(b);
    b->dfa->next[(size_t)state * b->dfa->n_symbols + symbol] = next;
}

static void find_end(struct builder *b, uint32_t state)
{
    const struct set s = b->sets[state];
    begin_set(b);
    for (uint32_t i = s.first; i < s.first + s.n; i++)
        visit(b, b->members[i]);
    close_set(b, state == TN_DFA_START, true);
    b->dfa->is_end[state] = is_accepted(b);
}

static void build(struct builder *b)
{
    b->n_kept = 0;
    (void)add_state(b); /* TN_DFA_DEAD */
    begin_set(b);
    for (uint32_t i = 0; i < b->nfa->n_expressions; i++)
        visit(b, b->nfa->expressions[i].start);
    close_set(b, true, false);
    keep_set(b, true);
    (void)add_state(b); /* TN_DFA_START */
    for (uint32_t state = TN_DFA_START; state < b->dfa->n_states && !b->failed; state++) {
        find_end(b, state);
        for (uint32_t symbol = 0; symbol < b->dfa->n_symbols && !b->failed; symbol++)
            step(b, state, symbol);
    }
}

/* ---- dead states ---- */

/* Redirects transitions to states that cannot reach an end to TN_DFA_DEAD.  `todo` is the queue of
 * states that can; reverse edges are stored in counting-sort order. */
static bool cut_dead(struct tn_dfa *dfa)
{
    const size_t n_edges = (size_t)dfa->n_states * dfa->n_symbols;
    uint32_t *first = tn_alloc_zeroed(dfa->n_states + 1, sizeof *first);
    uint32_t *from = tn_alloc(n_edges * sizeof *from);
    uint32_t *todo = tn_alloc(dfa->n_states * sizeof *todo), n_todo = 0;
    bool *is_live = tn_alloc_zeroed(dfa->n_states, sizeof *is_live);
    const bool has_memory = first && from && todo && is_live;
    for (size_t i = 0; has_memory && i < n_edges; i++)
        first[dfa->next[i]]++;
    for (uint32_t i = 1; has_memory && i <= dfa->n_states; i++)
        first[i] += first[i - 1];
    for (size_t i = 0; has_memory && i < n_edges; i++)
        from[--first[dfa->next[i]]] = (uint32_t)(i / dfa->n_symbols);
    for (uint32_t i = 0; has_memory && i < dfa->n_states; i++)
        if (dfa->is_end[i]) {
            is_live[i] = true;
            todo[n_todo++] = i;
        }
    for (uint32_t i = 0; i < n_todo; i++)
        for (uint32_t k = first[todo[i]]; k < first[todo[i] + 1]; k++)
            if (!is_live[from[k]]) {
                is_live[from[k]] = true;
                todo[n_todo++] = from[k];
            }
    for (size_t i = 0; has_memory && i < n_edges; i++)
        if (!is_live[dfa->next[i]])
            dfa->next[i] = TN_DFA_DEAD;
    if (has_memory && !is_live[TN_DFA_START])
        dfa->n_states = 0;
    tn_free(first);
    tn_free(from);
    tn_free(todo);
    tn_free(is_live);
    return has_memory;
}

/* ---- creation ---- */

static bool take_memory(struct builder *b)
{
    const uint32_t n = b->nfa->n_states;
    b->slots = tn_alloc_zeroed(N_SLOTS, sizeof *b->slots);
    b->todo = tn_alloc(n * sizeof *b->todo);
    b->kept = tn_alloc(n * sizeof *b->kept);
    b->seen = tn_alloc_zeroed(n, sizeof *b->seen);
    b->can_end = tn_alloc_zeroed(n, sizeof *b->can_end);
    return b->slots && b->todo && b->kept && b->seen && b->can_end && find_ends(b) &&
           make_symbols(b);
}

static void free_builder(struct builder *b)
{
    tn_free(b->is_in);
    tn_free(b->sets);
    tn_free(b->members);
    tn_free(b->slots);
    tn_free(b->todo);
    tn_free(b->kept);
    tn_free(b->seen);
    tn_free(b->can_end);
}

tern_status tn_dfa_create(struct tn_dfa *out, const struct tn_nfa *nfa, uint64_t *steps,
                          struct tern_error *err)
{
    struct builder b = {.nfa = nfa, .dfa = out, .steps = steps};
    tern_status status = tn_ok(err);
    *out = (struct tn_dfa){0};
    if (!take_memory(&b))
        b.failed = TERN_MEMORY;
    else if (spend(&b, (uint64_t)nfa->n_classes * (out->n_ranges + nfa->n_classes) + N_SLOTS / 8 +
                           2 * (uint64_t)nfa->n_states + nfa->n_edges))
        build(&b);
    if (!b.failed && (!cut_dead(out) || !tn_dfa_measure(out)))
        b.failed = TERN_MEMORY;
    if (b.failed == TERN_LIMIT)
        status = tn_fail(err, TERN_LIMIT, "%s", b.limit);
    else if (b.failed)
        status = tn_fail(err, TERN_MEMORY, "no memory for a grammar");
    else if (out->n_states == 0)
        status = tn_fail(err, TERN_USAGE, "no text fits");
    if (status != TERN_OK)
        tn_dfa_fini(out);
    free_builder(&b);
    return status;
}

void tn_dfa_fini(struct tn_dfa *dfa)
{
    tn_free(dfa->next);
    tn_free(dfa->is_end);
    tn_free(dfa->ranges);
    *dfa = (struct tn_dfa){0};
}

/* ---- matching ---- */

static uint32_t symbol_of(const struct tn_dfa *dfa, uint32_t c)
{
    uint32_t low = 0, n = dfa->n_ranges;
    while (n > 1) { /* index of the last range that begins at or before c */
        const uint32_t half = n / 2;
        if (dfa->ranges[low + half].characters.low <= c) {
            low += half;
            n -= half;
        } else {
            n = half;
        }
    }
    return dfa->ranges[low].symbol;
}

bool tn_dfa_takes(const struct tn_dfa *dfa, const char *text)
{
    uint32_t state = TN_DFA_START, c;
    size_t n = strlen(text);
    while (n > 0 && state != TN_DFA_DEAD) {
        const size_t step = tn_utf8_character(text, n, &c);
        state = dfa->next[(size_t)state * dfa->n_symbols + symbol_of(dfa, c)];
        text += step;
        n -= step;
    }
    return state != TN_DFA_DEAD && dfa->is_end[state];
}
