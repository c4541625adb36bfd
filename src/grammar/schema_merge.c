/* SPDX-License-Identifier: MIT
 *
 * Merges the subschemas of "allOf", keyword by keyword.
 *
 * Each keyword has its own rule: bounds narrow, lists of names join, patterns are listed, members
 * nest in a new "allOf".  Keywords without a rule must be equal.  Steps bound the size of the
 * result, because references can multiply it.
 */
#include "grammar/schema_merge.h"

#include <stdarg.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/json_object.h"
#include "base/text_match.h"
#include "grammar/decimal.h"
#include "grammar/nfa.h"
#include "grammar/schema_list.h"

#define STEPS_PER_WORD 64u /* per member of JSON created, which bounds memory too */

struct merge {
    const json_t *root;
    json_t *out;
    json_t *seen[TERN_GRAMMAR_MAX_DEPTH]; /* subschemas being merged, outermost first */
    uint32_t depth;
    uint64_t *steps;
    tern_status status;
    struct tern_error *err;
};

bool tn_schema_is_annotation(const char *word)
{
    static const char *const words[] = {
        "title", "description", "default", "examples", "example", "$comment", "$schema", "$id",
        "$anchor", "$defs", "definitions", "deprecated", "readOnly", "writeOnly", "discriminator",
        "externalDocs", "xml", "contentEncoding", "contentMediaType", "contentSchema"};
    return tn_text_is_one_of(word, words, TN_COUNT_OF(words)) ||
           strncmp(word, "x-", 2) == 0; /* vendor extensions of OpenAPI */
}

/* ---- failures; each returns false ---- */

static bool TN_PRINTF(3, 4) fail(struct merge *m, tern_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    m->status = tn_vfail(m->err, status, format, args);
    va_end(args);
    tn_fail_prefix(m->err, "\"allOf\"");
    return false;
}

static bool fail_memory(struct merge *m)
{
    m->status = tn_fail(m->err, TERN_MEMORY, "no memory for a grammar");
    return false;
}

static bool differs(struct merge *m, const char *word)
{
    return fail(m, TERN_UNSUPPORTED, "its schemas differ in \"%.60s\"", word);
}

/* Consumes the reference to `value`. */
static bool put(struct merge *m, json_t *object, const char *key, json_t *value)
{
    return json_object_set_new(object, key, value) == 0 || fail_memory(m);
}

static bool spend(struct merge *m)
{
    if (*m->steps < STEPS_PER_WORD)
        return fail(m, TERN_LIMIT, "the merged schema is too large");
    *m->steps -= STEPS_PER_WORD;
    return true;
}

/* ---- keywords ---- */

/* Requires both schemas for the same member. */
static bool put_both(struct merge *m, json_t *object, const char *key, json_t *a, json_t *b)
{
    return json_equal(a, b) || put(m, object, key, json_pack("{s:[O,O]}", "allOf", a, b));
}

static bool merge_properties(struct merge *m, json_t *value)
{
    json_t *properties = json_object_get(m->out, "properties"), *schema;
    const char *name;
    json_object_foreach(value, name, schema) {
        json_t *other = json_object_get(properties, name);
        if (!spend(m) || !(other ? put_both(m, properties, name, other, schema)
                                 : put(m, properties, name, json_incref(schema))))
            return false;
    }
    return true;
}

/* Duplicate names are harmless. */
static bool merge_required(struct merge *m, const json_t *value)
{
    json_t *names = json_object_get(m->out, "required");
    for (size_t i = 0; i < json_array_size(value); i++) {
        if (!spend(m))
            return false;
        if (json_array_append(names, json_array_get(value, i)) != 0)
            return fail_memory(m);
    }
    return true;
}

static bool holds(const json_t *list, const json_t *value)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_equal(json_array_get(list, i), value))
            return true;
    return false;
}

static bool is_type(const json_t *name, const char *type)
{
    return json_is_string(name) && strcmp(json_string_value(name), type) == 0;
}

/* Adds the types that a and b have in common; an integer is a number. */
static bool add_common_types(json_t *out, const json_t *a, const json_t *b)
{
    for (size_t i = 0; i < json_array_size(a); i++) {
        json_t *name = json_array_get(a, i);
        const bool is_common =
            holds(b, name) || (is_type(name, "integer") && tn_json_list_has(b, "number"));
        if (is_common && !holds(out, name) && json_array_append(out, name) != 0)
            return false;
    }
    return true;
}

