/* SPDX-License-Identifier: MIT
 *
 * Replaces "allOf" by one schema that requires what all its subschemas require.
 *
 *   {"allOf": [{"$ref": "#/$defs/named"}, {"properties": {"age": ...}}], "description": "..."}
 *     -> {"properties": {"name": ..., "age": ...}, "required": ["name"], "description": "..."}
 *
 * Several patterns become one "pattern" whose parts are separated by NUL; a string matches all.
 *
 * Libraries put "additionalProperties": false into each subschema although they name different
 * members.  So the result is closed and has the members of all subschemas.
 */
#ifndef TN_SCHEMA_MERGE_H
#define TN_SCHEMA_MERGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "tern/status.h"

/* Does this keyword leave the set of valid values unchanged? */
bool tn_schema_is_annotation(const char *word);

/* Sets *out to a new schema (json_decref) without "allOf" and "$ref": the subschemas of s, with
 * references resolved in `root`, then s itself.  What two subschemas say about one member or about
 * items becomes a nested "allOf".  Subtracts the cost from *steps.  TERN_USAGE: a subschema is no
 * schema, a reference points to nothing, or no value is valid for all; TERN_UNSUPPORTED: keywords
 * that differ and cannot be merged; TERN_LIMIT; TERN_MEMORY. */
tern_status tn_schema_merge(json_t **out, const json_t *s, const json_t *root, uint64_t *steps,
                            struct tern_error *err);

#endif
