/* SPDX-License-Identifier: MIT
 *
 * Compiles a JSON schema into a grammar.
 *
 * tern/grammar.h lists the supported keywords.  Anything else is refused: an answer that ignores a
 * keyword would violate the schema silently.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/json_dump.h"
#include "base/json_load.h"
#include "grammar/schema_count.h"
#include "grammar/schema_merge.h"
#include "grammar/schema_object.h"

/* Arrays are unrolled up to this many items. */
#define MAX_ITEMS 4096u

/* ---- subschemas ---- */

static bool compile_reference(struct tn_schema_compiler *c, const json_t *s, uint32_t start)
{
    static const char *const words[] = {"$ref"};
    const char *text = json_string_value(json_object_get(s, "$ref"));
    const json_t *target = text ? tn_schema_find(c->root, text) : NULL;
    if (!tn_schema_check_words(c, s, words, TN_COUNT_OF(words), " together with \"$ref\""))
        return false;
    if (!text)
        return tn_schema_refuse(c, TERN_USAGE, "\"$ref\" must be a string");
    if (!target)
        return tn_schema_refuse(c, TERN_USAGE,
                                "\"$ref\": the schema has nothing at \"%.100s\"", text);
    const struct tn_subschema found = {.json = target, .parent = TN_NO_PARENT, .keyword = text,
                                       .index = TN_NO_PARENT};
    const uint32_t i = tn_schema_list_add(&c->list, c->g, &found);
    if (!c->g->failed)
        tn_grammar_empty(c->g, start, c->list.items[i].start);
    return true;
}

/* "anyOf", and "oneOf", whose alternatives are assumed to be mutually exclusive. */
static bool compile_alternatives(struct tn_schema_compiler *c, const json_t *s, const char *word,
                                 uint32_t start)
{
    const json_t *list = json_object_get(s, word);
    char beside[24];
    snprintf(beside, sizeof beside, " together with \"%s\"", word);
    if (!tn_schema_check_words(c, s, &word, 1, beside))
        return false;
    if (!json_is_array(list) || json_array_size(list) == 0)
        return tn_schema_refuse(c, TERN_USAGE, "\"%s\" must be an array of schemas, not empty",
                                word);
    for (size_t i = 0; i < json_array_size(list); i++)
        tn_grammar_empty(c->g, start,
                         tn_schema_rule_of(c, json_array_get(list, i), word, NULL, (uint32_t)i));
    return true;
}

/* ---- types ---- */

enum { OBJECT, ARRAY, STRING, NUMBER, INTEGER, BOOLEAN, NIL, N_TYPES };

static const char *const type_names[N_TYPES] = {"object",  "array",   "string", "number",
                                                "integer", "boolean", "null"};

/* Adds the bit of a type. */
static bool add_type(struct tn_schema_compiler *c, const json_t *name, uint32_t *types)
{
    const char *text = json_string_value(name);
    for (uint32_t i = 0; text && i < N_TYPES; i++)
        if (strcmp(text, type_names[i]) == 0) {
            *types |= 1u << i;
            return true;
        }
    return tn_schema_refuse(c, TERN_USAGE, "\"type\" must be one or several of object, array, "
                                           "string, number, integer, boolean, null");
}

/* The bits of "type"; 0: absent. */
static bool read_types(struct tn_schema_compiler *c, const json_t *s, uint32_t *types)
{
    const json_t *type = json_object_get(s, "type");
    *types = 0;
    if (!type)
        return true;
    if (!json_is_array(type))
        return add_type(c, type, types);
    if (json_array_size(type) == 0)
        return add_type(c, NULL, types);
    for (size_t i = 0; i < json_array_size(type); i++)
        if (!add_type(c, json_array_get(type, i), types))
            return false;
    return true;
}

static uint32_t type_of(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return 1u << OBJECT;
    case JSON_ARRAY:
        return 1u << ARRAY;
    case JSON_STRING:
        return 1u << STRING;
    case JSON_INTEGER:
        return 1u << INTEGER | 1u << NUMBER;
    case JSON_REAL:
        return 1u << NUMBER;
    case JSON_NULL:
        return 1u << NIL;
    default:
        return 1u << BOOLEAN;
    }
}

