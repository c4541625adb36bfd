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
#include "grammar/preamble_rule.h"
#include "grammar/schema_array.h"
#include "grammar/schema_enum.h"
#include "grammar/schema_merge.h"
#include "grammar/schema_object.h"
#include "grammar/schema_tags.h"

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

static bool compile_form(struct tn_schema_compiler *c, const struct tn_subschema *s)
{
    switch (s->form) {
    case TN_FORM_TAGS:
        return tn_schema_object_tags(c, s->json, s->start);
    case TN_FORM_VALUE:
        return tn_schema_tag_value(c, s->json, s->start);
    default:
        return compile(c, s->json, s->start);
    }
}

/* ---- whole schema ---- */

/* The subschema whose rule starts at a state, or next to it, where its part starts. */
static uint32_t subschema_at(const struct tn_schema_list *list, uint32_t state)
{
    for (uint32_t i = 0; i < list->n; i++)
        if (list->items[i].start == state || list->items[i].start == state + 1)
            return i;
    return 0;
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
        const uint32_t i = subschema_at(&c->list, state);
        tn_schema_path(&path, &c->list, i);
        tn_fail_prefix(c->err, tn_buf_text(&path));
        c->list.part = c->list.items[i].part;
        tn_buf_fini(&path);
    }
    return c->status;
}

/* Parses the schema of a part.  The compiler owns it; NULL: c->status is set, or the grammar has
 * failed. */
static const json_t *load(struct tn_schema_compiler *c, const struct tern_grammar_part *part)
{
    json_t *root;
    if (part->n_bytes > TERN_GRAMMAR_MAX_SCHEMA) {
        c->status = tn_fail(c->err, TERN_LIMIT, "#: a schema of %zu bytes; the limit is %u",
                            part->n_bytes, TERN_GRAMMAR_MAX_SCHEMA);
        return NULL;
    }
    c->status = tn_json_load(&root, "#", part->schema, part->n_bytes, JSON_REJECT_DUPLICATES,
                             c->err);
    if (c->status != TERN_OK)
        return NULL;
    return tn_schema_keep(c, root) ? root : NULL;
}

/* Adds the texts of a part, which starts at `first`, around the rule of its schema. */
static void add_texts(const struct tn_schema_compiler *c, const struct tern_grammar_part *part,
                      uint32_t first, uint32_t rule)
{
    struct tern_grammar *g = c->g;
    const uint32_t value = tn_grammar_state(g);
    const uint32_t before = tn_grammar_text(g, first, part->before, strlen(part->before));
    tn_grammar_empty(g, g->parts, first);
    if (part->flags & TERN_GRAMMAR_TAGS)
        tn_grammar_empty(g, before, value);
    else
        tn_grammar_call(g, before, c->rules.space, value);
    if (!part->after[0] && !part->separator) {
        tn_grammar_empty(g, value, rule);
        return;
    }
    const uint32_t end = tn_grammar_state(g);
    tn_grammar_call(g, value, rule, end);
    const uint32_t last = tn_grammar_text(g, end, part->after, strlen(part->after));
    tn_grammar_end(g, last);
    if (part->separator) {
        tn_grammar_empty(g, tn_grammar_text(g, last, part->separator, strlen(part->separator)),
                         c->again);
        tn_grammar_empty(g, c->again, first);
    }
}

/* Compiles a part with all its subschemas, before the next part adds its own. */
static bool compile_part(struct tn_schema_compiler *c, const struct tern_grammar_part *part)
{
    const json_t *root = load(c, part);
    if (!root)
        return c->g->failed != TERN_OK; /* which finish reports */
    const bool has_tags = part->flags & TERN_GRAMMAR_TAGS;
    const struct tn_subschema top = {.json = root, .form = has_tags ? TN_FORM_TAGS : TN_FORM_JSON,
                                     .parent = TN_NO_PARENT, .keyword = "#",
                                     .index = TN_NO_PARENT};
    c->root = root;
    c->is_strict = part->flags & TERN_GRAMMAR_STRICT;
    const uint32_t first = tn_grammar_state(c->g); /* directly before the start of its schema */
    const uint32_t i_top = tn_schema_list_add(&c->list, c->g, &top);
    if (!c->g->failed)
        add_texts(c, part, first, c->list.items[i_top].start);
    for (; c->at < c->list.n && !c->g->failed; c->at++) {
        const struct tn_subschema s = c->list.items[c->at];
        if (!compile_form(c, &s))
            return false;
    }
    return true;
}

static tern_status compile_parts(struct tn_schema_compiler *c,
                                 const struct tern_grammar_part *parts, size_t n,
                                 const struct tern_grammar_preamble *preamble)
{
    struct tern_grammar *g = c->g;
    tn_grammar_state(g); /* state 0 means "none" */
    tn_grammar_add_json(g, &c->rules);
    tn_grammar_begin(g, preamble);
    c->again = tn_grammar_state(g);
    for (size_t i = 0; i < n && !g->failed; i++) {
        c->list.part = (uint32_t)i;
        if (!compile_part(c, &parts[i]))
            return c->status;
    }
    c->at = c->at > 0 ? c->at - 1 : 0;
    return finish(c);
}

tern_status tern_grammar_from_parts(struct tern_grammar **out,
                                    const struct tern_grammar_part *parts, size_t n,
                                    const struct tern_grammar_preamble *preamble,
                                    size_t *i_failed, struct tern_error *err)
{
    struct tn_schema_compiler c = {.limits.steps = TERN_GRAMMAR_MAX_STEPS, .err = err};
    *out = NULL;
    c.g = tn_alloc_zeroed(1, sizeof *c.g);
    tern_status status = c.g ? compile_parts(&c, parts, n, preamble)
                             : tn_fail(err, TERN_MEMORY, "no memory for a grammar");
    if (status == TERN_OK)
        *out = c.g;
    else
        tern_grammar_free(c.g);
    if (i_failed)
        *i_failed = c.list.part;
    tn_schema_list_fini(&c.list);
    tn_schema_limits_fini(&c.limits);
    json_decref(c.made);
    return status;
}

tern_status tern_grammar_from_schema(struct tern_grammar **out, const char *schema, size_t n_bytes,
                                     uint32_t flags, struct tern_error *err)
{
    const struct tern_grammar_part part = {.before = "", .after = "", .schema = schema,
                                           .n_bytes = n_bytes, .flags = flags};
    return tern_grammar_from_parts(out, &part, 1, NULL, NULL, err);
}

tern_status tern_grammar_json_object(struct tern_grammar **out, struct tern_error *err)
{
    static const char schema[] = "{\"type\":\"object\"}";
    return tern_grammar_from_schema(out, schema, sizeof schema - 1, 0, err);
}
