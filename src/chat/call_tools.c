/* SPDX-License-Identifier: MIT
 *
 * Reads a request's tools once, for all answers to it, and looks up the types of arguments in their
 * schemas.
 */
#include "chat/call_tools.h"

#include <jansson.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json_load.h"
#include "grammar/schema_tags.h"

/* For the type of one argument; takes about a millisecond. */
#define MAX_STEPS 100000u

struct tern_call_tools {
    json_t *functions; /* name -> schema of its arguments, an object */
};

/* Adds a tool with a name.  false: out of memory. */
static bool add_function(json_t *functions, const json_t *tool)
{
    const json_t *function = json_object_get(tool, "function");
    const char *name = json_string_value(json_object_get(function, "name"));
    json_t *parameters = json_object_get(function, "parameters");
    if (!name)
        return true;
    json_t *added = json_is_object(parameters) ? json_incref(parameters) : json_object();
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
    json_t *parameters;
    if (!tools)
        return false;
    json_object_foreach(tools->functions, known, parameters)
        if (strlen(known) == n && memcmp(known, name, n) == 0)
            return true;
    return false;
}

/* ---- types ---- */

/* The schema of an argument in that of all; NULL: unknown. */
static const json_t *schema_of(const json_t *parameters, const char *argument)
{
    const json_t *schema = json_object_get(json_object_get(parameters, "properties"), argument);
    return schema ? schema : json_object_get(parameters, "additionalProperties");
}

enum tn_call_value tn_call_tools_value(const struct tern_call_tools *tools, const char *function,
                                       const char *argument)
{
    const json_t *parameters = tools ? json_object_get(tools->functions, function) : NULL;
    const json_t *schema = schema_of(parameters, argument);
    uint64_t steps = MAX_STEPS;
    if (!tn_schema_allows(schema, parameters, "string", &steps))
        return TN_CALL_JSON;
    return tn_schema_allows(schema, parameters, "null", &steps) ? TN_CALL_TEXT_OR_NULL
                                                                 : TN_CALL_TEXT;
}
