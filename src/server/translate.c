/* SPDX-License-Identifier: MIT
 *
 * Helpers for translating requests of other APIs to chat completions.
 *
 * A failure is recorded once, so the translators need one check at their end.
 */
#include "server/translate.h"

#include <string.h>

#include "server/openai.h"
#include "server/tools.h"

void tn_translation_set(struct tn_translation *t, json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value) != 0)
        t->failed = true;
}

void tn_translation_add(struct tn_translation *t, json_t *array, json_t *value)
{
    if (json_array_append_new(array, value) != 0)
        t->failed = true;
}

void tn_translation_share(struct tn_translation *t, json_t *object, const char *key,
                          const json_t *from, const char *from_key)
{
    const json_t *value = tn_json_member(from, from_key);
    if (value)
        tn_translation_set(t, object, key, json_incref((json_t *)value));
}

bool tn_translation_is_object(const json_t *request, const char *key, struct tn_refusal *r)
{
    const json_t *value = tn_json_member(request, key);
    return !value || json_is_object(value) ||
           tn_refuse(r, 400, key, "\"%s\" must be an object", key);
}

json_t *tn_translation_function(struct tn_translation *t, const json_t *from)
{
    json_t *o = json_object(), *function = json_object();
    tn_translation_share(t, function, "name", from, "name");
    tn_translation_set(t, o, "type", json_string("function"));
    tn_translation_set(t, o, "function", function);
    return o;
}

/* Replaces the name of the function in `o` by GROUP.NAME. */
static void qualify_name(struct tn_translation *t, json_t *o, const char *group)
{
    json_t *function = json_object_get(o, "function");
    const char *name = json_string_value(json_object_get(function, "name"));
    if (group && name)
        tn_translation_set(t, function, "name", json_sprintf("%s.%s", group, name));
}

json_t *tn_translation_call(struct tn_translation *t, const json_t *call, const char *id_key,
                            const char *arguments_key)
{
    json_t *o = tn_translation_function(t, call);
    qualify_name(t, o, json_string_value(tn_json_member(call, "namespace")));
    tn_translation_share(t, o, "id", call, id_key);
    tn_translation_share(t, json_object_get(o, "function"), "arguments", call, arguments_key);
    return o;
}

static json_t *translate_tool(struct tn_translation *t, const json_t *tool, const char *schema_key)
{
    json_t *o = tn_translation_function(t, tool), *function = json_object_get(o, "function");
    tn_translation_share(t, function, "description", tool, "description");
    tn_translation_share(t, function, "parameters", tool, schema_key);
    return o;
}

/* Checks the type of entry i of a list. */
static bool check_type(const json_t *tool, size_t i, const struct tn_tool_form *form,
                       struct tn_refusal *r)
{
    const char *type = json_string_value(tn_json_member(tool, "type"));
    return (type ? strcmp(type, form->type) == 0 : form->is_default) ||
           tn_refuse(r, 400, "tools",
                     "\"tools\": entry %zu has the type \"%.60s\", supported is \"%s\"", i,
                     type ? type : "", form->type);
}

static bool add_tool(struct tn_translation *t, json_t *list, const json_t *tool,
                     const struct tn_tool_form *form, const char *group, struct tn_refusal *r)
{
    if (json_array_size(list) >= TN_MAX_TOOLS)
        return tn_tools_refuse_number(r);
    json_t *translated = translate_tool(t, tool, form->schema_key);
    qualify_name(t, translated, group);
    tn_translation_add(t, list, translated);
    return true;
}

/* Each function repeats the name of its group, whose length is therefore limited. */
#define MAX_GROUP_NAME 128u

static bool add_group(struct tn_translation *t, json_t *list, const json_t *group,
                      const struct tn_tool_form *form, struct tn_refusal *r)
{
    const char *name = json_string_value(tn_json_member(group, "name"));
    const json_t *tools = tn_json_member(group, "tools");
    if (!name || !name[0] || strlen(name) > MAX_GROUP_NAME || !json_is_array(tools))
        return tn_refuse(r, 400, "tools",
                         "\"tools\": a \"%s\" needs \"tools\" and a \"name\" of at most %u bytes",
                         form->group, MAX_GROUP_NAME);
    for (size_t i = 0; i < json_array_size(tools); i++) {
        const json_t *tool = json_array_get(tools, i);
        if (!check_type(tool, i, form, r) || !add_tool(t, list, tool, form, name, r))
            return false;
    }
    return true;
}

