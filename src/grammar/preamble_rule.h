/* SPDX-License-Identifier: MIT
 *
 * The text in front of an answer, any text up to a closing tag, as states of a grammar.  It has no
 * rule: it is read once, before the parts.
 */
#ifndef TN_PREAMBLE_RULE_H
#define TN_PREAMBLE_RULE_H

#include "grammar/grammar.h"

/* Adds the preamble from `start` on.  Returns the state after it. */
uint32_t tn_grammar_preamble(struct tern_grammar *g, uint32_t start,
                             const struct tern_grammar_preamble *preamble);

#endif
