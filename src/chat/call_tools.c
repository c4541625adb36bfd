/* SPDX-License-Identifier: MIT
 *
 * Reads a request's tools once, for all answers to it, and looks up the types of arguments in their
 * schemas.
 */
#include "chat/call_tools.h"

#include <jansson.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/json_load.h"

struct tern_call_tools {
    json_t *functions; /* name -> schemas of its arguments by name, an object */
};

/* Adds a tool with a name.  false: out of memory. */
static bool add_function(json_t *functions, const json_t *tool)
{
    const json_t *function = json_object_get(tool, "function");
    const char *name = json_string_value(json_object_get(function, "name"));
    json_t *arguments = json_object_get(json_object_get(function, "parameters"), "properties");
    if (!name)
        return true;
    json_t *added = json_is_object(arguments) ? json_incref(arguments) : json_object();
    return json_object_set_new(functions, name, added) == 0;
}

tern_status tern_call_tools_create(struct tern_call_tools **out, const char *json, size_t n,
                                   struct tern_error *err)
{
    json_t *list;
    *out = NULL;
    tern_status status = tn_json_load(&list, "tools", json, n,
                                      JSON_ALLOW_NUL | TN_JSON_LARGE_AS_REAL, err);
    if (status != TERN_OK)
        return status;
    struct tern_call_tools *tools = tn_alloc_zeroed(1, sizeof *tools);
    bool is_good = tools && (tools->functions = json_object());
    for (size_t i = 0; is_good && i < json_array_size(list); i++)
        is_good = add_function(tools->functions, json_array_get(list, i));
    json_decref(list);
    if (!is_good) {
        tern_call_tools_free(tools);
        return tn_fail(err, TERN_MEMORY, "no memory for tools");
    }
    *out = tools;
    return tn_ok(err);
}

void tern_call_tools_free(struct tern_call_tools *tools)
{
    if (!tools)
        return;
    json_decref(tools->functions);
    tn_free(tools);
}

bool tn_call_tools_have(const struct tern_call_tools *tools, const char *name, size_t n)
{
    const char *known;
    json_t *arguments;
    if (!tools)
        return false;
    json_object_foreach(tools->functions, known, arguments)
        if (strlen(known) == n && memcmp(known, name, n) == 0)
            return true;
    return false;
}

/* ---- types ---- */

/* Is `type` the type, or one of the types, that "type" names? */
static bool names_type(const json_t *names, const char *type)
{
    if (json_is_string(names))
        return strcmp(json_string_value(names), type) == 0;
    for (size_t i = 0; i < json_array_size(names); i++)
        if (names_type(json_array_get(names, i), type))
            return true;
    return false;
}

/* Does the schema allow values of this type, as far as it says which it allows?  Recursion is
 * bounded by TN_JSON_MAX_DEPTH. */
static bool allows(const json_t *schema, const char *type)
{
    static const char *const choices[] = {"anyOf", "oneOf", "allOf"};
    const json_t *value = json_object_get(schema, "enum");
    const bool is_text = strcmp(type, "string") == 0;
    if (json_object_get(schema, "type"))
        return names_type(json_object_get(schema, "type"), type);
    for (size_t i = 0; i < json_array_size(value); i++)
        if (is_text ? json_is_string(json_array_get(value, i)) :
                      json_is_null(json_array_get(value, i)))
            return true;
    for (size_t k = 0; k < TN_COUNT_OF(choices); k++) {
        value = json_object_get(schema, choices[k]);
        for (size_t i = 0; i < json_array_size(value); i++)
            if (allows(json_array_get(value, i), type))
                return true;
    }
    return is_text && json_is_string(json_object_get(schema, "const"));
}

enum tn_call_value tn_call_tools_value(const struct tern_call_tools *tools, const char *function,
                                       const char *argument)
{
    const json_t *schema =
        tools ? json_object_get(json_object_get(tools->functions, function), argument) : NULL;
    if (!allows(schema, "string"))
        return TN_CALL_JSON;
    return allows(schema, "null") ? TN_CALL_TEXT_OR_NULL : TN_CALL_TEXT;
}