static bool is_omitted(const json_t *tool, const struct tn_tool_form *form)
{
    const char *type = json_string_value(tn_json_member(tool, "type"));
    return form->omitted && type && strncmp(type, form->omitted, strlen(form->omitted)) == 0;
}

bool tn_translation_tools(struct tn_translation *t, json_t *out, const json_t *request,
                          const struct tn_tool_form *form, struct tn_refusal *r)
{
    const json_t *tools;
    if (!tn_tools_list(&tools, request, r))
        return false;
    json_t *list = json_array();
    tn_translation_set(t, out, "tools", list);
    if (t->failed)
        return true; /* the list is freed, and the final check reports it */
    for (size_t i = 0; i < json_array_size(tools); i++) {
        const json_t *tool = json_array_get(tools, i);
        if (json_array_size(tools) > 1 && is_omitted(tool, form))
            continue;
        if (!(form->group && tn_json_has_type(tool, form->group)
                  ? add_group(t, list, tool, form, r)
                  : check_type(tool, i, form, r) && add_tool(t, list, tool, form, NULL, r)))
            return false;
    }
    return true;
}

void tn_translation_format(struct tn_translation *t, json_t *out, const json_t *holder)
{
    const json_t *format = tn_json_member(holder, "format");
    if (!format)
        return;
    json_t *translated = json_object(), *schema = json_object();
    tn_translation_share(t, translated, "type", format, "type");
    tn_translation_share(t, schema, "schema", format, "schema");
    tn_translation_share(t, schema, "strict", format, "strict");
    tn_translation_set(t, translated, "json_schema", schema);
    tn_translation_set(t, out, "response_format", translated);
}

json_t *tn_translation_message(struct tn_translation *t, json_t *messages, const char *role)
{
    json_t *message = json_object();
    tn_translation_set(t, message, "role", json_string(role));
    tn_translation_add(t, messages, message);
    return t->failed ? NULL : message; /* a message that could not be added was freed */
}

json_t *tn_translation_join(struct tn_translation *t, const json_t *parts, const char *type,
                            const char *key)
{
    struct tn_buf text = {0};
    for (size_t i = 0; i < json_array_size(parts); i++) {
        const json_t *part = json_array_get(parts, i), *piece = tn_json_member(part, key);
        if (!tn_json_has_type(part, type))
            continue;
        tn_buf_append_text(&text, text.n_bytes > 0 ? "\n" : "");
        tn_buf_append(&text, json_string_value(piece), json_string_length(piece));
    }
    json_t *joined = text.n_bytes > 0 ? json_stringn(text.data, text.n_bytes) : NULL;
    t->failed = t->failed || text.failed || (text.n_bytes > 0 && !joined);
    tn_buf_fini(&text);
    return joined;
}

json_t *tn_translation_end(const struct tn_translation *t, json_t *value, struct tn_refusal *r)
{
    if (value && !t->failed)
        return value;
    json_decref(value);
    tn_refuse_memory(r);
    return NULL;
}

/* a block can become two objects */
#define TREES 2u

bool tn_translation_hold(struct tn_task *task, struct tn_refusal *r)
{
    return tn_body_hold_working(task->server, &task->request, TREES * task->request.n_tree, r);
}

bool tn_translation_read(struct tn_task *task, json_t *body, const char *own_format,
                         struct tn_refusal *r)
{
    if (body)
        task->body = body;
    return body && tn_gen_refuse_others(task->request.root, own_format, r) &&
           tn_chat_read(task, r);
}

bool tn_translation_encode(struct tn_task *task, json_t *messages, struct tn_refusal *r)
{
    const bool is_good = messages && tn_chat_ids(task, messages, r);
    json_decref(messages);
    return is_good;
}
