/* SPDX-License-Identifier: MIT
 *
 * Compiles the values between tags.
 *
 *   any string      text without a closing tag, then the tag, with or without a line feed before it
 *   limited string  raw text or one of an enumeration, a line feed, the tag
 *   anything else   JSON, a line feed, the tag
 *
 * schema.c compiles the schemas of values that are JSON.
 */
#include "grammar/schema_tags.h"

#include <string.h>

#include "base/compiler.h"
#include "base/json_object.h"
#include "grammar/schema_enum.h"
#include "grammar/schema_merge.h"
#include "grammar/string_rule.h"

/* Texts that end a value or its call wherever they are. */
static const char *const closing_tags[] = {TN_TAG_CLOSE, "</tool_call>"};

/* References that are followed without a value in between. */
#define MAX_REFERENCES 32u
/* References can multiply the schemas that are visited. */
#define STEPS_OF_A_VISIT 16u

/* ---- types ---- */

/* Is `type` the type, or one of the types, that "type" names? */
static bool names_type(const json_t *names, const char *type)
{
    if (json_is_string(names))
        return strcmp(json_string_value(names), type) == 0;
    return tn_json_list_has(names, type);
}

/* Charges a visit, and finding the schema that a reference (or NULL) names.  false: too few steps
 * are left; then none are. */
static bool spend(uint64_t *steps, const char *reference)
{
    const uint64_t n = STEPS_OF_A_VISIT + (reference ? strlen(reference) / 4 : 0);
    const bool has_steps = *steps > n;
    *steps -= has_steps ? n : *steps;
    return has_steps;
}

/* Recursion is bounded by `n_left` references and TN_JSON_MAX_DEPTH. */
static bool allows(const json_t *s, const json_t *root, const char *type, uint32_t n_left,
                   uint64_t *steps)
{
    static const char *const choices[] = {"anyOf", "oneOf", "allOf"};
    const char *reference = json_string_value(json_object_get(s, "$ref"));
    const json_t *value = json_object_get(s, "enum");
    const bool is_text = strcmp(type, "string") == 0;
    if (!spend(steps, reference))
        return false;
    if (reference)
        return n_left > 0 &&
               allows(tn_schema_find(root, reference), root, type, n_left - 1, steps);
    if (json_object_get(s, "type"))
        return names_type(json_object_get(s, "type"), type);
    for (size_t i = 0; i < json_array_size(value); i++)
        if (is_text ? json_is_string(json_array_get(value, i))
                    : json_is_null(json_array_get(value, i)))
            return true;
    for (size_t k = 0; k < TN_COUNT_OF(choices); k++) {
        value = json_object_get(s, choices[k]);
        for (size_t i = 0; i < json_array_size(value); i++)
            if (allows(json_array_get(value, i), root, type, n_left, steps))
                return true;
    }
    return is_text && json_is_string(json_object_get(s, "const"));
}

bool tn_schema_allows(const json_t *s, const json_t *root, const char *type, uint64_t *steps)
{
    return allows(s, root, type, MAX_REFERENCES, steps);
}

/* The same in the compiler.  false after the last step, which `visit` refuses. */
static bool is_allowed(struct tn_schema_compiler *c, const json_t *s, const char *type)
{
    return tn_schema_allows(s, c->root, type, &c->limits.steps);
}

static bool visit(struct tn_schema_compiler *c)
{
    return spend(&c->limits.steps, NULL) ||
           tn_schema_refuse(c, TERN_LIMIT, "the schema is too complex: it takes too many steps");
}

/* ---- any text ---- */

/* Are there n bytes that tags before tag p share with it? */
static bool is_shared(size_t p, size_t n)
{
    return p > 0 && strncmp(closing_tags[0], closing_tags[p], n) == 0;
}

/* Adds the edges after n bytes of tag p that do not continue a tag.  Tags have no '<' but their
 * first byte, so another character leads to the start, or to the state after '<'. */
static void leave_tag(struct tern_grammar *g, size_t p, size_t n, uint32_t start)
{
    const uint32_t state = tn_grammar_text(g, start, closing_tags[p], n);
    const uint32_t opened = tn_grammar_text(g, start, "<", 1);
    char except[4] = "<";
    size_t n_except = 1;
    for (size_t k = 0; k < TN_COUNT_OF(closing_tags) && n > 0; k++)
        if (strncmp(closing_tags[k], closing_tags[p], n) == 0 &&
            !strchr(except, closing_tags[k][n])) {
            const char byte = closing_tags[k][n];
            const bool is_first = byte < except[0];
            memmove(except + is_first, except, n_except);
            except[is_first ? 0 : n_except] = byte;
            n_except++;
        }
    tn_grammar_end(g, state);
    tn_string_characters(g, state, except, start);
    if (n > 0)
        tn_grammar_bytes(g, state, '<', '<', opened);
}

/* The rule for text without closing tags, in well-formed UTF-8. */
static uint32_t text_rule(struct tn_schema_compiler *c)
{
    struct tern_grammar *g = c->g;
    if (c->text)
        return c->text;
    c->text = tn_grammar_state(g);
    for (size_t p = 0; p < TN_COUNT_OF(closing_tags); p++)
        (void)tn_grammar_text(g, c->text, closing_tags[p], strlen(closing_tags[p]) - 1);
    for (size_t p = 0; p < TN_COUNT_OF(closing_tags); p++)
        for (size_t n = 0; n < strlen(closing_tags[p]) && !g->failed; n++)
            if (!is_shared(p, n))
                leave_tag(g, p, n, c->text);
    return c->text;
}

/* ---- strings ---- */

/* A value between its tags. */
struct value {
    uint32_t start;
    uint32_t line;  /* state before the line feed */
    uint32_t close; /* state before the closing tag */
    uint32_t n_references;
    bool allows_null;
};

