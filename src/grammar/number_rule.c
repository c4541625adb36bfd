/* SPDX-License-Identifier: MIT
 *
 * Compiles bounds and multiples of a number into an automaton over its digits, last state first.
 *
 * A state is determined by the number of digits before and after the point, their order relative to
 * the same number of digits of each bound, and their remainder modulo the multiple.  Equivalent
 * states are merged.  Digits are bounded, so successors are built before their predecessors.
 */
#include "grammar/number_rule.h"

#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/error.h"

#define INTEGER_DIGITS 16u
#define INT64_DIGITS 19u
#define REAL_DIGITS 15u
#define MAX_STATES 16384u
#define STEPS_OF_A_STATE 8u
#define STEPS_OF_A_RULE 1000u

enum { LESS, SAME, MORE, N_ORDERS };

/* Bounds of numbers without a sign. */
struct span {
    struct tn_bound lower, upper;
};

/* Successors of a state; states with equal successors are the same state. */
struct follow {
    uint32_t digits[10]; /* grammar states; 0: none */
    uint32_t point;
    uint32_t is_end;
};

struct writer {
    struct tern_grammar *g;
    const struct tn_number_limits *limits;
    struct span span;
    uint32_t modulus;     /* 1: without "multipleOf" */
    struct follow *follows; /* [n_states] */
    uint32_t *states;       /* [n_states] their grammar states */
    uint32_t n_states, capacity;
    uint32_t *slots;                /* [2 * MAX_STATES] hash table: 1 + index in follows */
    uint32_t *whole, *next_whole;   /* [N_ORDERS][N_ORDERS][modulus] states after n digits */
    uint32_t *fraction, *next_fraction; /* the same after the point */
    uint64_t *steps;
    tern_status failed;
};

static bool has_failed(const struct writer *w)
{
    return w->failed || w->g->failed;
}

static bool spend(struct writer *w, uint64_t n)
{
    if (!w->failed && *w->steps < n)
        w->failed = TERN_LIMIT;
    if (!w->failed)
        *w->steps -= n;
    return !has_failed(w);
}

/* ---- states ---- */

static uint32_t hash_of(const struct follow *f)
{
    uint64_t h = f->point * 2u + f->is_end;
    for (uint32_t i = 0; i < 10; i++)
        h = (h ^ f->digits[i]) * 0x9E3779B97F4A7C15u, h ^= h >> 29;
    return (uint32_t)(h >> 7);
}

static bool grow(struct writer *w)
{
    if (w->n_states < w->capacity)
        return true;
    const uint32_t larger = w->capacity ? 2 * w->capacity : 64;
    struct follow *follows = tn_realloc(w->follows, larger * sizeof *follows);
    w->follows = follows ? follows : w->follows;
    uint32_t *states = tn_realloc(w->states, larger * sizeof *states);
    w->states = states ? states : w->states;
    w->capacity = larger;
    return follows && states;
}

/* Adds one edge for each run of digits with the same target. */
static void add_digits(struct tern_grammar *g, uint32_t from, const uint32_t digits[10])
{
    for (uint32_t low = 0, high; low < 10; low = high + 1) {
        for (high = low; high < 9 && digits[high + 1] == digits[low];)
            high++;
        if (digits[low])
            tn_grammar_bytes(g, from, (uint8_t)('0' + low), (uint8_t)('0' + high), digits[low]);
    }
}

static uint32_t add_state(struct writer *w, const struct follow *f)
{
    struct tern_grammar *g = w->g;
    const uint32_t state = tn_grammar_state(g);
    if (f->is_end)
        tn_grammar_end(g, state);
    if (f->point)
        tn_grammar_bytes(g, state, '.', '.', f->point);
    add_digits(g, state, f->digits);
    w->follows[w->n_states] = *f;
    w->states[w->n_states++] = state;
    return state;
}

