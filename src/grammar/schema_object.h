/* SPDX-License-Identifier: MIT
 *
 * Objects: the members that "properties" name, in their order, then others.
 *
 *   { "name": value , ... , any other key: value , ... }
 *
 * Other members are those of "additionalProperties", if that is a schema or true, or of one pattern
 * of "patternProperties".  Their keys are none of the names before them; that no key comes twice
 * cannot be said by a grammar.
 */
#ifndef TN_SCHEMA_OBJECT_H
#define TN_SCHEMA_OBJECT_H

#include "grammar/schema_compiler.h"

/* Compiles what s says about objects into the rule that begins at `start`.  false: refused. */
bool tn_schema_object(struct tn_schema_compiler *c, const json_t *s, uint32_t start);

#endif
