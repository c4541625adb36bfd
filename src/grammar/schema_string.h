/* SPDX-License-Identifier: MIT
 *
 * "pattern", "format", "minLength" and "maxLength" of a schema.
 *
 * Called by schema_limits.c; string_rule.c builds the automaton.
 */
#ifndef TN_SCHEMA_STRING_H
#define TN_SCHEMA_STRING_H

#include <jansson.h>

#include "grammar/grammar.h"

/* Adds the rule that begins at `start`: strings, in JSON or raw (string_rule.h), that are valid for
 * these keywords of s, at least one of which is present.  Error details name the keyword.
 * Subtracts the cost from *steps.  TERN_USAGE, TERN_LIMIT, TERN_UNSUPPORTED: a keyword with an
 * invalid value, or an expression or format that is not supported; TERN_MEMORY. */
tern_status tn_schema_string(struct tern_grammar *g, bool is_raw, uint32_t start, const json_t *s,
                             uint64_t *steps, struct tern_error *err);

/* Is a UTF-8 string valid for these keywords of s?  The same costs and errors. */
tern_status tn_schema_string_takes(bool *fits, const json_t *s, const char *text, uint64_t *steps,
                                   struct tern_error *err);

#endif
