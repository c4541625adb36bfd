/* SPDX-License-Identifier: MIT
 *
 * Compiles the grammar of an answer: a grammar, an expression or a choice of texts, or parts for
 * JSON and for each function
 *
 *   tagged      <tool_call>\n{"name": "f", "arguments": schema of f}\n</tool_call>
 *   parameters  <tool_call>\n<function=f>\nschema of f, as tags</function>\n</tool_call>
 *   bare        {"name": "f", "parameters": schema of f}
 *
 * Where tags cannot express the schema or the name of a function, all calls are objects: if some
 * were, a model would never write those.
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

/* What surrounds the name and the arguments of a call.  Names are strings of JSON but in tags. */
static const struct call_texts {
    const char *open, *middle, *close;
    bool has_tags;
} texts_of[] = {
    [TERN_CALLS_TAGGED] = {"<tool_call>\n{\"name\": ", ", \"arguments\":", "}\n</tool_call>",
                           false},
    [TERN_CALLS_BARE] = {"{\"name\": ", ", \"parameters\":", "}", false},
    [TERN_CALLS_PARAMETERS] = {"<tool_call>\n<function=", ">\n", "</function>\n</tool_call>",
                               true},
};

/* Adds the part of a function; without a description it has no arguments.  false: out of memory. */
static bool add_call(struct parts *parts, const struct tn_task *task, enum tern_call_form form,
                     const json_t *function)
{
    const struct call_texts *texts = &texts_of[form];
    const json_t *parameters = json_object_get(function, "parameters");
    const char *name = json_string_value(json_object_get(function, "name"));
    struct tn_buf *text = &parts->texts[parts->n];
    tn_buf_append_text(text, texts->open);
    if (texts->has_tags)
        tn_buf_append_text(text, name);
    else
        tn_json_text(text, name);
    tn_buf_append_text(text, texts->middle);
    tn_buf_append(text, "", 1);
    const size_t n_before = text->n_bytes;
    if (json_is_object(parameters) && json_object_size(parameters) > 0)
        tn_json_dump(text, parameters);
    else
        tn_buf_append_text(text, "{\"type\":\"object\",\"properties\":{}}");
    if (text->failed)
        return false;
    parts->list[parts->n++] = (struct tern_grammar_part){
        .before = text->data, .after = texts->close,
        .schema = text->data + n_before, .n_bytes = text->n_bytes - n_before,
        .flags = texts->has_tags ? TERN_GRAMMAR_TAGS : 0,
        .separator = form != TERN_CALLS_BARE && !task->must_call ? "\n" : NULL};
    return true;
}

