/* SPDX-License-Identifier: MIT
 *
 * Checks a complete grammar and computes its heights and byte classes.
 *
 * The height of a state is the number of nested calls on its shallowest path to the end of its
 * rule:
 *
 *   0 at an end;  height of `to` after a byte or an empty edge;
 *   max(1 + height of callee, height of `to`) after a call;  the minimum over all edges.
 *
 * States are settled from height 0 upwards; an edge is visited when its target is settled.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/error.h"
#include "grammar/grammar.h"

/* Incoming edges by state; call edges are also listed at their callee. */
struct reverse {
    uint32_t *first; /* [n_states + 1] into edges */
    uint32_t *edges; /* [n_edges + calls] */
    uint32_t *queue; /* [n_states] */
};

static void count_reverse(const struct tern_grammar *g, struct reverse *r, bool fills)
{
    for (uint32_t i = 0; i < g->n_edges; i++) {
        const struct tn_edge *e = &g->edges[i];
        const uint32_t ends[] = {e->to, e->callee}, n = e->kind == TN_EDGE_CALL ? 2 : 1;
        for (uint32_t k = 0; k < n; k++) {
            if (fills)
                r->edges[--r->first[ends[k]]] = i;
            else
                r->first[ends[k]]++;
        }
    }
}

static bool make_reverse(const struct tern_grammar *g, struct reverse *r)
{
    r->first = tn_alloc_zeroed(g->n_states + 1, sizeof *r->first);
    r->edges = tn_alloc_zeroed(2 * (size_t)g->n_edges, sizeof *r->edges);
    r->queue = tn_alloc_zeroed(g->n_states, sizeof *r->queue);
    if (!r->first || !r->edges || !r->queue)
        return false;
    count_reverse(g, r, false);
    for (uint32_t i = 1; i <= g->n_states; i++)
        r->first[i] += r->first[i - 1];
    count_reverse(g, r, true);
    return true;
}

static void free_reverse(struct reverse *r)
{
    tn_free(r->first);
    tn_free(r->edges);
    tn_free(r->queue);
}

/* ---- heights ---- */

/* Height through this edge; above every limit while one of its targets is not settled. */
static uint32_t height_by(const struct tern_grammar *g, const struct tn_edge *e)
{
    const uint32_t to = g->states[e->to].height;
    if (e->kind != TN_EDGE_CALL)
        return to;
    return TN_MAX(1u + g->states[e->callee].height, to);
}

/* States of height h are queued from *n_done on.  Settles and appends the predecessors that have
 * the same height. */
static void settle(struct tern_grammar *g, const struct reverse *r, uint32_t h, uint32_t *n_done,
                   uint32_t *n)
{
    for (; *n_done < *n; ++*n_done) {
        const uint32_t state = r->queue[*n_done];
        for (uint32_t i = r->first[state]; i < r->first[state + 1]; i++) {
            const struct tn_edge *e = &g->edges[r->edges[i]];
            struct tn_state *from = &g->states[e->from];
            if (from->height != TN_ENDLESS || height_by(g, e) > h)
                continue;
            from->height = (uint8_t)h;
            r->queue[(*n)++] = e->from;
        }
    }
}

/* Queues states whose call edge gives height h: the callee is one level below, the target is
 * settled. */
static void start_level(struct tern_grammar *g, const struct reverse *r, uint32_t h, uint32_t *n)
{
    for (uint32_t i = 0; i < g->n_edges; i++) {
        const struct tn_edge *e = &g->edges[i];
        struct tn_state *from = &g->states[e->from];
        if (e->kind != TN_EDGE_CALL || from->height != TN_ENDLESS || height_by(g, e) != h)
            continue;
        from->height = (uint8_t)h;
        r->queue[(*n)++] = e->from;
    }
}

static void find_heights(struct tern_grammar *g, const struct reverse *r)
{
    uint32_t n_done = 0, n = 0;
    for (uint32_t i = 0; i < g->n_states; i++)
        if (g->states[i].is_end) {
            g->states[i].height = 0;
            r->queue[n++] = i;
        }
    for (uint32_t h = 0; h <= TERN_GRAMMAR_MAX_DEPTH; h++) {
        if (h > 0)
            start_level(g, r, h, &n);
        settle(g, r, h, &n_done, &n);
    }
}

/* ---- left recursion ---- */

/* Marks the states from which the end of their rule can be reached without reading a byte. */
static void find_nullable(const struct tern_grammar *g, const struct reverse *r, bool *is_nullable)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->n_states; i++)
        if (g->states[i].is_end) {
            is_nullable[i] = true;
            r->queue[n++] = i;
        }
    for (uint32_t done = 0; done < n; done++)
        for (uint32_t i = r->first[r->queue[done]]; i < r->first[r->queue[done] + 1]; i++) {
            const struct tn_edge *e = &g->edges[r->edges[i]];
            if (e->kind == TN_EDGE_BYTES || is_nullable[e->from] || !is_nullable[e->to] ||
                (e->kind == TN_EDGE_CALL && !is_nullable[e->callee]))
                continue;
            is_nullable[e->from] = true;
            r->queue[n++] = e->from;
        }
}

/* States reachable from the start of an edge without reading a byte.  A loop adds none: its target
 * was passed before. */
