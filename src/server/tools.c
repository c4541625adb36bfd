/* SPDX-License-Identifier: MIT
 *
 * Reads "tools" and "tool_choice", and writes "tool_calls".
 *
 * All APIs use these; messages_request.c and responses_request.c translate to OpenAI's form first.
 */
#include "server/tools.h"

#include <string.h>

#include "base/json_dump.h"
#include "server/json_out.h"

static bool is_function(const json_t *tool)
{
    const json_t *function = tn_json_member(tool, "function");
    const char *name = json_string_value(tn_json_member(function, "name"));
    return tn_json_has_type(tool, "function") && name && name[0];
}

/* The tool with this name; NULL: none. */
static json_t *find_tool(const json_t *tools, const char *name)
{
    for (size_t i = 0; name && i < json_array_size(tools); i++) {
        json_t *tool = json_array_get(tools, i);
        const json_t *function = json_object_get(tool, "function");
        if (strcmp(json_string_value(json_object_get(function, "name")), name) == 0)
            return tool;
    }
    return NULL;
}

/* Reads "auto", "none" or "required".  *is_off: "none". */
static bool read_mode(struct tn_task *task, const char *mode, bool *is_off)
{
    *is_off = mode && strcmp(mode, "none") == 0;
    task->must_call = mode && strcmp(mode, "required") == 0;
    return *is_off || task->must_call || (mode && strcmp(mode, "auto") == 0);
}

static const char *name_of(const json_t *o)
{
    return json_string_value(tn_json_member(o, "name"));
}

static bool is_in(const json_t *list, const json_t *value)
{
    size_t i = 0;
    while (i < json_array_size(list) && json_array_get(list, i) != value)
        i++;
    return i < json_array_size(list);
}

/* Reads {"mode":..., "tools":[...]}: restricts the request's tools to that list, which is written
 * as in chat completions or as in responses.  A repeated name counts once, because its tool is
 * rendered for each entry. */
static bool allow_tools(struct tn_task *task, const json_t **tools, const json_t *allowed,
                        struct tn_refusal *r)
{
    const json_t *names = tn_json_member(allowed, "tools");
    const size_t n = json_array_size(names);
    if (n == 0 || n > TN_MAX_TOOLS)
        return tn_refuse(r, 400, "tool_choice",
                         "\"tool_choice\" must list the allowed tools, at most %u", TN_MAX_TOOLS);
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        const json_t *entry = json_array_get(names, i);
        const json_t *function = tn_json_member(entry, "function");
        json_t *tool = find_tool(*tools, name_of(function ? function : entry));
        if (tool && (is_in(list, tool) || json_array_append(list, tool) == 0))
            continue;
        json_decref(list);
        return tool ? tn_refuse_memory(r)
                    : tn_refuse(r, 400, "tool_choice",
                                "\"tool_choice\": entry %zu of the allowed tools names no "
                                "function of \"tools\"", i);
    }
    *tools = list;
    return tn_json_put(task->body, "tools", list, r);
}

static bool read_choice_object(struct tn_task *task, const json_t **tools, const json_t *choice,
                               bool *is_off, struct tn_refusal *r)
{
    const json_t *allowed = tn_json_member(choice, "allowed_tools");
    *is_off = false;
    if (tn_json_has_type(choice, "allowed_tools")) {
        allowed = allowed ? allowed : choice;
        if (!read_mode(task, json_string_value(tn_json_member(allowed, "mode")), is_off) ||
            *is_off)
            return tn_refuse(r, 400, "tool_choice",
                             "\"tool_choice\": the \"mode\" of allowed tools must be auto or "
                             "required");
        return allow_tools(task, tools, allowed, r);
    }
    task->must_call = true;
    task->must_name = name_of(tn_json_member(choice, "function"));
    return find_tool(*tools, task->must_name) ||
           tn_refuse(r, 400, "tool_choice", "\"tool_choice\" names no function of \"tools\"");
}

/* Reads "auto", "none" (*is_off), "required", a function, or a list of allowed tools, which
 * replaces *tools. */
static bool read_choice(struct tn_task *task, const json_t **tools, bool *is_off,
                        struct tn_refusal *r)
{
    const json_t *choice = tn_json_member(task->body, "tool_choice");
    *is_off = false;
    if (json_is_object(choice))
        return read_choice_object(task, tools, choice, is_off, r);
    return !choice || read_mode(task, json_string_value(choice), is_off) ||
           tn_refuse(r, 400, "tool_choice", "\"tool_choice\" must be none, auto, required, a "
                                            "function, or allowed_tools");
}

/* Without tools only "auto" and "none" have a meaning. */
static bool read_choice_without_tools(const struct tn_task *task, struct tn_refusal *r)
{
    const json_t *choice = tn_json_member(task->body, "tool_choice");
    const char *mode = json_string_value(choice);
    return !choice || (mode && (strcmp(mode, "auto") == 0 || strcmp(mode, "none") == 0)) ||
           tn_refuse(r, 400, "tool_choice",
                     "\"tool_choice\" must be none or auto without \"tools\"");
}

bool tn_tools_refuse_number(struct tn_refusal *r)
{
    return tn_refuse(r, 400, "tools", "\"tools\" must be an array of at most %u functions",
                     TN_MAX_TOOLS);
}

