/* SPDX-License-Identifier: MIT
 *
 * A nondeterministic automaton over characters, compiled from regular expressions.
 *
 *   a(b|c)*   ( ) --a--> ( ) --empty--> ( ) --b or c--> ( )
 *                                        '<---empty------'
 *
 * One automaton may hold several expressions; a text matches when it matches all of them.  States
 * and edges of a subexpression are contiguous, so repetition copies them as one block.
 *
 * Built by regex.c, made deterministic by dfa.c.
 */
#ifndef TN_NFA_H
#define TN_NFA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/status.h"

#define TN_NFA_MAX_STATES 32768u
#define TN_NFA_MAX_EXPRESSIONS 4u
#define TN_NFA_NONE UINT32_MAX

/* Characters are code points from U+0001, without surrogates. */
#define TN_LAST_CHARACTER 0x10FFFFu

struct tn_characters {
    uint32_t low, high; /* inclusive */
};

/* Sorts ranges, and merges overlapping and adjacent ones.  Returns the number that remains. */
uint32_t tn_characters_join(struct tn_characters *ranges, uint32_t n);

/* A set of characters: ranges in the automaton's pool, ascending, with gaps between them. */
struct tn_nfa_class {
    uint32_t first, n;
};

enum tn_nfa_kind {
    TN_NFA_CLASS, /* one character of a class */
    TN_NFA_EMPTY, /* reads nothing */
    TN_NFA_BEGIN, /* reads nothing; only at the start of the text */
    TN_NFA_END    /* reads nothing; only at the end of the text */
};

struct tn_nfa_edge {
    uint8_t kind;
    uint32_t to, class;
    uint32_t next; /* next edge of the same state, or TN_NFA_NONE */
};

struct tn_nfa {
    uint32_t *states; /* [n_states] first edge, or TN_NFA_NONE */
    struct tn_nfa_edge *edges;
    struct tn_nfa_class *classes;
    struct tn_characters *ranges;
    uint32_t n_states, n_edges, n_classes, n_ranges;
    uint32_t state_capacity, edge_capacity, class_capacity, range_capacity;
    struct {
        uint32_t start, accept; /* its states are start..accept */
    } expressions[TN_NFA_MAX_EXPRESSIONS];
    uint32_t n_expressions;
    tern_status failed; /* TERN_LIMIT or TERN_MEMORY: nothing more is added */
};

/* Zero-initialise.  After a failure, new states and classes are 0. */
void tn_nfa_fini(struct tn_nfa *nfa);
uint32_t tn_nfa_state(struct tn_nfa *nfa);
void tn_nfa_edge(struct tn_nfa *nfa, enum tn_nfa_kind kind, uint32_t from, uint32_t to,
                 uint32_t class);
/* Sorts and merges the ranges, which may overlap.  Returns the index of the class. */
uint32_t tn_nfa_class(struct tn_nfa *nfa, struct tn_characters *ranges, uint32_t n);
/* Appends a copy of states [state, end_state) and edges [edge, end_edge).  Returns the distance
 * from a state to its copy. */
uint32_t tn_nfa_copy(struct tn_nfa *nfa, uint32_t state, uint32_t end_state, uint32_t edge,
                     uint32_t end_edge);

#endif
