/* SPDX-License-Identifier: MIT
 *
 * Reads the requested output format from a request's JSON, and writes its schema as text for the
 * grammar.  Errors name the member of the API and the path in the schema.
 */
#include "server/answer_schema.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/json_dump.h"

/* ---- requests ---- */

/* Sets the format.  One for JSON replaces another, as in llama.cpp. */
static bool take(struct tn_gen *gen, struct tn_output output, struct tn_refusal *r)
{
    if (gen->is_structured &&
        !(tn_output_is_json(gen->output.kind) && tn_output_is_json(output.kind)))
        return tn_refuse(r, 400, output.param, "\"%s\" and \"%s\": an answer has one format",
                         gen->output.param, output.param);
    gen->output = output;
    gen->is_structured = true;
    return true;
}

static bool take_object(struct tn_gen *gen, const char *param, struct tn_refusal *r)
{
    return take(gen, (struct tn_output){.kind = TN_OUTPUT_OBJECT, .param = param}, r);
}

static bool take_schema(struct tn_gen *gen, const json_t *schema, uint32_t flags,
                        const char *param, struct tn_refusal *r)
{
    return take(gen, (struct tn_output){TN_OUTPUT_SCHEMA, schema, flags, param}, r);
}

static bool read_schema(struct tn_gen *gen, const json_t *schema, const char *param,
                        struct tn_refusal *r)
{
    if (!json_is_object(schema))
        return tn_refuse(r, 400, param, "\"%s\" must be a schema", param);
    return take_schema(gen, schema, 0, param, r);
}

/* Reads {"name": ..., "schema": {...}, "strict": bool}. */
static bool read_json_schema(struct tn_gen *gen, const json_t *o, struct tn_refusal *r)
{
    const char *param = gen->api->json_schema;
    const json_t *schema = tn_json_member(o, "schema");
    bool is_strict = false;
    if (!json_is_object(o) || !json_is_object(schema))
        return tn_refuse(r, 400, param, "\"%s\" must be an object with a \"schema\"", param);
    return tn_json_get_bool(o, "strict", &is_strict, r) &&
           take_schema(gen, schema, is_strict ? TERN_GRAMMAR_STRICT : 0, gen->api->schema, r);
}

/* Reads {"type": "json_object"}; clients of llama.cpp add a "schema". */
static bool read_json_object(struct tn_gen *gen, const json_t *format, struct tn_refusal *r)
{
    static const char param[] = "response_format.schema";
    const json_t *schema = tn_json_member(format, "schema");
    return schema ? read_schema(gen, schema, param, r) : take_object(gen, gen->api->format, r);
}

bool tn_gen_read_response_format(struct tn_gen *gen, const json_t *body, struct tn_refusal *r)
{
    const char *param = gen->api->format;
    const json_t *format = tn_json_member(body, "response_format");
    if (!format || tn_json_has_type(format, "text"))
        return true;
    if (tn_json_has_type(format, "json_object"))
        return read_json_object(gen, format, r);
    if (tn_json_has_type(format, "json_schema"))
        return read_json_schema(gen, tn_json_member(format, "json_schema"), r);
    return tn_refuse(r, 400, param,
                     "\"%s\" must have the \"type\" text, json_object or json_schema", param);
}

bool tn_gen_read_format(struct tn_gen *gen, const json_t *body, struct tn_refusal *r)
{
    static const char param[] = "format";
    const json_t *format = tn_json_member(body, param);
    if (!format || (json_is_string(format) && json_string_length(format) == 0))
        return true;
    if (json_is_string(format) && strcmp(json_string_value(format), "json") == 0)
        return take_object(gen, param, r);
    if (json_is_object(format))
        return take_schema(gen, format, 0, param, r);
    return tn_refuse(r, 400, param, "\"%s\" must be \"json\" or a schema", param);
}

static bool read_llama_schema(struct tn_gen *gen, const json_t *body, struct tn_refusal *r)
{
    static const char param[] = "json_schema";
    const json_t *schema = tn_json_member(body, param);
    if (json_is_object(schema) && json_object_size(schema) == 0) /* any object, as in llama.cpp */
        return take_object(gen, param, r);
    return !schema || read_schema(gen, schema, param, r);
}

/* Reads a string, or an array of strings for a choice.  An empty string is no format. */
static bool read_text_format(struct tn_gen *gen, enum tn_output_kind kind, const json_t *format,
                             const char *param, struct tn_refusal *r)
{
    const bool is_choice = kind == TN_OUTPUT_CHOICE;
    if (is_choice ? json_array_size(format) == 0 : !json_is_string(format))
        return tn_refuse(r, 400, param, "\"%s\" must be %s", param,
                         is_choice ? "an array of strings, not empty" : "a string");
    for (size_t i = 0; is_choice && i < json_array_size(format); i++)
        if (!json_is_string(json_array_get(format, i)))
            return tn_refuse(r, 400, param, "\"%s\": entry %zu is not a string", param, i);
    if (!is_choice && json_string_length(format) == 0)
        return true;
    return take(gen, (struct tn_output){.kind = kind, .format = format, .param = param}, r);
}

