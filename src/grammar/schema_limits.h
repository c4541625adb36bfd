/* SPDX-License-Identifier: MIT
 *
 * Strings and numbers of a schema that are limited by more than their type.
 *
 * Subschemas with the same limits share a rule, and all of a schema share the steps that making
 * such rules may take.
 */
#ifndef TN_SCHEMA_LIMITS_H
#define TN_SCHEMA_LIMITS_H

#include <jansson.h>

#include "grammar/grammar.h"

/* Zero-initialise, and set the steps; tn_schema_limits_fini frees. */
struct tn_schema_limits {
    json_t *rules;  /* by their limits */
    uint64_t steps; /* that are left */
};

/* *rule becomes the rule for values of a type within the limits that schema s sets to them, and
 * stays as it is where there are none.  Errors of tn_schema_string and tn_schema_number; after a
 * failure of the grammar *rule says nothing. */
tern_status tn_schema_limits_find(struct tn_schema_limits *limits, struct tern_grammar *g,
                                  const json_t *s, const char *type, uint32_t *rule,
                                  struct tern_error *err);
/* Does a value fit the limits that schema s sets to values of its type?  The same errors. */
tern_status tn_schema_limits_take(struct tn_schema_limits *limits, const json_t *s,
                                  const json_t *value, bool *fits, struct tern_error *err);
void tn_schema_limits_fini(struct tn_schema_limits *limits);

#endif
