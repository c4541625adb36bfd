/* SPDX-License-Identifier: MIT
 *
 * Objects: the members that "properties" names, in their order, then other members.
 *
 *   { "name": value , ... , any other key: value , ... }
 *
 * Other members come from "additionalProperties" (a schema or true) or from the single pattern of
 * "patternProperties".  Their keys differ from the names before them; a grammar cannot exclude
 * duplicates among other members.
 */
#ifndef TN_SCHEMA_OBJECT_H
#define TN_SCHEMA_OBJECT_H

#include "grammar/schema_compiler.h"

/* Compiles the object keywords of s into the rule that begins at `start`.  false: refused. */
bool tn_schema_object(struct tn_schema_compiler *c, const json_t *s, uint32_t start);
/* The same in tags (schema_tags.h), for all of a schema that describes an object. */
bool tn_schema_object_tags(struct tn_schema_compiler *c, const json_t *s, uint32_t start);

#endif
