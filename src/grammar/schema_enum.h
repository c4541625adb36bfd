/* SPDX-License-Identifier: MIT
 *
 * Types of values, and schemas that list their values: "enum" and "const".
 *
 * Used by schema.c, and by schema_array.c for items that must differ.
 */
#ifndef TN_SCHEMA_ENUM_H
#define TN_SCHEMA_ENUM_H

#include "grammar/schema_compiler.h"

enum tn_schema_type {
    TN_TYPE_OBJECT,
    TN_TYPE_ARRAY,
    TN_TYPE_STRING,
    TN_TYPE_NUMBER,
    TN_TYPE_INTEGER,
    TN_TYPE_BOOLEAN,
    TN_TYPE_NULL,
    TN_N_TYPES
};

extern const char *const tn_schema_type_names[TN_N_TYPES];

/* Reads "type" as bits (1 << enum tn_schema_type); 0: absent.  false: refused. */
bool tn_schema_read_types(struct tn_schema_compiler *c, const json_t *s, uint32_t *types);

/* The values that "enum" or "const" lists and that fit the keywords next to it, at least one; the
 * compiler owns the array.  NULL: refused, or out of memory. */
const json_t *tn_schema_enum_values(struct tn_schema_compiler *c, const json_t *s);
/* Spells out a value from a state to an end of its rule. */
void tn_schema_add_value(struct tn_schema_compiler *c, const json_t *value, uint32_t start);
/* Compiles "enum" or "const" into the rule that begins at `start`.  false: refused. */
bool tn_schema_enum(struct tn_schema_compiler *c, const json_t *s, uint32_t start);

#endif
