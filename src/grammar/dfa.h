/* SPDX-License-Identifier: MIT
 *
 * A deterministic automaton over characters.
 *
 * Characters that belong to the same classes share a symbol.  A state is a set of states of the
 * nondeterministic automaton.  The whole automaton is built up front: later work costs the same for
 * every expression, and an expression that is too large is refused here.
 *
 * Built from an nfa.h automaton by string_rule.c, which turns it into byte rules of a grammar.
 */
#ifndef TN_DFA_H
#define TN_DFA_H

#include "grammar/nfa.h"

#define TN_DFA_MAX_STATES 8192u
#define TN_DFA_DEAD 0u  /* no text is accepted from here */
#define TN_DFA_START 1u

/* A range of adjacent characters with the same symbol. */
struct tn_dfa_range {
    struct tn_characters characters;
    uint32_t symbol;
};

struct tn_dfa {
    uint32_t *next; /* [n_states][n_symbols] */
    bool *is_end;   /* [n_states] the text may end here */
    struct tn_dfa_range *ranges;
    uint32_t n_states, n_symbols, n_ranges;
    uint32_t shortest, longest; /* lengths of accepted texts in characters; UINT32_MAX: unbounded */
};

/* Sets `shortest` and `longest`.  Dead states must have been cut.  false: out of memory. */
bool tn_dfa_measure(struct tn_dfa *dfa);

/* Subtracts the cost from *steps (about 10 ns each).  TERN_LIMIT: more than TN_DFA_MAX_STATES, or
 * *steps is exhausted; TERN_USAGE: no text is accepted; TERN_MEMORY. */
tern_status tn_dfa_create(struct tn_dfa *out, const struct tn_nfa *nfa, uint64_t *steps,
                          struct tern_error *err);
void tn_dfa_fini(struct tn_dfa *dfa);
/* Does the automaton accept this UTF-8 text? */
bool tn_dfa_takes(const struct tn_dfa *dfa, const char *text);

#endif