/* The state with these successors, added if it is new; 0: there are no successors. */
static uint32_t state_of(struct writer *w, const struct follow *f)
{
    static const struct follow nothing;
    if (!spend(w, STEPS_OF_A_STATE) || memcmp(f, &nothing, sizeof *f) == 0)
        return 0;
    uint32_t i = hash_of(f) % (2 * MAX_STATES);
    for (; w->slots[i]; i = (i + 1) % (2 * MAX_STATES))
        if (memcmp(&w->follows[w->slots[i] - 1], f, sizeof *f) == 0)
            return w->states[w->slots[i] - 1];
    if (w->n_states == MAX_STATES || !grow(w)) {
        w->failed = w->n_states == MAX_STATES ? TERN_LIMIT : TERN_MEMORY;
        return 0;
    }
    w->slots[i] = w->n_states + 1;
    return add_state(w, f);
}

/* ---- comparing ---- */

/* Number of digits of a bound before the point. */
static uint32_t n_whole(const struct tn_bound *b)
{
    return b->at.n > 0 && b->at.exponent > 1 ? (uint32_t)b->at.exponent : 1;
}

/* Order relative to a bound after one more digit, the one at `place`. */
static uint32_t order_with(const struct tn_bound *b, uint32_t order, int32_t place, uint32_t digit)
{
    const uint32_t other = tn_decimal_digit(&b->at, place);
    return order != SAME ? order : digit < other ? LESS : digit > other ? MORE : SAME;
}

/* Order of an integer part of n digits relative to a bound: with fewer or more digits than the
 * bound's integer part, their number decides. */
static uint32_t order_of_whole(const struct tn_bound *b, uint32_t order, uint32_t n)
{
    return !b->exists ? order : n < n_whole(b) ? LESS : n > n_whole(b) ? MORE : order;
}

/* Is a number with this order, after up to n digits of its fraction, within the bound? */
static bool is_within(const struct tn_bound *b, uint32_t order, uint32_t n, uint32_t good)
{
    if (!b->exists || order != SAME)
        return !b->exists || order == good;
    const bool has_more = (int32_t)b->at.n - b->at.exponent > (int32_t)n && b->at.n > 0;
    return has_more ? good == LESS : !b->is_open;
}

static bool is_multiple(const struct writer *w, uint32_t remainder, uint32_t n_fraction)
{
    uint64_t r = remainder;
    for (uint32_t i = n_fraction; i < w->limits->scale && r > 0; i++)
        r = r * 10 % w->modulus;
    return r == 0;
}

static bool can_end(const struct writer *w, uint32_t lower, uint32_t upper, uint32_t remainder,
                    uint32_t n_fraction)
{
    return is_within(&w->span.lower, lower, n_fraction, MORE) &&
           is_within(&w->span.upper, upper, n_fraction, LESS) &&
           is_multiple(w, remainder, n_fraction);
}

/* ---- tables ---- */

static size_t index_of(const struct writer *w, uint32_t lower, uint32_t upper, uint32_t remainder)
{
    return ((size_t)lower * N_ORDERS + upper) * w->modulus + remainder;
}

static size_t table_bytes(const struct writer *w)
{
    return (size_t)N_ORDERS * N_ORDERS * w->modulus * sizeof *w->whole;
}

/* Fills f->digits with the states in `table` after one more digit, the one at `place`. */
static void follow_digits(const struct writer *w, struct follow *f, const uint32_t *table,
                          uint32_t lower, uint32_t upper, uint32_t remainder, int32_t place[2])
{
    for (uint32_t d = 0; d < 10; d++)
        f->digits[d] = table[index_of(w, order_with(&w->span.lower, lower, place[0], d),
                                      order_with(&w->span.upper, upper, place[1], d),
                                      (remainder * 10 + d) % w->modulus)];
}