static void add_text(struct tn_schema_compiler *c, const struct value *v)
{
    tn_grammar_call(c->g, v->start, text_rule(c), v->close);
}

static void add_word(struct tn_schema_compiler *c, const struct value *v, const char *word)
{
    tn_grammar_empty(c->g, tn_grammar_text(c->g, v->start, word, strlen(word)), v->line);
}

static bool add_listed(struct tn_schema_compiler *c, const json_t *s, const struct value *v)
{
    const json_t *values = tn_schema_enum_values(c, s);
    for (size_t i = 0; i < json_array_size(values); i++) {
        const json_t *value = json_array_get(values, i);
        const char *text = json_string_value(value);
        if (json_is_null(value) && v->allows_null)
            add_word(c, v, "null");
        else if (text && !strstr(text, closing_tags[0]) && !strstr(text, closing_tags[1]))
            add_word(c, v, text);
    }
    return values || c->g->failed;
}

static bool add_typed(struct tn_schema_compiler *c, const json_t *s, const struct value *v)
{
    static const char *const words[] = {"type", "pattern", "format", "minLength", "maxLength"};
    uint32_t types, rule = 0;
    if (!tn_schema_check_words(c, s, words, TN_COUNT_OF(words), " in tags") ||
        !tn_schema_read_types(c, s, &types))
        return false;
    tern_status status =
        tn_schema_limits_find(&c->limits, c->g, s, TN_RAW_STRING, &rule, c->err);
    if (status != TERN_OK)
        return tn_schema_refuse_as_said(c, status);
    if (rule)
        tn_grammar_call(c->g, v->start, rule, v->line);
    else
        add_text(c, v);
    if (rule && types & 1u << TN_TYPE_NULL)
        add_word(c, v, "null");
    return true;
}

static bool add_string(struct tn_schema_compiler *c, const json_t *s, struct value v);

/* Adds those alternatives that are strings or null. */
static bool add_alternatives(struct tn_schema_compiler *c, const json_t *s, const char *word,
                             const struct value *v)
{
    const json_t *list = json_object_get(s, word);
    if (!tn_schema_check_words(c, s, &word, 1, " in tags"))
        return false;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        const bool is_text = is_allowed(c, one, "string");
        const bool is_null = !is_text && is_allowed(c, one, "null");
        if (!visit(c) || (is_text && !add_string(c, one, *v)))
            return false;
        if (is_null)
            add_word(c, v, "null");
    }
    return true;
}

static bool add_merged(struct tn_schema_compiler *c, const json_t *s, const struct value *v)
{
    json_t *merged;
    tern_status status = tn_schema_merge(&merged, s, c->root, &c->limits.steps, c->err);
    if (status != TERN_OK)
        return tn_schema_refuse_as_said(c, status);
    return !tn_schema_keep(c, merged) || add_string(c, merged, *v);
}

static bool add_reference(struct tn_schema_compiler *c, const json_t *s, struct value v)
{
    static const char *const words[] = {"$ref"};
    if (!tn_schema_check_words(c, s, words, 1, " together with \"$ref\""))
        return false;
    if (v.n_references++ == MAX_REFERENCES)
        return tn_schema_refuse(c, TERN_LIMIT, "refers to itself without a value in between");
    return add_string(c, tn_schema_find(c->root, json_string_value(json_object_get(s, "$ref"))), v);
}

/* Adds the strings of a schema that allows some, and null. */
static bool add_string(struct tn_schema_compiler *c, const json_t *s, struct value v)
{
    if (json_object_get(s, "allOf"))
        return add_merged(c, s, &v);
    if (json_object_get(s, "$ref"))
        return add_reference(c, s, v);
    if (json_object_get(s, "anyOf"))
        return add_alternatives(c, s, "anyOf", &v);
    if (json_object_get(s, "oneOf"))
        return add_alternatives(c, s, "oneOf", &v);
    if (json_object_get(s, "enum") || json_object_get(s, "const"))
        return add_listed(c, s, &v);
    return add_typed(c, s, &v);
}

/* ---- values ---- */

/* JSON, where templates of this form may have taught Python's words. */
static void add_json(struct tn_schema_compiler *c, const json_t *s, const struct value *v)
{
    struct tn_subschema value = c->list.items[c->at];
    value.json = s;
    value.form = TN_FORM_JSON;
    const uint32_t i = tn_schema_list_add(&c->list, c->g, &value);
    if (!c->g->failed)
        tn_grammar_call(c->g, v->start, c->list.items[i].start, v->line);
    if (names_type(json_object_get(s, "type"), "boolean") && !json_object_get(s, "enum") &&
        !json_object_get(s, "const")) {
        add_word(c, v, "True");
        add_word(c, v, "False");
    }
}

bool tn_schema_tag_value(struct tn_schema_compiler *c, const json_t *s, uint32_t start)
{
    struct tern_grammar *g = c->g;
    const struct value v = {.start = start, .line = tn_grammar_state(g),
                            .close = tn_grammar_state(g),
                            .allows_null = is_allowed(c, s, "null")};
    const bool is_text = is_allowed(c, s, "string");
    const uint32_t closed = tn_grammar_text(g, v.close, TN_TAG_CLOSE "\n", sizeof TN_TAG_CLOSE);
    tn_grammar_bytes(g, v.line, '\n', '\n', v.close);
    tn_grammar_end(g, closed);
    if (!visit(c))
        return false;
    if (is_text)
        return add_string(c, s, v);
    if (!c->is_strict && (json_is_true(s) || (json_is_object(s) && tn_schema_says_nothing(s))))
        add_text(c, &v);
    else
        add_json(c, s, &v);
    return true;
}
