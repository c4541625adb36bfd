/* SPDX-License-Identifier: MIT
 *
 * Compiles the grammar of an answer from parts: structured output, and for each function
 *
 *   tagged  <tool_call>\n{"name": "f", "arguments": schema of f}\n</tool_call>
 *   bare    {"name": "f", "parameters": schema of f}
 *
 * References are resolved in the schema of the function that has them.
 */
#include "server/answer_grammar.h"

#include <string.h>

#include "base/alloc.h"
#include "base/json_dump.h"
#include "server/answer_schema.h"
#include "server/json_out.h"
#include "server/reasoning.h"
#include "server/tools.h"

/* Parts and their texts; the last part may be structured output. */
struct parts {
    struct tern_grammar_part list[TN_MAX_TOOLS + 1];
    struct tn_buf texts[TN_MAX_TOOLS + 1];
    size_t n;
};

/* Adds the part of a function; without a description it has no arguments.  false: out of memory. */
static bool add_call(struct parts *parts, const struct tn_task *task, const json_t *function)
{
    const bool is_tagged = task->call_form == TERN_CALLS_TAGGED;
    const json_t *parameters = json_object_get(function, "parameters");
    struct tn_buf *text = &parts->texts[parts->n];
    tn_buf_append_text(text, is_tagged ? "<tool_call>\n{\"name\": " : "{\"name\": ");
    tn_json_text(text, json_string_value(json_object_get(function, "name")));
    tn_buf_append_text(text, is_tagged ? ", \"arguments\":" : ", \"parameters\":");
    tn_buf_append(text, "", 1);
    const size_t n_before = text->n_bytes;
    if (json_is_object(parameters) && json_object_size(parameters) > 0)
        tn_json_dump(text, parameters);
    else
        tn_buf_append_text(text, "{\"type\":\"object\",\"properties\":{}}");
    if (text->failed)
        return false;
    parts->list[parts->n++] = (struct tern_grammar_part){
        .before = text->data, .after = is_tagged ? "}\n</tool_call>" : "}",
        .schema = text->data + n_before, .n_bytes = text->n_bytes - n_before,
        .separator = is_tagged && !task->must_call ? "\n" : NULL};
    return true;
}

/* Adds the parts of all functions that may be called. */
static bool add_calls(struct parts *parts, const struct tn_task *task, struct tn_refusal *r)
{
    const json_t *tool;
    size_t i;
    json_array_foreach(task->tools, i, tool) {
        const json_t *function = json_object_get(tool, "function");
        const char *name = json_string_value(json_object_get(function, "name"));
        if ((!task->must_name || strcmp(name, task->must_name) == 0) &&
            !add_call(parts, task, function))
            return tn_refuse_memory(r);
    }
    return true;
}

static bool add_output(struct parts *parts, struct tn_task *task, struct tn_refusal *r)
{
    struct tn_buf *text = &parts->texts[parts->n];
    if (!tn_answer_schema_write(text, task, r))
        return false;
    parts->list[parts->n++] = (struct tern_grammar_part){
        .before = "", .after = "", .schema = text->data, .n_bytes = text->n_bytes,
        .flags = task->gen.output.flags};
    return true;
}

/* Refuses with the error of a part. */
static bool refuse_part(const struct tn_task *task, const struct tern_grammar_part *part,
                        const struct tern_error *err, struct tn_refusal *r)
{
    if (!part->before[0])
        return tn_answer_schema_refuse(task, err, r);
    return tn_refuse(r, err->status == TERN_MEMORY ? 503 : 400, "tools",
                     "\"tools\": a call cannot be enforced: %s", err->detail);
}

static bool compile(struct parts *parts, struct tn_task *task, struct tn_refusal *r)
{
    struct tern_grammar_preamble reasoning;
    struct tern_error err;
    size_t i_failed;
    if (!add_calls(parts, task, r) || (!task->must_call && !add_output(parts, task, r)))
        return false;
    reasoning.open = tn_reasoning_tags(&reasoning.close, task);
    return tern_grammar_from_parts(&task->gen.grammar, parts->list, parts->n,
                                   reasoning.open ? &reasoning : NULL, &i_failed,
                                   &err) == TERN_OK ||
           refuse_part(task, &parts->list[i_failed], &err, r);
}

bool tn_answer_grammar_compile(struct tn_task *task, struct tn_refusal *r)
{
    struct parts *parts = tn_alloc_zeroed(1, sizeof *parts);
    if (!parts)
        return tn_refuse_memory(r);
    const bool is_good = compile(parts, task, r);
    for (size_t i = 0; i <= TN_MAX_TOOLS; i++)
        tn_buf_fini(&parts->texts[i]);
    tn_free(parts);
    return is_good && tn_body_hold(task->server, &task->request,
                                   tern_grammar_bytes(task->gen.grammar), r);
}