/* Visits every (order, order, remainder) triple. */
#define FOR_ALL(w, lower, upper, r)                                                                \
    for (uint32_t lower = (w)->span.lower.exists ? LESS : MORE; lower < N_ORDERS; lower++)         \
        for (uint32_t upper = LESS; upper < ((w)->span.upper.exists ? N_ORDERS : SAME); upper++)   \
            for (uint32_t r = 0; r < (w)->modulus; r++)

static void swap(uint32_t **a, uint32_t **b)
{
    uint32_t *c = *a;
    *a = *b;
    *b = c;
}

/* Replaces w->fraction with the states after the point, for fractions of up to n_max digits. */
static void write_fraction(struct writer *w, uint32_t n_max)
{
    memset(w->next_fraction, 0, table_bytes(w));
    for (uint32_t n = n_max + 1; n-- > 0 && !has_failed(w); swap(&w->fraction, &w->next_fraction)) {
        int32_t places[] = {-1 - (int32_t)n, -1 - (int32_t)n};
        FOR_ALL(w, lower, upper, r)
        {
            struct follow f = {.is_end = n > 0 && can_end(w, lower, upper, r, n)};
            follow_digits(w, &f, w->next_fraction, lower, upper, r, places);
            w->fraction[index_of(w, lower, upper, r)] = state_of(w, &f);
        }
    }
    swap(&w->fraction, &w->next_fraction);
}

/* Successors after n integer digits, except further integer digits. */
static struct follow follow_whole(const struct writer *w, uint32_t lower, uint32_t upper,
                                  uint32_t remainder, uint32_t n)
{
    const uint32_t low = order_of_whole(&w->span.lower, lower, n);
    const uint32_t high = order_of_whole(&w->span.upper, upper, n);
    return (struct follow){.is_end = can_end(w, low, high, remainder, 0),
                           .point = w->fraction[index_of(w, low, high, remainder)]};
}

/* Maximum digits of the fraction after n integer digits. */
static uint32_t max_fraction(const struct writer *w, uint32_t n)
{
    const uint32_t room = w->limits->is_integer ? 0 : REAL_DIGITS - n;
    return w->limits->multiple ? TN_MIN(room, w->limits->scale) : room;
}

/* The place value of the bound's digit that follows its first n. */
static int32_t place_after(const struct tn_bound *b, uint32_t n)
{
    return (int32_t)n_whole(b) - 1 - (int32_t)n;
}

/* Replaces w->whole with the states after one digit that is not 0, and w->fraction with those after
 * one digit and the point. */
static void write_whole(struct writer *w, uint32_t n_max)
{
    memset(w->next_whole, 0, table_bytes(w));
    for (uint32_t n = n_max; n > 0 && !has_failed(w); n--, swap(&w->whole, &w->next_whole)) {
        int32_t places[] = {place_after(&w->span.lower, n), place_after(&w->span.upper, n)};
        write_fraction(w, max_fraction(w, n));
        FOR_ALL(w, lower, upper, r)
        {
            struct follow f = follow_whole(w, lower, upper, r, n);
            follow_digits(w, &f, w->next_whole, lower, upper, r, places);
            w->whole[index_of(w, lower, upper, r)] = state_of(w, &f);
        }
    }
    swap(&w->whole, &w->next_whole);
}

static uint32_t max_whole(const struct tn_number_limits *limits)
{
    uint32_t n = INTEGER_DIGITS;
    if (!limits->is_integer)
        return REAL_DIGITS;
    n = TN_MAX(n, limits->lower.exists ? n_whole(&limits->lower) : 0);
    n = TN_MAX(n, limits->upper.exists ? n_whole(&limits->upper) : 0);
    return TN_MIN(n, INT64_DIGITS);
}

/* ---- the rule ---- */

