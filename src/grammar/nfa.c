/* SPDX-License-Identifier: MIT
 *
 * States, edges and classes of a nondeterministic automaton over characters.
 *
 * Grows arrays up to the limits in nfa.h and records the first failure; regex.c checks it at the
 * end.
 */
#include "grammar/nfa.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"

#define FIRST_CAPACITY 256u
#define MAX_EDGES (4u * TN_NFA_MAX_STATES)

/* Resizes `items` to hold n.  NULL: failed, and `items` is unchanged. */
static void *grow(struct tn_nfa *nfa, void *items, size_t item_bytes, uint32_t n,
                  uint32_t *capacity, uint32_t limit)
{
    if (nfa->failed || n <= *capacity)
        return nfa->failed ? NULL : items;
    if (n > limit) {
        nfa->failed = TERN_LIMIT;
        return NULL;
    }
    const uint32_t larger = TN_MIN(TN_MAX(TN_MAX(FIRST_CAPACITY, 2 * *capacity), n), limit);
    void *moved = tn_realloc(items, larger * item_bytes);
    if (!moved)
        nfa->failed = TERN_MEMORY;
    else
        *capacity = larger;
    return moved;
}

static bool grow_states(struct tn_nfa *nfa, uint32_t n)
{
    void *states = grow(nfa, nfa->states, sizeof *nfa->states, nfa->n_states + n,
                        &nfa->state_capacity, TN_NFA_MAX_STATES);
    if (states)
        nfa->states = states;
    return states != NULL;
}

static bool grow_edges(struct tn_nfa *nfa, uint32_t n)
{
    void *edges = grow(nfa, nfa->edges, sizeof *nfa->edges, nfa->n_edges + n,
                       &nfa->edge_capacity, MAX_EDGES);
    if (edges)
        nfa->edges = edges;
    return edges != NULL;
}

void tn_nfa_fini(struct tn_nfa *nfa)
{
    tn_free(nfa->states);
    tn_free(nfa->edges);
    tn_free(nfa->classes);
    tn_free(nfa->ranges);
}

uint32_t tn_nfa_state(struct tn_nfa *nfa)
{
    if (!grow_states(nfa, 1))
        return 0;
    nfa->states[nfa->n_states] = TN_NFA_NONE;
    return nfa->n_states++;
}

void tn_nfa_edge(struct tn_nfa *nfa, enum tn_nfa_kind kind, uint32_t from, uint32_t to,
                 uint32_t class)
{
    if (!grow_edges(nfa, 1))
        return;
    nfa->edges[nfa->n_edges] = (struct tn_nfa_edge){(uint8_t)kind, to, class, nfa->states[from]};
    nfa->states[from] = nfa->n_edges++;
}

/* ---- classes ---- */

static int compare(const void *a, const void *b)
{
    const struct tn_characters *x = a, *y = b;
    return x->low < y->low ? -1 : x->low > y->low;
}

uint32_t tn_characters_join(struct tn_characters *ranges, uint32_t n)
{
    uint32_t n_joined = 0;
    qsort(ranges, n, sizeof *ranges, compare);
    for (uint32_t i = 0; i < n; i++) {
        struct tn_characters *last = n_joined ? &ranges[n_joined - 1] : NULL;
        if (last && ranges[i].low <= last->high + 1)
            last->high = TN_MAX(last->high, ranges[i].high);
        else
            ranges[n_joined++] = ranges[i];
    }
    return n_joined;
}

static bool is_class(const struct tn_nfa *nfa, uint32_t i, const struct tn_characters *ranges,
                     uint32_t n)
{
    const struct tn_nfa_class *c = &nfa->classes[i];
    return c->n == n && memcmp(nfa->ranges + c->first, ranges, n * sizeof *ranges) == 0;
}

uint32_t tn_nfa_class(struct tn_nfa *nfa, struct tn_characters *ranges, uint32_t n)
{
    n = n > 0 ? tn_characters_join(ranges, n) : 0;
    for (uint32_t i = 0; i < nfa->n_classes && !nfa->failed; i++)
        if (n > 0 && is_class(nfa, i, ranges, n))
            return i;
    void *classes = grow(nfa, nfa->classes, sizeof *nfa->classes, nfa->n_classes + 1,
                         &nfa->class_capacity, TN_NFA_MAX_STATES);
    nfa->classes = classes ? classes : nfa->classes;
    void *pool = grow(nfa, nfa->ranges, sizeof *nfa->ranges, nfa->n_ranges + n + 1,
                      &nfa->range_capacity, TN_NFA_MAX_STATES);
    nfa->ranges = pool ? pool : nfa->ranges;
    if (nfa->failed)
        return 0;
    if (n > 0)
        memcpy(nfa->ranges + nfa->n_ranges, ranges, n * sizeof *ranges);
    nfa->classes[nfa->n_classes] = (struct tn_nfa_class){nfa->n_ranges, n};
    nfa->n_ranges += n;
    return nfa->n_classes++;
}

/* ---- copying ---- */

uint32_t tn_nfa_copy(struct tn_nfa *nfa, uint32_t state, uint32_t end_state, uint32_t edge,
                     uint32_t end_edge)
{
    const uint32_t by = nfa->n_states - state, edges_by = nfa->n_edges - edge;
    if (!grow_states(nfa, end_state - state) || !grow_edges(nfa, end_edge - edge))
        return 0;
    for (uint32_t i = state; i < end_state; i++) {
        const uint32_t first = nfa->states[i];
        nfa->states[nfa->n_states++] = first == TN_NFA_NONE ? first : first + edges_by;
    }
    for (uint32_t i = edge; i < end_edge; i++) {
        struct tn_nfa_edge e = nfa->edges[i];
        e.to += by;
        e.next = e.next == TN_NFA_NONE ? e.next : e.next + edges_by;
        nfa->edges[nfa->n_edges++] = e;
    }
    return by;
}
