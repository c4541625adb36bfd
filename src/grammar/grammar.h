/* SPDX-License-Identifier: MIT
 *
 * A compiled grammar: rules that call each other, each a small automaton over bytes.
 *
 *   rule "array of numbers":   ( ) --"["--> ( ) --call number--> ( ) --"]"--> (end)
 *                                              ^                  |
 *                                              '-------","--------'
 *
 * A configuration is a state and a stack of return states; an ambiguous text has several at once.
 * Calls nest at most TERN_GRAMMAR_MAX_DEPTH deep: each state knows its height, the depth that its
 * shallowest path to the end of its rule needs, and a configuration that exceeds the limit is
 * dropped.  So every configuration that is kept can be completed.
 *
 * Built by schema.c, gbnf.c and regex_grammar.c with the functions below, completed by
 * tn_grammar_finish, read by reader.c.
 */
#ifndef TN_GRAMMAR_H
#define TN_GRAMMAR_H

#include "tern/grammar.h"

#define TN_GRAMMAR_MAX_STATES 262144u
#define TN_GRAMMAR_MAX_EDGES (2u * TN_GRAMMAR_MAX_STATES)
#define TN_NO_EDGE UINT32_MAX
#define TN_ENDLESS 0xFFu /* height of a state that reaches no end */

enum tn_edge_kind {
    TN_EDGE_BYTES, /* one byte in low..high */
    TN_EDGE_EMPTY, /* reads nothing; `to` may belong to another rule, which then ends this one */
    TN_EDGE_LOOP,  /* reads nothing; leads back from the end of a repeated piece of a rule to its
                    * beginning, which every path from the start of the rule has passed */
    TN_EDGE_CALL   /* reads whatever the rule that starts at `callee` matches */
};

struct tn_edge {
    uint8_t kind, low, high;
    uint32_t from, to, callee;
    uint32_t next; /* next edge of the same state, or TN_NO_EDGE */
};

struct tn_state {
    uint32_t first_edge; /* or TN_NO_EDGE */
    bool is_end;         /* end of its rule */
    uint8_t height;
    uint16_t n_counted; /* following states that differ only in the remaining count */
};

struct tern_grammar {
    struct tn_state *states;
    struct tn_edge *edges;
    uint32_t n_states, n_edges;
    uint32_t state_capacity, edge_capacity;
    uint32_t start;
    uint32_t parts; /* its empty edges lead to the parts (tern_grammar_from_parts) */
    uint8_t class_of[256]; /* bytes of a class take the same edges everywhere */
    uint8_t byte_of[256];  /* a representative of each class */
    uint32_t n_classes;    /* 1..256 */
    tern_status failed;    /* TERN_LIMIT or TERN_MEMORY while building: nothing more is added */
};

/* ---- building; after a failure states are 0 and nothing is added ---- */

uint32_t tn_grammar_state(struct tern_grammar *g);
void tn_grammar_end(struct tern_grammar *g, uint32_t state);
void tn_grammar_bytes(struct tern_grammar *g, uint32_t from, uint8_t low, uint8_t high,
                      uint32_t to);
/* Declares that `state` and the n states after it form a counter: their edges are the same except
 * for the number of repetitions left. */
void tn_grammar_count(struct tern_grammar *g, uint32_t state, uint32_t n);
void tn_grammar_empty(struct tern_grammar *g, uint32_t from, uint32_t to);
void tn_grammar_loop(struct tern_grammar *g, uint32_t from, uint32_t to);
void tn_grammar_call(struct tern_grammar *g, uint32_t from, uint32_t callee, uint32_t to);
/* Target of the edge for exactly these bytes; adds the edge and a new state if there is none. */
uint32_t tn_grammar_step(struct tern_grammar *g, uint32_t from, uint8_t low, uint8_t high);
/* Follows single-byte edges from a state, adds those that are missing, and returns the last state.
 */
uint32_t tn_grammar_text(struct tern_grammar *g, uint32_t from, const char *bytes, size_t n);

/* The failure of a grammar that is not of a schema. */
tern_status tn_grammar_fail(const struct tern_grammar *g, struct tern_error *err);

/* Start states of the rules that all grammars share. */
struct tn_json_rules {
    uint32_t space; /* optional white space */
    uint32_t string, number, integer, boolean, null;
    uint32_t value, object, array; /* without constraints */
};
void tn_grammar_add_json(struct tern_grammar *g, struct tn_json_rules *out);

/* ---- finish.c ---- */

/* Computes heights and byte classes of a complete grammar.  TERN_LIMIT: a left-recursive rule, or
 * every text of a part exceeds the depth limit or never ends; *state is the offending state.
 * TERN_MEMORY. */
tern_status tn_grammar_finish(struct tern_grammar *g, uint32_t *state, struct tern_error *err);

#endif