static uint32_t next_without_byte(const struct tn_edge *e, const bool *is_nullable,
                                  uint32_t next[2])
{
    uint32_t n = 0;
    if (e->kind == TN_EDGE_CALL)
        next[n++] = e->callee;
    if (e->kind == TN_EDGE_EMPTY || (e->kind == TN_EDGE_CALL && is_nullable[e->callee]))
        next[n++] = e->to;
    return n;
}

struct circle {
    const struct tern_grammar *g;
    const struct reverse *r;
    bool *is_nullable;  /* [n_states] */
    uint32_t *n_before; /* [n_states] predecessors, through edges that read no byte */
};

/* Removes states without predecessors until none is left to remove.  Those that remain are on a
 * cycle or after one. */
static void remove_free(const struct circle *c)
{
    uint32_t n = 0, next[2];
    for (uint32_t i = 0; i < c->g->n_edges; i++)
        for (uint32_t k = next_without_byte(&c->g->edges[i], c->is_nullable, next); k-- > 0;)
            c->n_before[next[k]]++;
    for (uint32_t i = 0; i < c->g->n_states; i++)
        if (c->n_before[i] == 0)
            c->r->queue[n++] = i;
    for (uint32_t done = 0; done < n; done++)
        for (uint32_t i = c->g->states[c->r->queue[done]].first_edge; i != TN_NO_EDGE;
             i = c->g->edges[i].next)
            for (uint32_t k = next_without_byte(&c->g->edges[i], c->is_nullable, next); k-- > 0;)
                if (--c->n_before[next[k]] == 0)
                    c->r->queue[n++] = next[k];
}

/* A predecessor that remains, of a state that does. */
static uint32_t before(const struct circle *c, uint32_t state)
{
    uint32_t next[2];
    for (uint32_t i = c->r->first[state]; i < c->r->first[state + 1]; i++) {
        const struct tn_edge *e = &c->g->edges[c->r->edges[i]];
        uint32_t k = c->n_before[e->from] ? next_without_byte(e, c->is_nullable, next) : 0;
        while (k > 0 && next[k - 1] != state)
            k--;
        if (k > 0)
            return e->from;
    }
    return state;
}

/* The lowest state of a cycle from which this state is reached. */
static uint32_t lowest_of_circle(const struct circle *c, uint32_t state)
{
    while (c->n_before[state] != UINT32_MAX) {
        c->n_before[state] = UINT32_MAX;
        state = before(c, state);
    }
    uint32_t lowest = state;
    for (uint32_t i = before(c, state); i != state; i = before(c, i))
        lowest = TN_MIN(lowest, i);
    return lowest;
}

/* *state: on a cycle, or n_states.  The rules before the start of the grammar have no cycles.
 * false: out of memory. */
static bool find_circle(const struct tern_grammar *g, const struct reverse *r, uint32_t *state)
{
    const struct circle c = {.g = g, .r = r,
                             .is_nullable = tn_alloc_zeroed(g->n_states, sizeof *c.is_nullable),
                             .n_before = tn_alloc_zeroed(g->n_states, sizeof *c.n_before)};
    const bool has_memory = c.is_nullable && c.n_before;
    if (has_memory) {
        find_nullable(g, r, c.is_nullable);
        remove_free(&c);
        for (*state = g->start; *state < g->n_states && c.n_before[*state] == 0;)
            ++*state;
        if (*state < g->n_states)
            *state = lowest_of_circle(&c, *state);
    }
    tn_free(c.is_nullable);
    tn_free(c.n_before);
    return has_memory;
}

/* ---- byte classes ---- */

static void find_classes(struct tern_grammar *g)
{
    bool is_first[257] = {true};
    for (uint32_t i = 0; i < g->n_edges; i++)
        if (g->edges[i].kind == TN_EDGE_BYTES)
            is_first[g->edges[i].low] = is_first[g->edges[i].high + 1] = true;
    g->n_classes = 0;
    for (uint32_t byte = 0; byte < 256; byte++) {
        if (is_first[byte])
            g->byte_of[g->n_classes++] = (uint8_t)byte;
        g->class_of[byte] = (uint8_t)(g->n_classes - 1);
    }
}

/* A part whose texts are all endless or too deep, or n_states. */
static uint32_t find_endless(const struct tern_grammar *g)
{
    for (uint32_t i = g->states[g->parts].first_edge; i != TN_NO_EDGE; i = g->edges[i].next)
        if (g->edges[i].kind == TN_EDGE_EMPTY &&
            g->states[g->edges[i].to].height > TERN_GRAMMAR_MAX_DEPTH)
            return g->edges[i].to;
    return g->n_states;
}

tern_status tn_grammar_finish(struct tern_grammar *g, uint32_t *state, struct tern_error *err)
{
    struct reverse r = {0};
    tern_status status = tn_ok(err);
    if (!make_reverse(g, &r) || !find_circle(g, &r, state))
        status = tn_fail(err, TERN_MEMORY, "no memory for a grammar");
    else if (*state < g->n_states)
        status = tn_fail(err, TERN_LIMIT, "refers to itself without a value in between");
    if (status == TERN_OK) {
        find_heights(g, &r);
        find_classes(g);
        *state = find_endless(g);
        if (*state < g->n_states)
            status = tn_fail(err, TERN_LIMIT,
                             "no value fits: every value is endless or nests more than %d "
                             "levels deep",
                             TERN_GRAMMAR_MAX_DEPTH);
    }
    free_reverse(&r);
    return status;
}
