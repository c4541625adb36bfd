/* SPDX-License-Identifier: MIT
 *
 * Compiles schemas that list their values, and reads "type".
 *
 * A listed value is spelled out; keywords for strings and numbers next to the list filter it.
 */
#include "grammar/schema_enum.h"

#include <string.h>

#include "base/compiler.h"
#include "base/json_dump.h"

/* ---- types ---- */

const char *const tn_schema_type_names[TN_N_TYPES] = {"object",  "array",   "string", "number",
                                                      "integer", "boolean", "null"};

/* Adds the bit of a type. */
static bool add_type(struct tn_schema_compiler *c, const json_t *name, uint32_t *types)
{
    const char *text = json_string_value(name);
    for (uint32_t i = 0; text && i < TN_N_TYPES; i++)
        if (strcmp(text, tn_schema_type_names[i]) == 0) {
            *types |= 1u << i;
            return true;
        }
    return tn_schema_refuse(c, TERN_USAGE, "\"type\" must be one or several of object, array, "
                                           "string, number, integer, boolean, null");
}

bool tn_schema_read_types(struct tn_schema_compiler *c, const json_t *s, uint32_t *types)
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
        return 1u << TN_TYPE_OBJECT;
    case JSON_ARRAY:
        return 1u << TN_TYPE_ARRAY;
    case JSON_STRING:
        return 1u << TN_TYPE_STRING;
    case JSON_INTEGER:
        return 1u << TN_TYPE_INTEGER | 1u << TN_TYPE_NUMBER;
    case JSON_REAL:
        return 1u << TN_TYPE_NUMBER;
    case JSON_NULL:
        return 1u << TN_TYPE_NULL;
    default:
        return 1u << TN_TYPE_BOOLEAN;
    }
}

/* ---- values ---- */

void tn_schema_add_value(struct tn_schema_compiler *c, const json_t *value, uint32_t start)
{
    struct tn_buf text = {0};
    if (!tn_json_dump(&text, value))
        c->g->failed = c->g->failed ? c->g->failed : TERN_MEMORY;
    else
        tn_grammar_end(c->g, tn_grammar_text(c->g, start, text.data, text.n_bytes));
    tn_buf_fini(&text);
}

/* Appends the values of the list that have one of the types and fit the keywords of s. */
static bool filter(struct tn_schema_compiler *c, const json_t *s, uint32_t types,
                   const json_t *list, json_t *out)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *value = json_array_get(list, i);
        bool fits = false;
        if (types && !(types & type_of(value)))
            continue;
        tern_status status = tn_schema_limits_take(&c->limits, s, value, &fits, c->err);
        if (status != TERN_OK)
            return tn_schema_refuse_as_said(c, status);
        if (fits && json_array_append(out, value) != 0)
            c->g->failed = TERN_MEMORY;
    }
    return c->g->failed || json_array_size(out) > 0 ||
           tn_schema_refuse(c, TERN_USAGE, "no value of \"enum\" or \"const\" has the \"type\" and "
                                           "fits its limits");
}

const json_t *tn_schema_enum_values(struct tn_schema_compiler *c, const json_t *s)
{
    static const char *const words[] = {
        "enum", "const", "type", "pattern", "format", "minLength", "maxLength", "minimum",
        "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"};
    json_t *list = json_object_get(s, "enum"), *constant = json_object_get(s, "const");
    uint32_t types;
    if (!tn_schema_check_words(c, s, words, TN_COUNT_OF(words),
                               " together with \"enum\" or \"const\"") ||
        !tn_schema_read_types(c, s, &types))
        return NULL;
    if (list && (constant || !json_is_array(list) || json_array_size(list) == 0)) {
        tn_schema_refuse(c, TERN_USAGE, "\"enum\" must be an array of values, not empty, and "
                                        "cannot be combined with \"const\"");
        return NULL;
    }
    json_t *values = json_array(), *all = list ? json_incref(list) : json_pack("[O]", constant);
    const bool is_good = tn_schema_keep(c, values) && all && filter(c, s, types, all, values);
    if (!all)
        c->g->failed = TERN_MEMORY;
    json_decref(all);
    return is_good ? values : NULL;
}

bool tn_schema_enum(struct tn_schema_compiler *c, const json_t *s, uint32_t start)
{
    const json_t *values = tn_schema_enum_values(c, s);
    for (size_t i = 0; i < json_array_size(values); i++)
        tn_schema_add_value(c, json_array_get(values, i), start);
    return values || c->g->failed;
}
