/* SPDX-License-Identifier: MIT
 *
 * The text in front of an answer, any text up to a closing tag, as states of a grammar.  It has no
 * rule: it is read once, before the parts.
 */
#ifndef TN_PREAMBLE_RULE_H
#define TN_PREAMBLE_RULE_H

#include "grammar/grammar.h"

/* Sets the start of a grammar and, after the preamble unless that is NULL, the state before its
 * parts. */
void tn_grammar_begin(struct tern_grammar *g, const struct tern_grammar_preamble *preamble);

#endif
