/* SPDX-License-Identifier: MIT
 *
 * Shortest and longest texts that an automaton accepts.
 *
 * The shortest is found by breadth-first search from the start.  The longest is found in
 * topological order: a state is processed when all its predecessors are.  States that remain are on
 * a cycle or after one, so texts have no maximum length.
 */
#include "base/alloc.h"
#include "base/compiler.h"
#include "grammar/dfa.h"

struct measure {
    uint32_t *n_before; /* [n_states] incoming transitions from states not yet processed */
    uint32_t *length;   /* [n_states] of the longest path to the state */
    uint32_t *queue, n; /* [n_states] */
};

static const uint32_t *steps_of(const struct tn_dfa *dfa, uint32_t state)
{
    return dfa->next + (size_t)state * dfa->n_symbols;
}

/* Breadth-first search; counts the incoming transitions of each reachable state. */
static void walk(struct tn_dfa *dfa, struct measure *m)
{
    dfa->shortest = UINT32_MAX;
    m->queue[m->n++] = TN_DFA_START;
    for (uint32_t i = 0; i < m->n; i++) {
        const uint32_t *next = steps_of(dfa, m->queue[i]), length = m->length[m->queue[i]];
        if (dfa->is_end[m->queue[i]])
            dfa->shortest = TN_MIN(dfa->shortest, length);
        for (uint32_t k = 0; k < dfa->n_symbols; k++) {
            if (next[k] == TN_DFA_DEAD)
                continue;
            if (m->n_before[next[k]]++ == 0 && next[k] != TN_DFA_START) {
                m->length[next[k]] = length + 1;
                m->queue[m->n++] = next[k];
            }
        }
    }
}

static void walk_in_order(struct tn_dfa *dfa, struct measure *m)
{
    const uint32_t n_reached = m->n;
    dfa->longest = 0;
    m->n = m->n_before[TN_DFA_START] == 0; /* queue[0] is still the start */
    for (uint32_t i = 0; i < m->n; i++) {
        const uint32_t *next = steps_of(dfa, m->queue[i]), length = m->length[m->queue[i]];
        if (dfa->is_end[m->queue[i]])
            dfa->longest = TN_MAX(dfa->longest, length);
        for (uint32_t k = 0; k < dfa->n_symbols; k++) {
            if (next[k] == TN_DFA_DEAD)
                continue;
            m->length[next[k]] = TN_MAX(m->length[next[k]], length + 1);
            if (--m->n_before[next[k]] == 0)
                m->queue[m->n++] = next[k];
        }
    }
    if (m->n < n_reached)
        dfa->longest = UINT32_MAX;
}

bool tn_dfa_measure(struct tn_dfa *dfa)
{
    if (dfa->n_states == 0)
        return true;
    struct measure m = {.n_before = tn_alloc_zeroed(dfa->n_states, sizeof *m.n_before),
                        .length = tn_alloc_zeroed(dfa->n_states, sizeof *m.length),
                        .queue = tn_alloc(dfa->n_states * sizeof *m.queue)};
    const bool has_memory = m.n_before && m.length && m.queue;
    if (has_memory) {
        walk(dfa, &m);
        walk_in_order(dfa, &m);
    }
    tn_free(m.n_before);
    tn_free(m.length);
    tn_free(m.queue);
    return has_memory;
}