/* Adds edges for the numbers within w->span, starting at `from`. */
static void add_span(struct writer *w, uint32_t from)
{
    const struct tn_bound *lower = &w->span.lower, *upper = &w->span.upper;
    uint32_t first[10];
    write_whole(w, max_whole(w->limits));
    for (uint32_t d = 0; d < 10; d++) {
        const uint32_t low =
            order_with(lower, lower->exists ? SAME : MORE, place_after(lower, 0), d);
        const uint32_t high =
            order_with(upper, upper->exists ? SAME : LESS, place_after(upper, 0), d);
        const struct follow zero = follow_whole(w, low, high, 0, 1);
        first[d] = d == 0 ? state_of(w, &zero) : w->whole[index_of(w, low, high, d % w->modulus)];
    }
    add_digits(w->g, from, first);
}

/* Bounds of the absolute values of one sign.  false: none is within the limits. */
static bool make_span(const struct tn_number_limits *limits, bool is_negative, struct span *out)
{
    *out = (struct span){limits->lower, limits->upper};
    if (is_negative) {
        *out = (struct span){limits->upper, limits->lower};
        out->lower.at.is_negative = out->lower.at.n > 0 && !out->lower.at.is_negative;
        out->upper.at.is_negative = out->upper.at.n > 0 && !out->upper.at.is_negative;
    }
    if (out->upper.exists && out->upper.at.is_negative)
        return false;
    if (is_negative && (!out->lower.exists || out->lower.at.is_negative || out->lower.at.n == 0))
        /* zero is written without a sign */
        out->lower = (struct tn_bound){.exists = true, .is_open = true};
    else if (out->lower.at.is_negative)
        out->lower.exists = false;
    return true;
}

static bool take_memory(struct writer *w)
{
    uint32_t **tables[] = {&w->whole, &w->next_whole, &w->fraction, &w->next_fraction};
    bool has_memory = true;
    for (size_t i = 0; i < TN_COUNT_OF(tables); i++) {
        *tables[i] = tn_alloc_zeroed(1, table_bytes(w));
        has_memory = has_memory && *tables[i];
    }
    w->slots = tn_alloc_zeroed((size_t)2 * MAX_STATES, sizeof *w->slots);
    return has_memory && w->slots;
}

static void free_writer(struct writer *w)
{
    tn_free(w->follows);
    tn_free(w->states);
    tn_free(w->slots);
    tn_free(w->whole);
    tn_free(w->next_whole);
    tn_free(w->fraction);
    tn_free(w->next_fraction);
}

static void write_all(struct writer *w, uint32_t start)
{
    if (make_span(w->limits, false, &w->span))
        add_span(w, start);
    if (make_span(w->limits, true, &w->span)) {
        const uint32_t minus = tn_grammar_state(w->g);
        add_span(w, minus);
        if (!w->g->failed && w->g->states[minus].first_edge != TN_NO_EDGE)
            tn_grammar_bytes(w->g, start, '-', '-', minus);
    }
}

tern_status tn_number_rule(struct tern_grammar *g, uint32_t start,
                           const struct tn_number_limits *limits, uint64_t *steps,
                           struct tern_error *err)
{
    struct writer w = {.g = g, .limits = limits, .modulus = TN_MAX(limits->multiple, 1),
                       .steps = steps};
    tern_status status = tn_ok(err);
    if (!take_memory(&w))
        w.failed = TERN_MEMORY;
    else if (spend(&w, STEPS_OF_A_RULE))
        write_all(&w, start);
    if (w.failed == TERN_MEMORY)
        status = tn_fail(err, TERN_MEMORY, "no memory for a grammar");
    else if (w.n_states == MAX_STATES)
        status = tn_fail(err, TERN_LIMIT, "an automaton of more than %u states", MAX_STATES);
    else if (w.failed)
        status = tn_fail(err, TERN_LIMIT, "the schema is too complex: it takes too many steps");
    else if (!g->failed && g->states[start].first_edge == TN_NO_EDGE)
        status = tn_fail(err, TERN_USAGE, "no number fits");
    free_writer(&w);
    return status;
}
