/* SPDX-License-Identifier: MIT
 *
 * "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum" and "multipleOf" of a schema.
 *
 * Called by schema_limits.c; number_rule.c builds the automaton.
 */
#ifndef TN_SCHEMA_NUMBER_H
#define TN_SCHEMA_NUMBER_H

#include <jansson.h>

#include "grammar/grammar.h"

/* Adds the rule that begins at `start`: numbers, or integers, within the limits of s.  Subtracts
 * the cost from *steps.  Errors of tn_number_rule, and TERN_USAGE: a keyword with an invalid value;
 * TERN_LIMIT: "multipleOf" with too many digits. */
tern_status tn_schema_number(struct tern_grammar *g, uint32_t start, const json_t *s,
                             bool is_integer, uint64_t *steps, struct tern_error *err);

/* Is `number` within the limits of s?  The same errors. */
tern_status tn_schema_number_takes(bool *fits, const json_t *s, const json_t *number,
                                   struct tern_error *err);

#endif