/* ---- enum, const ---- */

/* Spells out a value from the start of a rule to an end. */
static void add_value(struct tn_schema_compiler *c, const json_t *value, uint32_t start)
{
    struct tn_buf text = {0};
    if (!tn_json_dump(&text, value))
        c->g->failed = c->g->failed ? c->g->failed : TERN_MEMORY;
    else
        tn_grammar_end(c->g, tn_grammar_text(c->g, start, text.data, text.n_bytes));
    tn_buf_fini(&text);
}

static bool compile_enum(struct tn_schema_compiler *c, const json_t *s, uint32_t start)
{
    static const char *const words[] = {
        "enum", "const", "type", "pattern", "format", "minLength", "maxLength", "minimum",
        "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"};
    const json_t *list = json_object_get(s, "enum"), *constant = json_object_get(s, "const");
    uint32_t types, n = 0;
    if (!tn_schema_check_words(c, s, words, TN_COUNT_OF(words),
                                " together with \"enum\" or \"const\"") ||
        !read_types(c, s, &types))
        return false;
    if (list && (constant || !json_is_array(list) || json_array_size(list) == 0))
        return tn_schema_refuse(c, TERN_USAGE, "\"enum\" must be an array of values, not empty, "
                                               "and cannot be combined with \"const\"");
    const size_t n_values = list ? json_array_size(list) : 1;
    for (size_t i = 0; i < n_values; i++) {
        const json_t *value = list ? json_array_get(list, i) : constant;
        bool fits = false;
        if (types && !(types & type_of(value)))
            continue;
        tern_status status = tn_schema_limits_take(&c->limits, s, value, &fits, c->err);
        if (status != TERN_OK)
            return tn_schema_refuse_as_said(c, status);
        if (fits)
            add_value(c, value, start);
        n += fits;
    }
    return n > 0 || tn_schema_refuse(c, TERN_USAGE, "no value of \"enum\" or \"const\" has the "
                                                    "\"type\" and fits its limits");
}

/* ---- arrays ---- */

/* [ item , item ... ]: the required items, then the optional ones; a loop where there is no
 * maximum. */
static void add_items(struct tn_schema_compiler *c, uint32_t start, uint32_t item,
                      struct tn_count_range range)
{
    struct tern_grammar *g = c->g;
    const uint32_t min = range.min, max = range.max;
    const uint32_t close = tn_grammar_state(g), first = tn_grammar_state(g);
    tn_grammar_call(g, tn_grammar_text(g, start, "[", 1), c->rules.space, first);
    tn_grammar_end(g, tn_grammar_text(g, close, "]", 1));
    if (min == 0)
        tn_grammar_empty(g, first, close);
    uint32_t before = first;
    for (uint32_t i = 1; i <= max && !g->failed; i++) {
        const uint32_t after = tn_grammar_state(g);
        tn_grammar_call(g, before, item, after);
        if (i >= min)
            tn_grammar_call(g, after, c->rules.space, close);
        if (i == max)
            return;
        const uint32_t comma = tn_grammar_text(g, after, ",", 1);
        /* the first loop state may also close */
        const bool is_loop = max == TN_NO_MAXIMUM && i >= TN_MAX(min, 2);
        const uint32_t next = is_loop ? before : tn_grammar_state(g);
        tn_grammar_call(g, comma, c->rules.space, next);
        if (is_loop)
            return;
        before = next;
    }
}

static bool compile_array(struct tn_schema_compiler *c, const json_t *s, uint32_t start)
{
    const json_t *items = json_object_get(s, "items");
    struct tn_count_range range;
    tern_status status = tn_schema_count(&range, s, "minItems", "maxItems", MAX_ITEMS, c->err);
    if (status != TERN_OK)
        return tn_schema_refuse_as_said(c, status);
    if (json_object_get(s, "uniqueItems") && !json_is_false(json_object_get(s, "uniqueItems")))
        return tn_schema_refuse(c, TERN_UNSUPPORTED, "\"uniqueItems\" is not supported: a "
                                                     "grammar cannot remember earlier items");
    if (!items && c->is_strict)
        return tn_schema_refuse(c, TERN_USAGE, "an array needs \"items\"");
    const uint32_t item = items ? tn_schema_rule_of(c, items, "items", NULL, TN_NO_PARENT)
                                : c->rules.value;
    add_items(c, start, item, range);
    return true;
}

