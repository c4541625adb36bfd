/* SPDX-License-Identifier: MIT
 *
 * A compiled grammar: rules that call each other, each a small automaton over bytes.
 *
 *   rule "array of numbers":   ( ) --"["--> ( ) --call number--> ( ) --"]"--> (end)
 *                                              ^                  |
 *                                              '-------","--------'
 *
 * A reading of a text is a state and the states to which the calls above it return; a text has as
 * many readings as there are ways to understand it.  Calls nest at most TERN_GRAMMAR_MAX_DEPTH
 * deep: each state knows its height, the depth that its shortest way to the end of its rule needs,
 * and no reading goes where that does not fit.  So every reading can come to an end.
 *
 * Built by schema.c with the functions below, closed by tn_grammar_finish, read by reader.c.
 */
#ifndef TN_GRAMMAR_H
#define TN_GRAMMAR_H

#include "tern/grammar.h"

#define TN_GRAMMAR_MAX_STATES 262144u
#define TN_GRAMMAR_MAX_EDGES (2u * TN_GRAMMAR_MAX_STATES)
#define TN_NO_EDGE UINT32_MAX
#define TN_ENDLESS 0xFFu /* height of a state from which no end can be reached */

enum tn_edge_kind {
    TN_EDGE_BYTES, /* one byte, low to high */
    TN_EDGE_EMPTY, /* nothing; `to` may be a state of another rule, which then ends in its place */
    TN_EDGE_CALL   /* all that `callee`, the start of a rule, stands for */
};

struct tn_edge {
    uint8_t kind, low, high;
    uint32_t from, to, callee;
    uint32_t next; /* of the same state, or TN_NO_EDGE */
};

struct tn_state {
    uint32_t first_edge; /* or TN_NO_EDGE */
    bool is_end;         /* of its rule */
    uint8_t height;
    uint16_t n_counted; /* states behind this one that differ from it in how many are left */
};

struct tern_grammar {
    struct tn_state *states;
    struct tn_edge *edges;
    uint32_t n_states, n_edges;
    uint32_t state_capacity, edge_capacity;
    uint32_t start;
    uint8_t class_of[256]; /* bytes of a class are on the same edges */
    uint8_t byte_of[256];  /* one of a class */
    uint32_t n_classes;    /* 1..256 */
    tern_status failed;    /* building ran into TERN_LIMIT or TERN_MEMORY: nothing is added */
};

/* ---- building; after a failure states are 0 and nothing is added ---- */

uint32_t tn_grammar_state(struct tern_grammar *g);
void tn_grammar_end(struct tern_grammar *g, uint32_t state);
void tn_grammar_bytes(struct tern_grammar *g, uint32_t from, uint8_t low, uint8_t high,
                      uint32_t to);
/* The n states behind this one count: what leads on from each is the same, but for the number of
 * those that are left. */
void tn_grammar_count(struct tern_grammar *g, uint32_t state, uint32_t n);
void tn_grammar_empty(struct tern_grammar *g, uint32_t from, uint32_t to);
void tn_grammar_call(struct tern_grammar *g, uint32_t from, uint32_t callee, uint32_t to);
/* Where these bytes lead from a state; to a new one where no edge has exactly them. */
uint32_t tn_grammar_step(struct tern_grammar *g, uint32_t from, uint8_t low, uint8_t high);
/* Leads from a state along single bytes, as far as possible where others lead already; the state
 * behind them. */
uint32_t tn_grammar_text(struct tern_grammar *g, uint32_t from, const char *bytes, size_t n);

/* Starts of the rules that all grammars share. */
struct tn_json_rules {
    uint32_t space; /* also nothing */
    uint32_t string, number, integer, boolean, null;
    uint32_t value, object, array; /* any */
};
void tn_grammar_add_json(struct tern_grammar *g, struct tn_json_rules *out);

/* ---- finish.c ---- */

/* Heights and byte classes of a whole grammar.  TERN_LIMIT: a rule that calls itself before a byte,
 * or a text that needs more depth than there is, or has no end; *state is where. TERN_MEMORY. */
tern_status tn_grammar_finish(struct tern_grammar *g, uint32_t *state, struct tern_error *err);

#endif
