/* SPDX-License-Identifier: MIT
 *
 * Finds or builds the rule for a type with limits, keyed by the text of those limits.
 *
 * Schemas that libraries generate repeat the same limits many times; each set is compiled once.
 */
#include "grammar/schema_limits.h"

#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/error.h"
#include "grammar/schema_number.h"
#include "grammar/schema_string.h"

static const char *const of_strings[] = {"pattern", "format", "minLength", "maxLength"};
static const char *const of_numbers[] = {"minimum", "maximum", "exclusiveMinimum",
                                         "exclusiveMaximum", "multipleOf"};

struct words {
    const char *const *list;
    size_t n;
};

static struct words words_of(const char *type)
{
    if (strcmp(type, "string") == 0 || strcmp(type, TN_RAW_STRING) == 0)
        return (struct words){of_strings, TN_COUNT_OF(of_strings)};
    if (strcmp(type, "number") == 0 || strcmp(type, "integer") == 0)
        return (struct words){of_numbers, TN_COUNT_OF(of_numbers)};
    return (struct words){NULL, 0};
}

static bool has_one_of(const json_t *s, struct words words)
{
    for (size_t i = 0; i < words.n; i++)
        if (json_object_get(s, words.list[i]))
            return true;
    return false;
}

/* A key made of the type and the schema's limiting keywords; NULL: out of memory. */
static char *text_of(const json_t *s, const char *type, struct words words)
{
    json_t *array = json_pack("[s]", type);
    bool is_good = array != NULL;
    for (size_t i = 0; i < words.n && is_good; i++) {
        json_t *value = json_object_get(s, words.list[i]);
        is_good = json_array_append_new(array, value ? json_incref(value) : json_null()) == 0;
    }
    char *text = is_good ? json_dumps(array, JSON_COMPACT) : NULL;
    json_decref(array);
    return text;
}

static tern_status make_rule(struct tn_schema_limits *limits, struct tern_grammar *g,
                             const json_t *s, const char *type, uint32_t rule,
                             struct tern_error *err)
{
    const bool is_raw = strcmp(type, TN_RAW_STRING) == 0;
    if (is_raw || strcmp(type, "string") == 0)
        return tn_schema_string(g, is_raw, rule, s, &limits->steps, err);
    return tn_schema_number(g, rule, s, strcmp(type, "integer") == 0, &limits->steps, err);
}

tern_status tn_schema_limits_find(struct tn_schema_limits *limits, struct tern_grammar *g,
                                  const json_t *s, const char *type, uint32_t *rule,
                                  struct tern_error *err)
{
    const struct words words = words_of(type);
    tern_status status = tn_ok(err);
    if (!has_one_of(s, words))
        return status;
    char *text = text_of(s, type, words);
    if (!limits->rules)
        limits->rules = json_object();
    const json_t *known = text ? json_object_get(limits->rules, text) : NULL;
    if (known) {
        *rule = (uint32_t)json_integer_value(known);
    } else {
        *rule = tn_grammar_state(g);
        if (!text || json_object_set_new(limits->rules, text, json_integer(*rule)) != 0)
            status = tn_fail(err, TERN_MEMORY, "no memory for a grammar");
        else if (!g->failed)
            status = make_rule(limits, g, s, type, *rule, err);
    }
    tn_free(text);
    return status;
}

tern_status tn_schema_limits_take(struct tn_schema_limits *limits, const json_t *s,
                                  const json_t *value, bool *fits, struct tern_error *err)
{
    *fits = true;
    if (json_is_string(value) && has_one_of(s, words_of("string")))
        return tn_schema_string_takes(fits, s, json_string_value(value), &limits->steps, err);
    if (json_is_number(value) && has_one_of(s, words_of("number")))
        return tn_schema_number_takes(fits, s, value, err);
    return tn_ok(err);
}

void tn_schema_limits_fini(struct tn_schema_limits *limits)
{
    json_decref(limits->rules);
}