/* ---- one subschema ---- */

/* Strings, numbers, booleans, null: the shared JSON rules, or a rule with limits. */
static bool compile_simple(struct tn_schema_compiler *c, const json_t *s, uint32_t types,
                           uint32_t start)
{
    const uint32_t simple[N_TYPES] = {[STRING] = c->rules.string, [NUMBER] = c->rules.number,
                                      [INTEGER] = c->rules.integer, [BOOLEAN] = c->rules.boolean,
                                      [NIL] = c->rules.null};
    for (uint32_t i = 0; i < N_TYPES && !c->g->failed; i++) {
        uint32_t rule = simple[i];
        if (!(types & 1u << i) || !rule)
            continue;
        tern_status status =
            tn_schema_limits_find(&c->limits, c->g, s, type_names[i], &rule, c->err);
        if (status != TERN_OK)
            return tn_schema_refuse_as_said(c, status);
        tn_grammar_empty(c->g, start, rule);
    }
    return true;
}

static bool compile_types(struct tn_schema_compiler *c, const json_t *s, uint32_t start)
{
    static const char *const words[] = {
        "type", "properties", "required", "additionalProperties", "patternProperties",
        "propertyNames", "items", "minItems", "maxItems", "uniqueItems", "pattern",
        "format", "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum",
        "exclusiveMaximum", "multipleOf"};
    uint32_t types;
    if (!tn_schema_check_words(c, s, words, TN_COUNT_OF(words), "") || !read_types(c, s, &types))
        return false;
    if (types & 1u << NUMBER) /* integers are numbers */
        types &= ~(1u << INTEGER);
    if (!types && !c->is_strict &&
        (json_object_get(s, "properties") || json_object_get(s, "patternProperties")))
        types = 1u << OBJECT;
    if (!types && !c->is_strict && tn_schema_says_nothing(s)) {
        tn_grammar_empty(c->g, start, c->rules.value);
        return true;
    }
    if (!types)
        return tn_schema_refuse(c, TERN_USAGE, "\"type\" is missing");
    if (!compile_simple(c, s, types, start))
        return false;
    if (types & 1u << OBJECT && !tn_schema_object(c, s, start))
        return false;
    return !(types & 1u << ARRAY) || compile_array(c, s, start);
}

static bool compile(struct tn_schema_compiler *c, const json_t *s, uint32_t start);

/* Merging removes "allOf", so the recursion ends. */
static bool compile_all_of(struct tn_schema_compiler *c, const json_t *s, uint32_t start)
{
    json_t *merged;
    tern_status status = tn_schema_merge(&merged, s, c->root, &c->limits.steps, c->err);
    if (status != TERN_OK)
        return tn_schema_refuse_as_said(c, status);
    return !tn_schema_keep(c, merged) || compile(c, merged, start);
}

static bool compile(struct tn_schema_compiler *c, const json_t *s, uint32_t start)
{
    if (json_is_true(s) && !c->is_strict) {
        tn_grammar_empty(c->g, start, c->rules.value);
        return true;
    }
    if (!json_is_object(s))
        return tn_schema_refuse(c, TERN_USAGE, "a schema must be an object");
    if (json_object_get(s, "allOf"))
        return compile_all_of(c, s, start);
    if (json_object_get(s, "$ref"))
        return compile_reference(c, s, start);
    if (json_object_get(s, "anyOf"))
        return compile_alternatives(c, s, "anyOf", start);
    if (json_object_get(s, "oneOf"))
        return compile_alternatives(c, s, "oneOf", start);
    if (json_object_get(s, "enum") || json_object_get(s, "const"))
        return compile_enum(c, s, start);
    return compile_types(c, s, start);
}

/* ---- whole schema ---- */

/* The subschema that owns a state.  States of a rule follow its start state, except the start
 * states of rules that it refers to. */
