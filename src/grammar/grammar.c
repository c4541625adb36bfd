/* SPDX-License-Identifier: MIT
 *
 * Builder functions for states and edges of a grammar.
 *
 * The first failure is kept in `failed`; later calls add nothing, so callers check once at the end.
 */
#include "grammar/grammar.h"

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/error.h"

#define FIRST_STATES 512u

/* Makes room for one more item after n.  false: the limit or memory is exhausted. */
static bool grow(struct tern_grammar *g, void **items, size_t item_bytes, uint32_t n,
                 uint32_t *capacity, uint32_t limit)
{
    if (g->failed || n < *capacity)
        return !g->failed;
    if (n >= limit) {
        g->failed = TERN_LIMIT;
        return false;
    }
    const uint32_t larger = TN_MIN(TN_MAX(FIRST_STATES, 2 * *capacity), limit);
    void *moved = tn_realloc(*items, larger * item_bytes);
    if (!moved) {
        g->failed = TERN_MEMORY;
        return false;
    }
    *items = moved;
    *capacity = larger;
    return true;
}

uint32_t tn_grammar_state(struct tern_grammar *g)
{
    void *states = g->states;
    const bool has_room = grow(g, &states, sizeof *g->states, g->n_states, &g->state_capacity,
                               TN_GRAMMAR_MAX_STATES);
    g->states = states;
    if (!has_room)
        return 0;
    g->states[g->n_states] = (struct tn_state){.first_edge = TN_NO_EDGE, .height = TN_ENDLESS};
    return g->n_states++;
}

void tn_grammar_end(struct tern_grammar *g, uint32_t state)
{
    if (!g->failed)
        g->states[state].is_end = true;
}

void tn_grammar_count(struct tern_grammar *g, uint32_t state, uint32_t n)
{
    if (!g->failed)
        g->states[state].n_counted = (uint16_t)TN_MIN(n, UINT16_MAX);
}

static void add_edge(struct tern_grammar *g, struct tn_edge edge)
{
    void *edges = g->edges;
    const bool has_room = grow(g, &edges, sizeof *g->edges, g->n_edges, &g->edge_capacity,
                               TN_GRAMMAR_MAX_EDGES);
    g->edges = edges;
    if (!has_room)
        return;
    edge.next = g->states[edge.from].first_edge;
    g->states[edge.from].first_edge = g->n_edges;
    g->edges[g->n_edges++] = edge;
}

void tn_grammar_bytes(struct tern_grammar *g, uint32_t from, uint8_t low, uint8_t high,
                      uint32_t to)
{
    add_edge(g, (struct tn_edge){
                    .kind = TN_EDGE_BYTES, .low = low, .high = high, .from = from, .to = to});
}

void tn_grammar_empty(struct tern_grammar *g, uint32_t from, uint32_t to)
{
    add_edge(g, (struct tn_edge){.kind = TN_EDGE_EMPTY, .from = from, .to = to});
}

void tn_grammar_loop(struct tern_grammar *g, uint32_t from, uint32_t to)
{
    add_edge(g, (struct tn_edge){.kind = TN_EDGE_LOOP, .from = from, .to = to});
}

void tn_grammar_call(struct tern_grammar *g, uint32_t from, uint32_t callee, uint32_t to)
{
    add_edge(g, (struct tn_edge){
                    .kind = TN_EDGE_CALL, .from = from, .to = to, .callee = callee});
}

/* Target of the edge for exactly these bytes, or TN_NO_EDGE. */
static uint32_t find_bytes(const struct tern_grammar *g, uint32_t from, uint8_t low, uint8_t high)
{
    uint32_t i = g->states[from].first_edge;
    while (i != TN_NO_EDGE && !(g->edges[i].kind == TN_EDGE_BYTES && g->edges[i].low == low &&
                                g->edges[i].high == high))
        i = g->edges[i].next;
    return i == TN_NO_EDGE ? TN_NO_EDGE : g->edges[i].to;
}

uint32_t tn_grammar_step(struct tern_grammar *g, uint32_t from, uint8_t low, uint8_t high)
{
    uint32_t to = g->failed ? 0 : find_bytes(g, from, low, high);
    if (to == TN_NO_EDGE) {
        to = tn_grammar_state(g);
        tn_grammar_bytes(g, from, low, high, to);
    }
    return g->failed ? 0 : to;
}

uint32_t tn_grammar_text(struct tern_grammar *g, uint32_t from, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n && !g->failed; i++)
        from = tn_grammar_step(g, from, (uint8_t)bytes[i], (uint8_t)bytes[i]);
    return g->failed ? 0 : from;
}

tern_status tn_grammar_fail(const struct tern_grammar *g, struct tern_error *err)
{
    if (g->failed == TERN_MEMORY)
        return tn_fail(err, TERN_MEMORY, "no memory for a grammar");
    return tn_fail(err, TERN_LIMIT, "the grammar is too large: more than %u states or %u edges",
                   TN_GRAMMAR_MAX_STATES, TN_GRAMMAR_MAX_EDGES);
}

size_t tern_grammar_bytes(const struct tern_grammar *g)
{
    return g ? sizeof *g + g->state_capacity * sizeof *g->states +
                   g->edge_capacity * sizeof *g->edges
             : 0;
}

void tern_grammar_free(struct tern_grammar *g)
{
    if (!g)
        return;
    tn_free(g->states);
    tn_free(g->edges);
    tn_free(g);
}