bool tn_tools_list(const json_t **out, const json_t *request, struct tn_refusal *r)
{
    *out = tn_json_member(request, "tools");
    if (!*out || (json_is_array(*out) && json_array_size(*out) <= TN_MAX_TOOLS))
        return true;
    return tn_tools_refuse_number(r);
}

bool tn_tools_read(struct tn_task *task, struct tn_refusal *r)
{
    const json_t *tools;
    bool is_off, is_parallel = true;
    if (!tn_tools_list(&tools, task->body, r))
        return false;
    if (json_array_size(tools) == 0)
        return read_choice_without_tools(task, r);
    for (size_t i = 0; i < json_array_size(tools); i++)
        if (!is_function(json_array_get(tools, i)))
            return tn_refuse(r, 400, "tools",
                             "\"tools\": entry %zu is not {\"type\":\"function\",\"function\":"
                             "{\"name\":...}}", i);
    if (!read_choice(task, &tools, &is_off, r) ||
        !tn_json_get_bool(task->body, "parallel_tool_calls", &is_parallel, r))
        return false;
    task->tools = is_off ? NULL : tools;
    task->is_single_call = task->tools && !is_parallel;
    if (task->must_call) { /* the output format constrains answers, not forced calls */
        task->gen.output = (struct tn_output){.kind = TN_OUTPUT_TEXT};
        task->gen.is_structured = true;
    }
    return true;
}

bool tn_tools_are_known(const struct tn_server_model *model)
{
    static const char request[] =
        "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"tools\":[{\"type\":\"function\","
        "\"function\":{\"name\":\"f\",\"description\":\"\",\"parameters\":{\"type\":\"object\","
        "\"properties\":{}}}}]}";
    struct tern_chat_params params = model->chat_params;
    enum tern_call_form form;
    params.date = (struct tern_date){.year = 2000, .month = 1, .day = 1};
    return model->chat && tern_chat_call_form(&form, model->chat, request, sizeof request - 1,
                                              &params, NULL) == TERN_OK;
}

/* ---- calls ---- */

bool tn_tools_bind(struct tn_task *task, struct tn_refusal *r)
{
    struct tn_buf text = {0};
    const bool is_written = tn_json_dump(&text, task->tools) || tn_refuse_memory(r);
    const bool is_good =
        is_written &&
        tn_body_hold(task->server, &task->request, tn_json_body_bound(text.data, text.n_bytes),
                     r) &&
        (tern_call_tools_create(&task->call_tools, text.data, text.n_bytes, NULL) == TERN_OK ||
         tn_refuse_memory(r));
    tn_buf_fini(&text);
    return is_good;
}

/* ---- answers ---- */

static void append_head(struct tn_buf *out, const struct tn_task *task,
                        const struct tn_choice *choice, size_t i)
{
    tn_buf_printf(out, "\"id\":\"call_%s_%u_%zu\",\"type\":\"function\",\"function\":{\"name\":",
                  task->id, choice->job.i_choice, i);
    tn_json_text(out, tern_calls_get(choice->calls, i).name);
    tn_buf_append_text(out, ",\"arguments\":");
}

void tn_tools_append_openai(struct tn_buf *out, const struct tn_task *task,
                            const struct tn_choice *choice)
{
    tn_buf_append_text(out, ",\"tool_calls\":[");
    for (size_t i = 0; i < tn_choice_n_calls(choice); i++) {
        tn_buf_append_text(out, i > 0 ? ",{" : "{");
        append_head(out, task, choice, i);
        tn_json_text(out, tern_calls_get(choice->calls, i).arguments);
        tn_buf_append_text(out, "}}");
    }
    tn_buf_append_text(out, "]");
}

bool tn_tools_append_delta(struct tn_buf *out, const struct tn_task *task,
                           struct tn_choice *choice)
{
    const char *arguments = tn_choice_more_arguments(choice);
    if (arguments[0]) {
        tn_buf_printf(out, "{\"tool_calls\":[{\"index\":%zu,\"function\":{\"arguments\":",
                      choice->n_calls_sent - 1);
        tn_json_text(out, arguments);
        choice->n_arguments_sent += strlen(arguments);
    } else if (tn_choice_n_calls(choice) > choice->n_calls_sent) {
        tn_buf_printf(out, "{\"tool_calls\":[{\"index\":%zu,", choice->n_calls_sent);
        append_head(out, task, choice, choice->n_calls_sent);
        tn_buf_append_text(out, "\"\"");
        choice->n_calls_sent++;
        choice->n_arguments_sent = 0;
    } else {
        return false;
    }
    tn_buf_append_text(out, "}}]}");
    return true;
}

void tn_tools_append_ollama(struct tn_buf *out, const struct tn_task *task,
                            const struct tn_choice *choice, size_t first)
{
    tn_buf_append_text(out, ",\"tool_calls\":[");
    for (size_t i = first; i < tn_choice_n_calls(choice); i++) {
        const struct tern_call call = tern_calls_get(choice->calls, i);
        tn_buf_append_text(out, i > first ? "," : "");
        tn_buf_printf(out, "{\"id\":\"call_%s_%zu\",\"function\":{\"index\":%zu,\"name\":",
                      task->id, i, i);
        tn_json_text(out, call.name);
        tn_buf_printf(out, ",\"arguments\":%s}}", call.arguments);
    }
    tn_buf_append_text(out, "]");
}
