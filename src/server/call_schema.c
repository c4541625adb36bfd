/* SPDX-License-Identifier: MIT
 *
 * Builds the JSON schema of a tool call from the schemas of the tools' arguments.
 *
 * References inside a tool's schema are rebased, because the schema moves to a new path.
 */
#include "server/call_schema.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/compiler.h"

/* ---- references ---- */

/* Rebases "#/$defs/a" to PREFIX "/$defs/a"; other references stay and are refused later. */
static bool move_reference(json_t *reference, const char *prefix)
{
    struct tn_buf text = {0};
    if (json_string_value(reference)[0] != '#')
        return true;
    tn_buf_printf(&text, "%s%s", prefix, json_string_value(reference) + 1);
    const bool is_good = !text.failed && json_string_set(reference, text.data) == 0;
    tn_buf_fini(&text);
    return is_good;
}

enum below { BELOW_VALUE, BELOW_SCHEMAS, BELOW_NAMED_SCHEMAS };

/* What a keyword's value contains: a plain value, one or several schemas, or named schemas. */
static enum below below(const char *word)
{
    static const char *const values[] = {"const", "default", "enum", "example", "examples"};
    static const char *const named[] = {"$defs", "definitions", "patternProperties", "properties"};
    for (size_t i = 0; i < TN_COUNT_OF(values); i++)
        if (strcmp(word, values[i]) == 0)
            return BELOW_VALUE;
    for (size_t i = 0; i < TN_COUNT_OF(named); i++)
        if (strcmp(word, named[i]) == 0)
            return BELOW_NAMED_SCHEMAS;
    return BELOW_SCHEMAS;
}

static bool move_references(json_t *schema, const char *prefix);

/* Rebases a schema, each schema of an array or, if has_names, each member of an object. */
static bool move_all(json_t *schemas, bool has_names, const char *prefix)
{
    bool is_good = true;
    const char *name;
    json_t *schema;
    size_t i;
    if (json_is_object(schemas) && has_names) {
        json_object_foreach(schemas, name, schema)
            is_good = is_good && move_references(schema, prefix);
    } else if (json_is_array(schemas)) {
        json_array_foreach(schemas, i, schema)
            is_good = is_good && move_references(schema, prefix);
    } else {
        is_good = move_references(schemas, prefix);
    }
    return is_good;
}

/* Recursion is bounded by TN_JSON_MAX_DEPTH, the depth of a request's JSON. */
static bool move_references(json_t *schema, const char *prefix)
{
    bool is_good = true;
    const char *word;
    json_t *value;
    json_object_foreach(schema, word, value) {
        const enum below what = below(word);
        if (strcmp(word, "$ref") == 0 && json_is_string(value))
            is_good = is_good && move_reference(value, prefix);
        else if (what != BELOW_VALUE)
            is_good = is_good && move_all(value, what == BELOW_NAMED_SCHEMAS, prefix);
    }
    return is_good;
}

/* ---- tool calls ---- */

/* The rebased schema of a function's arguments, for element i of the list; NULL: out of memory.  A
 * function that describes none has none. */
static json_t *arguments_schema(const json_t *function, const char *arguments, size_t i)
{
    const json_t *parameters = json_object_get(function, "parameters");
    char prefix[64];
    if (!json_is_object(parameters) || json_object_size(parameters) == 0)
        return json_pack("{s:s, s:{}}", "type", "object", "properties");
    snprintf(prefix, sizeof prefix, "#/anyOf/%zu/properties/%s", i, arguments);
    json_t *moved = json_deep_copy(parameters);
    if (moved && !move_references(moved, prefix)) {
        json_decref(moved);
        return NULL;
    }
    return moved;
}

static json_t *call_schema(const json_t *function, const char *arguments, size_t i)
{
    return json_pack("{s:s, s:{s:{s:O}, s:o}, s:[s, s], s:b}", "type", "object", "properties",
                     "name", "const", json_object_get(function, "name"), arguments,
                     arguments_schema(function, arguments, i), "required", "name", arguments,
                     "additionalProperties", 0);
}

json_t *tn_calls_schema(const json_t *tools, const char *name, const char *arguments)
{
    json_t *list = json_array();
    const json_t *tool;
    size_t i;
    json_array_foreach(tools, i, tool) {
        const json_t *function = json_object_get(tool, "function");
        if (name && strcmp(name, json_string_value(json_object_get(function, "name"))) != 0)
            continue;
        json_t *call = call_schema(function, arguments, json_array_size(list));
        if (json_array_append_new(list, call) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return json_pack("{s:o}", "anyOf", list);
}
