/* SPDX-License-Identifier: MIT
 *
 * From the JSON of a request to a grammar.
 */
#include "server/answer_schema.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

/* A detail is "#/place/in/the/schema: what"; the place is behind `param`. */
static bool refuse_schema(const struct tern_error *err, const char *param, struct tn_refusal *r)
{
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

static bool compile_schema(struct tn_gen *gen, const json_t *schema, uint32_t flags,
                           const char *param, struct tn_refusal *r)
{
    struct tern_error err;
    char *text = json_dumps(schema, JSON_COMPACT);
    if (!text)
        return tn_refuse(r, 503, NULL, "no memory for the request");
    tern_status status =
        tern_grammar_from_schema(&gen->grammar, text, strlen(text), flags, &err);
    tn_free(text);
    return status == TERN_OK || refuse_schema(&err, param, r);
}

static bool take_any_object(struct tn_gen *gen, struct tn_refusal *r)
{
    struct tern_error err;
    return tern_grammar_json_object(&gen->grammar, &err) == TERN_OK ||
           tn_refuse(r, 503, NULL, "%s", err.detail);
}

/* {"name": ..., "schema": {...}, "strict": bool} */
static bool read_json_schema(struct tn_gen *gen, const json_t *o, struct tn_refusal *r)
{
    static const char param[] = "response_format.json_schema";
    const json_t *schema = tn_json_member(o, "schema");
    bool is_strict = false;
    if (!json_is_object(o) || !json_is_object(schema))
        return tn_refuse(r, 400, param, "\"%s\" must be an object with a \"schema\"", param);
    return tn_json_get_bool(o, "strict", &is_strict, r) &&
           compile_schema(gen, schema, is_strict ? TERN_GRAMMAR_STRICT : 0,
                          "response_format.json_schema.schema", r);
}

static bool read_response_format(struct tn_gen *gen, const json_t *body, struct tn_refusal *r)
{
    static const char param[] = "response_format";
    const json_t *format = tn_json_member(body, param);
    const char *type = json_string_value(json_object_get(format, "type"));
    if (!format || (type && strcmp(type, "text") == 0))
        return true;
    if (type && strcmp(type, "json_object") == 0)
        return take_any_object(gen, r);
    if (type && strcmp(type, "json_schema") == 0)
        return read_json_schema(gen, tn_json_member(format, "json_schema"), r);
    return tn_refuse(r, 400, param,
                     "\"%s\" must have the \"type\" text, json_object or json_schema", param);
}

static bool read_format(struct tn_gen *gen, const json_t *body, struct tn_refusal *r)
{
    static const char param[] = "format";
    const json_t *format = tn_json_member(body, param);
    if (!format || (json_is_string(format) && json_string_length(format) == 0))
        return true;
    if (json_is_string(format) && strcmp(json_string_value(format), "json") == 0)
        return take_any_object(gen, r);
    if (json_is_object(format))
        return compile_schema(gen, format, 0, param, r);
    return tn_refuse(r, 400, param, "\"%s\" must be \"json\" or a schema", param);
}

bool tn_gen_read_response_format(struct tn_gen *gen, const json_t *body, struct tn_refusal *r)
{
    const bool is_good = read_response_format(gen, body, r);
    gen->has_form = gen->grammar != NULL;
    return is_good;
}

bool tn_gen_read_format(struct tn_gen *gen, const json_t *body, struct tn_refusal *r)
{
    const bool is_good = read_format(gen, body, r);
    gen->has_form = gen->grammar != NULL;
    return is_good;
}

bool tn_gen_read_json_schema(struct tn_gen *gen, const json_t *body, struct tn_refusal *r)
{
    static const char param[] = "json_schema";
    const json_t *schema = tn_json_member(body, param);
    if (!schema)
        return true;
    if (!json_is_object(schema))
        return tn_refuse(r, 400, param, "\"%s\" must be a schema", param);
    const bool is_good = compile_schema(gen, schema, 0, param, r);
    gen->has_form = gen->grammar != NULL;
    return is_good;
}
