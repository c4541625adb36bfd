/* SPDX-License-Identifier: MIT
 *
 * The subschemas of a schema; each is compiled once for a form, however many references name it.
 *
 * A subschema enters the list when it is first named, with the start state of its future rule.  The
 * compiler works through the list until it is empty, so neither deep nor circular schemas need a
 * recursion.
 */
#ifndef TN_SCHEMA_LIST_H
#define TN_SCHEMA_LIST_H

#include <jansson.h>

#include "base/buf.h"
#include "grammar/grammar.h"

#define TN_MAX_SUBSCHEMAS 32768u
#define TN_NO_PARENT UINT32_MAX

/* How the text of a value is written. */
enum tn_schema_form {
    TN_FORM_JSON,
    TN_FORM_TAGS, /* an object, as the tags of its members (schema_tags.h) */
    TN_FORM_VALUE /* the value of such a member, through its closing tag */
};

struct tn_subschema {
    const json_t *json;
    enum tn_schema_form form;
    uint32_t start;      /* state of its rule */
    uint32_t parent;     /* index in the list, or TN_NO_PARENT */
    const char *keyword; /* of the parent that contains it; for a reference, its whole text */
    const char *name;    /* of the property below the keyword, or NULL */
    uint32_t index;      /* of the alternative below the keyword, or TN_NO_PARENT */
    uint32_t part;       /* set by the list */
};

/* Zero-initialise; tn_schema_list_fini frees. */
struct tn_schema_list {
    struct tn_subschema *items; /* [n] */
    uint32_t n, capacity;
    uint32_t part; /* of the grammar (tern_grammar_from_parts) that new subschemas belong to */
    /* [2 * TN_MAX_SUBSCHEMAS] hash table by address of the JSON, and form: 1 + index in items */
    uint32_t *slots;
};

/* Index of `what` in the list, appended if it is new.  TERN_LIMIT and TERN_MEMORY become failures
 * of the grammar. */
uint32_t tn_schema_list_add(struct tn_schema_list *list, struct tern_grammar *g,
                            const struct tn_subschema *what);
void tn_schema_list_fini(struct tn_schema_list *list);

/* Appends the path of a subschema, such as "#/properties/name". */
void tn_schema_path(struct tn_buf *out, const struct tn_schema_list *list, uint32_t i);

/* Resolves a reference such as "#" or "#/$defs/name"; NULL: it points to nothing. */
const json_t *tn_schema_find(const json_t *root, const char *reference);

#endif
