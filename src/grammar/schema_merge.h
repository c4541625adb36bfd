/* SPDX-License-Identifier: MIT
 *
 * "allOf": several schemas as one that says what all of them say.
 *
 *   {"allOf": [{"$ref": "#/$defs/named"}, {"properties": {"age": ...}}], "description": "..."}
 *     -> {"properties": {"name": ..., "age": ...}, "required": ["name"], "description": "..."}
 *
 * Libraries close each part with "additionalProperties": false, though the parts name different
 * members; so the whole is closed, and all members that a part names are its.
 */
#ifndef TN_SCHEMA_MERGE_H
#define TN_SCHEMA_MERGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "tern/status.h"

/* Does this word say nothing about values? */
bool tn_schema_is_annotation(const char *word);

/* *out becomes a new schema without "allOf" and "$ref" (json_decref): the parts of s and of its
 * parts, the references among them followed within `root`, then s itself.  What two parts say about
 * a member or about items becomes an "allOf" there.  Takes off *steps what it costs.
 * TERN_USAGE: a part is no schema, a reference leads nowhere, or no value fits all parts;
 * TERN_UNSUPPORTED: words that differ and cannot be one; TERN_LIMIT; TERN_MEMORY. */
tern_status tn_schema_merge(json_t **out, const json_t *s, const json_t *root, uint64_t *steps,
                            struct tern_error *err);

#endif