static json_t *as_list(json_t *type)
{
    return json_is_array(type) ? json_incref(type) : json_pack("[O]", type);
}

static bool merge_type(struct merge *m, json_t *value)
{
    json_t *a = as_list(json_object_get(m->out, "type")), *b = as_list(value);
    json_t *both = json_array();
    const bool is_good = a && b && both && add_common_types(both, a, b) &&
                         add_common_types(both, b, a);
    json_decref(a);
    json_decref(b);
    if (is_good && json_array_size(both) > 0)
        return put(m, m->out, "type", both);
    json_decref(both);
    return is_good ? fail(m, TERN_USAGE, "no value has every \"type\"") : fail_memory(m);
}

/* false excludes all other members; true has no effect. */
static bool merge_additional(struct merge *m, json_t *value)
{
    static const char word[] = "additionalProperties";
    json_t *other = json_object_get(m->out, word);
    if (json_is_false(other) || json_is_true(value))
        return true;
    return json_is_false(value) || json_is_true(other)
               ? put(m, m->out, word, json_incref(value))
               : put_both(m, m->out, word, other, value);
}

/* Keeps the narrower of two bounds. */
static bool merge_bound(struct merge *m, const char *word, json_t *value)
{
    static const char *const lower[] = {"minimum", "exclusiveMinimum", "minLength", "minItems"};
    static const char *const upper[] = {"maximum", "exclusiveMaximum", "maxLength", "maxItems"};
    const json_t *other = json_object_get(m->out, word);
    const struct tn_decimal a = tn_decimal_of(other), b = tn_decimal_of(value);
    for (size_t i = 0; i < TN_COUNT_OF(lower); i++) {
        const bool is_lower = strcmp(word, lower[i]) == 0, is_upper = strcmp(word, upper[i]) == 0;
        if ((is_lower || is_upper) && json_is_number(other) && json_is_number(value))
            return tn_decimal_compare(&b, &a) * (is_lower ? 1 : -1) <= 0 ||
                   put(m, m->out, word, json_incref(value));
    }
    return differs(m, word);
}

/* Patterns become one text, separated by NUL, which a schema from outside cannot contain. */
static bool merge_pattern(struct merge *m, const json_t *value)
{
    static const char word[] = "pattern";
    const json_t *others = json_object_get(m->out, word);
    const char *text = json_string_value(others), *end = text + json_string_length(others);
    const size_t n = (size_t)(end - text) + 1, n_more = json_string_length(value);
    uint32_t n_patterns = 1;
    for (const char *p = text; p <= end; p += strlen(p) + 1, n_patterns++)
        if (strcmp(p, json_string_value(value)) == 0)
            return true;
    if (n_patterns > TN_NFA_MAX_EXPRESSIONS)
        return fail(m, TERN_LIMIT, "more than %u times \"%s\"", TN_NFA_MAX_EXPRESSIONS, word);
    char *both = tn_alloc(n + n_more);
    if (!both)
        return fail_memory(m);
    memcpy(both, text, n);
    memcpy(both + n, json_string_value(value), n_more);
    json_t *merged = json_stringn(both, n + n_more);
    tn_free(both);
    return put(m, m->out, word, merged);
}

/* Copies arrays on first use: merging appends to them, and the caller's schema must not change. */
static bool put_first(struct merge *m, const char *word, json_t *value)
{
    if (strcmp(word, "properties") == 0 && json_is_object(value))
        return put(m, m->out, word, json_object()) && merge_properties(m, value);
    if (strcmp(word, "required") == 0 && json_is_array(value))
        return put(m, m->out, word, json_array()) && merge_required(m, value);
    return put(m, m->out, word, json_incref(value));
}

