/* SPDX-License-Identifier: MIT
 *
 * Compiles the items of an array: "items", "prefixItems", their number, "uniqueItems".
 *
 * Called by schema.c.
 */
#ifndef TN_SCHEMA_ARRAY_H
#define TN_SCHEMA_ARRAY_H

#include "grammar/schema_compiler.h"

/* Compiles the array keywords of s into the rule that begins at `start`.  false: refused. */
bool tn_schema_array(struct tn_schema_compiler *c, const json_t *s, uint32_t start);

#endif
