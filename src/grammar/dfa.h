/* SPDX-License-Identifier: MIT
 *
 * A deterministic automaton over characters.
 *
 * Characters that no class tells apart are one symbol.  A state stands for the states of the
 * nondeterministic automaton in which a text can be; all are made at once, so that what follows
 * costs the same for every expression, or is refused here.
 */
#ifndef TN_DFA_H
#define TN_DFA_H

#include "grammar/nfa.h"

#define TN_DFA_MAX_STATES 8192u
#define TN_DFA_DEAD 0u  /* from here no text fits */
#define TN_DFA_START 1u

/* Neighbouring characters of one symbol. */
struct tn_dfa_range {
    struct tn_characters characters;
    uint32_t symbol;
};

struct tn_dfa {
    uint32_t *next; /* [n_states][n_symbols] */
    bool *is_end;   /* [n_states] a text may end here */
    struct tn_dfa_range *ranges;
    uint32_t n_states, n_symbols, n_ranges;
    uint32_t shortest, longest; /* text in characters; UINT32_MAX: there is no longest */
};

/* Finds `shortest` and `longest` of a whole automaton, without states that cannot end.  false:
 * memory is short. */
bool tn_dfa_measure(struct tn_dfa *dfa);

/* Takes off *steps what it costs; about 10 ns each.  TERN_LIMIT: more than TN_DFA_MAX_STATES, or no
 * steps are left; TERN_USAGE: no text fits; TERN_MEMORY. */
tern_status tn_dfa_create(struct tn_dfa *out, const struct tn_nfa *nfa, uint64_t *steps,
                          struct tern_error *err);
void tn_dfa_fini(struct tn_dfa *dfa);
/* Does a text of UTF-8 fit? */
bool tn_dfa_takes(const struct tn_dfa *dfa, const char *text);

#endif
