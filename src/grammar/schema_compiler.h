/* SPDX-License-Identifier: MIT
 *
 * State and helpers of the schema compiler: refusals with a JSON path, keyword checks, naming of
 * subschemas.
 *
 * schema.c compiles schemas, schema_object.c the members of objects.
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
    const json_t *root; /* of the current part */
    json_t *made;       /* an array that owns the roots and generated schemas */
    bool is_strict;     /* the current part is */
    uint32_t text;      /* start of the rule for text between tags, or 0 */
    uint32_t again;     /* state after a separator, before any part that has one */
    uint32_t at; /* index of the subschema being compiled */
    tern_status status;
    struct tern_error *err;
};

/* Fails with `#/path: ...`.  Returns false, for the caller to return. */
bool tn_schema_refuse(struct tn_schema_compiler *c, tern_status status, const char *format, ...)
    TN_PRINTF(3, 4);
/* The same with the detail already in c->err. */
bool tn_schema_refuse_as_said(struct tn_schema_compiler *c, tern_status status);

/* Are all keywords annotations? */
bool tn_schema_says_nothing(const json_t *s);
/* Refuses a schema with a keyword that is neither an annotation nor in `list` [n]; `beside` ends
 * the message. */
bool tn_schema_check_words(struct tn_schema_compiler *c, const json_t *s, const char *const *list,
                           size_t n, const char *beside);

/* Start state of the rule for a subschema of the current one.  `json`, `keyword` and `name` must
 * outlive the compiler. */
uint32_t tn_schema_rule_of(struct tn_schema_compiler *c, const json_t *json, const char *keyword,
                           const char *name, uint32_t index);

/* Passes ownership of `made` to the compiler.  false: `made` is NULL, or out of memory. */
bool tn_schema_keep(struct tn_schema_compiler *c, json_t *made);

#endif