static bool read_grammar(struct tn_gen *gen, const json_t *body, struct tn_refusal *r)
{
    static const char param[] = "grammar";
    const json_t *grammar = tn_json_member(body, param);
    return !grammar || read_text_format(gen, TN_OUTPUT_GBNF, grammar, param, r);
}

bool tn_gen_read_llama_format(struct tn_gen *gen, const json_t *body, struct tn_refusal *r)
{
    return read_llama_schema(gen, body, r) && read_grammar(gen, body, r);
}

/* The members of vLLM that are no schema: alone, and in "structured_outputs". */
static const struct text_format {
    const char *name, *guided, *inside;
    enum tn_output_kind kind;
} text_formats[] = {
    {"regex", "guided_regex", "structured_outputs.regex", TN_OUTPUT_REGEX},
    {"choice", "guided_choice", "structured_outputs.choice", TN_OUTPUT_CHOICE},
    {"grammar", "guided_grammar", "structured_outputs.grammar", TN_OUTPUT_GBNF},
};

static bool read_structured_outputs(struct tn_gen *gen, const json_t *o, struct tn_refusal *r)
{
    static const char param[] = "structured_outputs", in_json[] = "structured_outputs.json";
    const json_t *format = tn_json_member(o, "json");
    bool has_format = format != NULL;
    if (format && !read_schema(gen, format, in_json, r))
        return false;
    for (size_t i = 0; i < TN_COUNT_OF(text_formats); i++) {
        const struct text_format *f = &text_formats[i];
        format = tn_json_member(o, f->name);
        has_format = has_format || format;
        if (format && !read_text_format(gen, f->kind, format, f->inside, r))
            return false;
    }
    if (!has_format && json_is_true(tn_json_member(o, "json_object")))
        return take_object(gen, param, r);
    return has_format ||
           tn_refuse(r, 400, param, "\"%s\" must have \"json\", a schema, \"regex\", \"choice\", "
                                    "\"grammar\", or \"json_object\": true", param);
}

static bool read_vllm_format(struct tn_gen *gen, const json_t *body, struct tn_refusal *r)
{
    static const char param[] = "guided_json";
    const json_t *schema = tn_json_member(body, param);
    const json_t *o = tn_json_member(body, "structured_outputs");
    if (schema && !read_schema(gen, schema, param, r))
        return false;
    for (size_t i = 0; i < TN_COUNT_OF(text_formats); i++) {
        const struct text_format *f = &text_formats[i];
        const json_t *format = tn_json_member(body, f->guided);
        if (format && !read_text_format(gen, f->kind, format, f->guided, r))
            return false;
    }
    return !o || read_structured_outputs(gen, o, r);
}

bool tn_gen_read_added_formats(struct tn_gen *gen, const json_t *body, struct tn_refusal *r)
{
    return tn_gen_read_llama_format(gen, body, r) && read_vllm_format(gen, body, r);
}

/* ---- grammars ---- */

/* An error detail is "#/path/in/the/schema: what"; the path is appended to the parameter. */
bool tn_answer_schema_refuse(const struct tn_task *task, const struct tern_error *err,
                             struct tn_refusal *r)
{
    const char *param = task->gen.output.param;
    const char *end = strstr(err->detail, ": ");
    char place[sizeof r->param] = "";
    if (err->status == TERN_MEMORY)
        return tn_refuse(r, 503, NULL, "%s", err->detail);
    if (err->detail[0] == '#' && end && end > err->detail + 1)
        snprintf(place, sizeof place, "%.*s", (int)(end - err->detail), err->detail);
    tn_refuse(r, 400, param, "\"%s\": %s", param, err->detail);
    snprintf(r->param, sizeof r->param, "%s%s", param, place);
    return false;
}

/* Holds memory for the schema's text and for the copy that the compiler parses from it. */
bool tn_answer_schema_write(struct tn_buf *text, struct tn_task *task, struct tn_refusal *r)
{
    const struct tn_output *output = &task->gen.output;
    if (output->kind == TN_OUTPUT_OBJECT)
        return tn_buf_append_text(text, "{\"type\":\"object\"}") || tn_refuse_memory(r);
    return (tn_json_dump(text, output->format) || tn_refuse_memory(r)) &&
           tn_body_hold_working(task->server, &task->request,
                                tn_json_body_bound(text->data, text->n_bytes) + text->n_bytes, r);
}