/* Adds the parts of all functions that may be called. */
static bool add_calls(struct parts *parts, const struct tn_task *task, enum tern_call_form form,
                      struct tn_refusal *r)
{
    const json_t *tool;
    size_t i;
    json_array_foreach(task->tools, i, tool) {
        const json_t *function = json_object_get(tool, "function");
        const char *name = json_string_value(json_object_get(function, "name"));
        if ((!task->must_name || strcmp(name, task->must_name) == 0) &&
            !add_call(parts, task, form, function))
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

/* Can all names of functions be written in tags? */
static bool has_plain_names(const json_t *tools)
{
    for (size_t i = 0; i < json_array_size(tools); i++) {
        const json_t *function = json_object_get(json_array_get(tools, i), "function");
        if (strpbrk(json_string_value(json_object_get(function, "name")), "\n<>"))
            return false;
    }
    return true;
}

/* Compiles the parts with calls of this form.  *status: of the compiler, if it came to that. */
static bool compile(struct parts *parts, struct tn_task *task, enum tern_call_form form,
                    tern_status *status, struct tn_refusal *r)
{
    struct tern_grammar_preamble reasoning;
    struct tern_error err;
    size_t i_failed;
    *status = TERN_OK;
    if (!add_calls(parts, task, form, r) || (!task->must_call && !add_output(parts, task, r)))
        return false;
    reasoning.open = tn_reasoning_tags(&reasoning.close, task);
    *status = tern_grammar_from_parts(&task->gen.grammar, parts->list, parts->n,
                                      reasoning.open ? &reasoning : NULL, &i_failed, &err);
    return *status == TERN_OK || refuse_part(task, &parts->list[i_failed], &err, r);
}

static bool compile_in(struct tn_task *task, enum tern_call_form form, tern_status *status,
                       struct tn_refusal *r)
{
    struct parts *parts = tn_alloc_zeroed(1, sizeof *parts);
    *status = TERN_OK;
    if (!parts)
        return tn_refuse_memory(r);
    const bool is_good = compile(parts, task, form, status, r);
    for (size_t i = 0; i <= TN_MAX_TOOLS; i++)
        tn_buf_fini(&parts->texts[i]);
    tn_free(parts);
    return is_good;
}

/* ---- grammars and expressions ---- */

/* Memory of reading a grammar, in relation to its text: its shortest rule has 6 bytes. */
#define BYTES_PER_BYTE 32u

/* Appends the rule that allows each string of an array. */
static void write_choice(struct tn_buf *text, const json_t *choice)
{
    const json_t *one;
    size_t i;
    json_array_foreach(choice, i, one) {
        tn_buf_append_text(text, i == 0 ? "root ::= \"" : "\" | \"");
        for (const char *c = json_string_value(one); *c; c++) {
            if (*c == '"' || *c == '\\')
                tn_buf_append(text, "\\", 1);
            tn_buf_append(text, c, 1);
        }
    }
    tn_buf_append_text(text, "\"");
}

/* Compiles a text of n bytes, which a NUL follows if it is an expression. */
static bool compile_text(struct tn_task *task, const char *text, size_t n, struct tn_refusal *r)
{
    struct tern_grammar **grammar = &task->gen.grammar;
    struct tern_grammar_preamble reasoning;
    struct tern_error err;
    reasoning.open = tn_reasoning_tags(&reasoning.close, task);
    const struct tern_grammar_preamble *preamble = reasoning.open ? &reasoning : NULL;
    if (!tn_body_hold_working(task->server, &task->request, BYTES_PER_BYTE * n, r))
        return false;
    const tern_status status = task->gen.output.kind == TN_OUTPUT_REGEX
                                   ? tern_grammar_from_regex(grammar, text, preamble, &err)
                                   : tern_grammar_from_gbnf(grammar, text, n, preamble, &err);
    return status == TERN_OK || tn_answer_schema_refuse(task, &err, r);
}

static bool compile_format(struct tn_task *task, struct tn_refusal *r)
{
    const struct tn_output *output = &task->gen.output;
    struct tn_buf choice = {0};
    if (task->tools)
        return tn_refuse(r, 400, output->param, "\"%s\" and \"tools\" cannot be used together",
                         output->param);
    if (output->kind != TN_OUTPUT_CHOICE)
        return compile_text(task, json_string_value(output->format),
                            json_string_length(output->format), r);
    write_choice(&choice, output->format);
    const bool is_good = choice.failed ? tn_refuse_memory(r)
                                       : compile_text(task, choice.data, choice.n_bytes, r);
    tn_buf_fini(&choice);
    return is_good;
}

static bool compile_parts(struct tn_task *task, struct tn_refusal *r)
{
    enum tern_call_form form = task->call_form;
    tern_status status;
    if (form == TERN_CALLS_PARAMETERS && !has_plain_names(task->tools))
        form = TERN_CALLS_TAGGED;
    bool is_good = compile_in(task, form, &status, r);
    if (!is_good && form == TERN_CALLS_PARAMETERS && status != TERN_OK && status != TERN_MEMORY)
        is_good = compile_in(task, TERN_CALLS_TAGGED, &status, r);
    return is_good;
}

bool tn_answer_grammar_compile(struct tn_task *task, struct tn_refusal *r)
{
    const enum tn_output_kind kind = task->gen.output.kind;
    const bool has_parts = kind == TN_OUTPUT_TEXT || tn_output_is_json(kind);
    return (has_parts ? compile_parts(task, r) : compile_format(task, r)) &&
           tn_body_hold(task->server, &task->request, tern_grammar_bytes(task->gen.grammar), r);
}
