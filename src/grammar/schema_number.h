/* SPDX-License-Identifier: MIT
 *
 * "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum" and "multipleOf" of a schema.
 */
#ifndef TN_SCHEMA_NUMBER_H
#define TN_SCHEMA_NUMBER_H

#include <jansson.h>

#include "grammar/grammar.h"

/* The rule that begins at `start`: numbers, or integers, within the limits of s.  Takes off *steps
 * what it costs.  Errors of tn_number_rule, and TERN_USAGE: a word with a wrong value; TERN_LIMIT:
 * a multiple of too many digits. */
tern_status tn_schema_number(struct tern_grammar *g, uint32_t start, const json_t *s,
                             bool is_integer, uint64_t *steps, struct tern_error *err);

/* Is a number within the limits of s?  The same errors. */
tern_status tn_schema_number_takes(bool *fits, const json_t *s, const json_t *number,
                                   struct tern_error *err);

#endif