static bool merge_word(struct merge *m, const char *word, json_t *value)
{
    json_t *other = json_object_get(m->out, word);
    if (!spend(m))
        return false;
    if (!other)
        return put_first(m, word, value);
    if (json_equal(other, value) || tn_schema_is_annotation(word))
        return true;
    if (strcmp(word, "properties") == 0 && json_is_object(other) && json_is_object(value))
        return merge_properties(m, value);
    if (strcmp(word, "required") == 0 && json_is_array(other) && json_is_array(value))
        return merge_required(m, value);
    if (strcmp(word, "type") == 0)
        return merge_type(m, value);
    if (strcmp(word, "additionalProperties") == 0)
        return merge_additional(m, value);
    if (strcmp(word, "pattern") == 0 && json_is_string(other) && json_is_string(value))
        return merge_pattern(m, value);
    if (strcmp(word, "items") == 0)
        return put_both(m, m->out, word, other, value);
    return merge_bound(m, word, value);
}

/* ---- subschemas ---- */

static bool merge_part(struct merge *m, json_t *part);

static bool merge_reference(struct merge *m, const json_t *reference)
{
    const char *text = json_string_value(reference);
    const json_t *target = text ? tn_schema_find(m->root, text) : NULL;
    return target ? merge_part(m, (json_t *)target)
                  : fail(m, TERN_USAGE, "the schema has nothing at \"%.60s\"",
                         text ? text : "$ref");
}

static bool is_tuple(const json_t *s)
{
    return json_object_get(s, "prefixItems") || json_is_array(json_object_get(s, "items"));
}

static bool has_equal(const json_t *a, const json_t *b, const char *word)
{
    json_t *x = json_object_get(a, word), *y = json_object_get(b, word);
    return x == y || json_equal(x, y);
}

/* "items" applies to all items or to those after the first ones, depending on its neighbours, so
 * the items of a tuple cannot be merged with other ones. */
static bool check_items(struct merge *m, const json_t *part)
{
    const bool has_both = (json_object_get(part, "items") || is_tuple(part)) &&
                          (json_object_get(m->out, "items") || is_tuple(m->out));
    if (!has_both || !(is_tuple(part) || is_tuple(m->out)) ||
        (has_equal(part, m->out, "items") && has_equal(part, m->out, "prefixItems") &&
         has_equal(part, m->out, "additionalItems")))
        return true;
    return differs(m, "prefixItems");
}

/* The referenced schema first, then "allOf", then its own keywords. */
static bool merge_words(struct merge *m, json_t *part)
{
    json_t *reference = json_object_get(part, "$ref"), *list = json_object_get(part, "allOf");
    json_t *value;
    const char *word;
    if (reference && !merge_reference(m, reference))
        return false;
    if (list && (!json_is_array(list) || json_array_size(list) == 0))
        return fail(m, TERN_USAGE, "it must be an array of schemas, not empty");
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!merge_part(m, json_array_get(list, i)))
            return false;
    if (!check_items(m, part))
        return false;
    json_object_foreach(part, word, value)
        if (strcmp(word, "$ref") != 0 && strcmp(word, "allOf") != 0 &&
            !merge_word(m, word, value))
            return false;
    return true;
}

/* Nests up to TERN_GRAMMAR_MAX_DEPTH.  A subschema inside itself adds nothing. */
static bool merge_part(struct merge *m, json_t *part)
{
    if (json_is_true(part))
        return true;
    if (!json_is_object(part))
        return fail(m, TERN_USAGE, "each item must be a schema");
    for (uint32_t i = 0; i < m->depth; i++)
        if (m->seen[i] == part)
            return true;
    if (m->depth == TERN_GRAMMAR_MAX_DEPTH)
        return fail(m, TERN_LIMIT, "more than %d levels of \"$ref\"", TERN_GRAMMAR_MAX_DEPTH);
    m->seen[m->depth++] = part;
    const bool is_good = spend(m) && merge_words(m, part);
    m->depth--;
    return is_good;
}

tern_status tn_schema_merge(json_t **out, const json_t *s, const json_t *root, uint64_t *steps,
                            struct tern_error *err)
{
    struct merge m = {.root = root, .out = json_object(), .steps = steps, .err = err};
    *out = NULL;
    if (!m.out)
        return tn_fail(err, TERN_MEMORY, "no memory for a grammar");
    if (merge_part(&m, (json_t *)s)) {
        *out = m.out;
        return tn_ok(err);
    }
    json_decref(m.out);
    return m.status;
}
