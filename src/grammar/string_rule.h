/* SPDX-License-Identifier: MIT
 *
 * Strings that fit expressions or have a length, as rules of a grammar.
 *
 * The expressions speak of the characters that a JSON string stands for.  Each has one spelling:
 * as it is, but \" and \\ and, below U+0020, \b \t \n \f \r and \u0001 with small digits; which is
 * what JSON.stringify writes.
 */
#ifndef TN_STRING_RULE_H
#define TN_STRING_RULE_H

#include <jansson.h>

#include "grammar/grammar.h"
#include "grammar/schema_count.h"

#define TN_MAX_LENGTH 65536u

/* The rule that begins at `start`: a string that fits all n expressions, at least one, and has as
 * many characters.  Takes off *steps what it costs.  Errors of tn_regex_add and tn_dfa_create; a
 * grammar that is full has failed. */
tern_status tn_string_rule(struct tern_grammar *g, uint32_t start, const char *const *expressions,
                           uint32_t n, struct tn_count_range length, uint64_t *steps,
                           struct tern_error *err);
/* Does a text of UTF-8 fit all n expressions?  The same costs and errors. */
tern_status tn_string_fits(bool *fits, const char *const *expressions, uint32_t n,
                           const char *text, uint64_t *steps, struct tern_error *err);
/* Any string that is none of the members' names of an object.  TERN_MEMORY; a grammar that is full
 * has failed. */
tern_status tn_string_rule_of_others(struct tern_grammar *g, uint32_t start, const json_t *object,
                                     struct tern_error *err);
/* Any string of so many characters: a state for each of length.max, or of length.min where there is
 * no maximum. */
void tn_string_rule_of_length(struct tern_grammar *g, uint32_t start,
                              struct tn_count_range length);

#endif
