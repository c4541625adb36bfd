/* SPDX-License-Identifier: MIT
 *
 * The state of compiling a schema, and what its parts share: refusing with a place, checking words,
 * naming subschemas.  schema.c compiles, schema_object.c the members of objects.
 */
#ifndef TN_SCHEMA_COMPILER_H
#define TN_SCHEMA_COMPILER_H

#include "base/compiler.h"
#include "grammar/schema_limits.h"
#include "grammar/schema_list.h"

struct tn_schema_compiler {
    struct tern_grammar *g;
    struct tn_schema_list list;
    struct tn_json_rules rules;
    struct tn_schema_limits limits;
    const json_t *root;
    json_t *made; /* an array that owns schemas which are not part of the root */
    const char *before, *after; /* texts around the JSON */
    bool is_strict;
    uint32_t at; /* the subschema that is being compiled */
    tern_status status;
    struct tern_error *err;
};

/* Fails with `#/place: ...`; false, so that checks can return it. */
bool tn_schema_refuse(struct tn_schema_compiler *c, tern_status status, const char *format, ...)
    TN_PRINTF(3, 4);
/* The same where c->err has the detail. */
bool tn_schema_refuse_as_said(struct tn_schema_compiler *c, tern_status status);

/* Are all words annotations? */
bool tn_schema_says_nothing(const json_t *s);
/* Refuses a schema with words beside its annotations that are not among the n of the list. */
bool tn_schema_check_words(struct tn_schema_compiler *c, const json_t *s, const char *const *list,
                           size_t n, const char *beside);

/* The start of the rule of a subschema of the one that is being compiled.  `json`, `keyword` and
 * `name` live as long as the compiler. */
uint32_t tn_schema_rule_of(struct tn_schema_compiler *c, const json_t *json, const char *keyword,
                           const char *name, uint32_t index);

/* Hands `made` over to the compiler, which frees it at its end.  false: NULL, or no memory. */
bool tn_schema_keep(struct tn_schema_compiler *c, json_t *made);

#endif
