/* SPDX-License-Identifier: MIT
 *
 * The subschemas of a schema: each is compiled once, however many refer to it.
 *
 * A subschema stands in the list as soon as something names it, with the start of the rule that it
 * will become; the compiler goes through the list until all are done.  So neither the depth of a
 * schema nor references in circles need a stack.
 */
#ifndef TN_SCHEMA_LIST_H
#define TN_SCHEMA_LIST_H

#include <jansson.h>

#include "base/buf.h"
#include "grammar/grammar.h"

#define TN_MAX_SUBSCHEMAS 32768u
#define TN_NO_PARENT UINT32_MAX

struct tn_subschema {
    const json_t *json;
    uint32_t start;      /* state */
    uint32_t parent;     /* in the list, or TN_NO_PARENT */
    const char *keyword; /* of the parent under which it stands; of a reference: all of its text */
    const char *name;    /* below that: of a property, or NULL */
    uint32_t index;      /* below that: of an alternative, or TN_NO_PARENT */
};

/* Zero-initialise; tn_schema_list_fini frees. */
struct tn_schema_list {
    struct tn_subschema *items; /* [n] */
    uint32_t n, capacity;
    uint32_t *slots; /* [2 * TN_MAX_SUBSCHEMAS] 1 + place in items, by the address of the JSON */
};

/* The place of `what` in the list, appended where it is new.  TERN_LIMIT, TERN_MEMORY: a failure of
 * the grammar. */
uint32_t tn_schema_list_add(struct tn_schema_list *list, struct tern_grammar *g,
                            const struct tn_subschema *what);
void tn_schema_list_fini(struct tn_schema_list *list);

/* Appends "#/properties/name" to out. */
void tn_schema_path(struct tn_buf *out, const struct tn_schema_list *list, uint32_t i);

/* What "#", "#/$defs/name" and the like stand for in a schema; NULL: nothing. */
const json_t *tn_schema_find(const json_t *root, const char *reference);

#endif