static uint32_t subschema_at(const struct tn_schema_list *list, uint32_t state)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < list->n; i++)
        if (list->items[i].start == state)
            found = i;
    return found;
}

static tern_status finish(struct tn_schema_compiler *c)
{
    uint32_t state = c->g->start;
    if (c->g->failed == TERN_LIMIT)
        tn_schema_refuse(c, TERN_LIMIT,
                         "the schema is too large: more than %u states, %u edges or %u schemas",
                         TN_GRAMMAR_MAX_STATES, TN_GRAMMAR_MAX_EDGES, TN_MAX_SUBSCHEMAS);
    else if (c->g->failed)
        c->status = tn_fail(c->err, TERN_MEMORY, "no memory for a grammar");
    else
        c->status = tn_grammar_finish(c->g, &state, c->err);
    if (!c->g->failed && c->status == TERN_LIMIT) {
        struct tn_buf path = {0};
        tn_schema_path(&path, &c->list, subschema_at(&c->list, state));
        tn_fail_prefix(c->err, tn_buf_text(&path));
        tn_buf_fini(&path);
    }
    return c->status;
}

static tern_status compile_all(struct tn_schema_compiler *c)
{
    struct tern_grammar *g = c->g;
    tn_grammar_state(g); /* state 0 means "none" */
    tn_grammar_add_json(g, &c->rules);
    g->start = tn_grammar_state(g);
    const struct tn_subschema root = {.json = c->root, .parent = TN_NO_PARENT, .keyword = "#",
                                      .index = TN_NO_PARENT};
    const uint32_t begin = tn_grammar_state(g), end = tn_grammar_state(g);
    tn_grammar_call(g, tn_grammar_text(g, g->start, c->before, strlen(c->before)),
                    c->rules.space, begin);
    const uint32_t i_root = tn_schema_list_add(&c->list, g, &root);
    const uint32_t value = g->failed ? 0 : c->list.items[i_root].start;
    if (c->after[0])
        tn_grammar_call(g, begin, value, end);
    else
        tn_grammar_empty(g, begin, value);
    tn_grammar_end(g, tn_grammar_text(g, end, c->after, strlen(c->after)));
    for (c->at = 0; c->at < c->list.n && !g->failed; c->at++) {
        const struct tn_subschema s = c->list.items[c->at];
        if (!compile(c, s.json, s.start))
            return c->status;
    }
    c->at = c->at > 0 ? c->at - 1 : 0;
    return finish(c);
}

tern_status tern_grammar_from_schema_between(struct tern_grammar **out, const char *before,
                                             const char *schema, size_t n_bytes, const char *after,
                                             uint32_t flags, struct tern_error *err)
{
    json_t *root = NULL;
    struct tn_schema_compiler c = {.before = before, .after = after,
                         .is_strict = flags & TERN_GRAMMAR_STRICT,
                         .limits.steps = TERN_GRAMMAR_MAX_STEPS, .err = err};
    *out = NULL;
    if (n_bytes > TERN_GRAMMAR_MAX_SCHEMA)
        return tn_fail(err, TERN_LIMIT, "#: a schema of %zu bytes; the limit is %u", n_bytes,
                       TERN_GRAMMAR_MAX_SCHEMA);
    tern_status status = tn_json_load(&root, "#", schema, n_bytes, JSON_REJECT_DUPLICATES, err);
    if (status != TERN_OK)
        return status;
    c.root = root;
    c.g = tn_alloc_zeroed(1, sizeof *c.g);
    status = c.g ? compile_all(&c) : tn_fail(err, TERN_MEMORY, "no memory for a grammar");
    if (status == TERN_OK)
        *out = c.g;
    else
        tern_grammar_free(c.g);
    tn_schema_list_fini(&c.list);
    tn_schema_limits_fini(&c.limits);
    json_decref(c.made);
    json_decref(root);
    return status;
}

tern_status tern_grammar_from_schema(struct tern_grammar **out, const char *schema, size_t n_bytes,
                                     uint32_t flags, struct tern_error *err)
{
    return tern_grammar_from_schema_between(out, "", schema, n_bytes, "", flags, err);
}
