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
#include "base/json_load.h"
#include "grammar/schema_array.h"
#include "grammar/schema_enum.h"
#include "grammar/schema_merge.h"
#include "grammar/schema_object.h"

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

/* ---- one subschema ---- */

/* Strings, numbers, booleans, null: the shared JSON rules, or a rule with limits. */
static bool compile_simple(struct tn_schema_compiler *c, const json_t *s, uint32_t types,
                           uint32_t start)
{
    const uint32_t simple[TN_N_TYPES] = {
        [TN_TYPE_STRING] = c->rules.string, [TN_TYPE_NUMBER] = c->rules.number,
        [TN_TYPE_INTEGER] = c->rules.integer, [TN_TYPE_BOOLEAN] = c->rules.boolean,
        [TN_TYPE_NULL] = c->rules.null};
    for (uint32_t i = 0; i < TN_N_TYPES && !c->g->failed; i++) {
        uint32_t rule = simple[i];
        if (!(types & 1u << i) || !rule)
            continue;
        tern_status status =
            tn_schema_limits_find(&c->limits, c->g, s, tn_schema_type_names[i], &rule, c->err);
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
        "propertyNames", "items", "prefixItems", "additionalItems", "minItems", "maxItems",
        "uniqueItems", "pattern", "format", "minLength", "maxLength", "minimum", "maximum",
        "exclusiveMinimum", "exclusiveMaximum", "multipleOf"};
    uint32_t types;
    if (!tn_schema_check_words(c, s, words, TN_COUNT_OF(words), "") ||
        !tn_schema_read_types(c, s, &types))
        return false;
    if (types & 1u << TN_TYPE_NUMBER) /* integers are numbers */
        types &= ~(1u << TN_TYPE_INTEGER);
    if (!types && !c->is_strict &&
        (json_object_get(s, "properties") || json_object_get(s, "patternProperties")))
        types = 1u << TN_TYPE_OBJECT;
    if (!types && !c->is_strict && tn_schema_says_nothing(s)) {
        tn_grammar_empty(c->g, start, c->rules.value);
        return true;
    }
    if (!types)
        return tn_schema_refuse(c, TERN_USAGE, "\"type\" is missing");
    if (!compile_simple(c, s, types, start))
        return false;
    if (types & 1u << TN_TYPE_OBJECT && !tn_schema_object(c, s, start))
        return false;
    return !(types & 1u << TN_TYPE_ARRAY) || tn_schema_array(c, s, start);
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
        return tn_schema_enum(c, s, start);
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
