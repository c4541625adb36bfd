/* SPDX-License-Identifier: MIT
 *
 * Strings and numbers that a schema limits by more than their type.
 *
 * Subschemas with the same limits share a rule.  All of a schema shares one budget of steps, which
 * bounds the time that hostile limits can cost.
 */
#ifndef TN_SCHEMA_LIMITS_H
#define TN_SCHEMA_LIMITS_H

#include <jansson.h>

#include "grammar/grammar.h"

#define TN_RAW_STRING "raw string" /* as a type: a string between tags (schema_tags.h) */

/* Zero-initialise and set `steps`; tn_schema_limits_fini frees. */
struct tn_schema_limits {
    json_t *rules;  /* grammar states keyed by limits */
    uint64_t steps; /* remaining budget */
};

/* Sets *rule to the rule for values of `type` within the limits of s; leaves it unchanged if s has
 * none.  Errors of tn_schema_string and tn_schema_number.  After a failure of the grammar *rule is
 * meaningless. */
tern_status tn_schema_limits_find(struct tn_schema_limits *limits, struct tern_grammar *g,
                                  const json_t *s, const char *type, uint32_t *rule,
                                  struct tern_error *err);
/* Is `value` within the limits of s for its type?  The same errors. */
tern_status tn_schema_limits_take(struct tn_schema_limits *limits, const json_t *s,
                                  const json_t *value, bool *fits, struct tern_error *err);
void tn_schema_limits_fini(struct tn_schema_limits *limits);

#endif
