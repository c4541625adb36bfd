/* SPDX-License-Identifier: MIT
 *
 * Reads calls that are objects: {"name": "f", "arguments": {...}}.
 *
 * With the members in this order, the arguments are passed on while they arrive.
 */
#include <jansson.h>
#include <string.h>

#include "base/json_dump.h"
#include "base/json_load.h"
#include "base/text_match.h"
#include "chat/call_reader.h"

/* Skips a string without escapes, from after its opening quote. */
static bool skip_name(const char *text, size_t n, size_t *at)
{
    while (*at < n && text[*at] != '"' && text[*at] != '\\')
        ++*at;
    return tn_call_skip_word(text, n, at, "\"");
}

static bool skip_key(const char *text, size_t n, size_t *at)
{
    size_t first = *at, second = *at;
    const bool is_there = tn_call_skip_word(text, n, &first, "\"arguments\"") ||
                          tn_call_skip_word(text, n, &second, "\"parameters\"");
    *at = TN_MAX(first, second);
    return is_there;
}

bool tn_call_match_head(const char *text, size_t n, size_t *at, size_t *name_at, size_t *n_name)
{
    if (!tn_call_skip_word(text, n, at, "{") || !tn_call_skip_word(text, n, at, "\"name\"") ||
        !tn_call_skip_word(text, n, at, ":") || !tn_call_skip_word(text, n, at, "\""))
        return false;
    *name_at = *at;
    if (!skip_name(text, n, at))
        return false;
    *n_name = *at - *name_at - 1;
    return tn_call_skip_word(text, n, at, ",") && skip_key(text, n, at) &&
           tn_call_skip_word(text, n, at, ":") && tn_call_skip_word(text, n, at, "{");
}

/* Starts a call if the first n bytes contain its name and the start of its arguments. */
static bool read_head(struct tn_call_reader *r, const char *text, size_t n)
{
    size_t at = 0, name_at, n_name;
    if (tn_call_match_head(text, n, &at, &name_at, &n_name) && n_name > 0) {
        if (!tn_call_begin(r, text + name_at, n_name))
            return false;
        r->phase = TN_CALL_ARGUMENTS;
        r->n_read = at - 1;
        r->depth = 0;
        r->is_string = r->is_escaped = false;
        return true;
    }
    if (at < n || at > TN_CALL_MAX_HEAD)
        r->phase = TN_CALL_REST; /* another format: parsed when complete */
    return true;
}

/* Reads a byte of the arguments; white space between values is dropped. */
static bool read_byte(struct tn_call_reader *r, char ch)
{
    const bool was_string = r->is_string;
    if (r->is_string) {
        r->has_line_feed = r->has_line_feed || ch == '\n';
        r->is_string = r->is_escaped || ch != '"';
        r->is_escaped = !r->is_escaped && ch == '\\';
    } else {
        r->is_string = ch == '"';
        r->has_line_feed = false;
        r->depth += ch == '{' || ch == '[';
        r->depth -= ch == '}' || ch == ']';
    }
    if (r->depth == 0) {
        r->phase = TN_CALL_REST;
        r->is_whole = true;
    }
    return (!was_string && tn_is_space(ch)) ||
           tn_buf_append(tn_call_arguments(r), &ch, 1);
}

bool tn_call_read_object(struct tn_call_reader *r, const char *text, size_t n)
{
    bool is_good = r->phase != TN_CALL_NAME || read_head(r, text, n);
    while (is_good && r->phase == TN_CALL_ARGUMENTS && r->n_read < n)
        is_good = read_byte(r, text[r->n_read++]);
    return is_good;
}

/* Appends a call whose members are in an unusual order. */
static bool add_call(struct tn_call_reader *r, const json_t *call)
{
    const char *name = json_string_value(json_object_get(call, "name"));
    const json_t *arguments = json_object_get(call, "arguments");
    bool is_added = tn_call_begin(r, name, strlen(name)) &&
                    tn_json_dump(tn_call_arguments(r),
                                 arguments ? arguments : json_object_get(call, "parameters")) &&
                    tn_buf_reserve(tn_call_arguments(r), 1);
    tn_call_finish(r, is_added);
    return is_added;
}

static bool is_call(const json_t *call)
{
    const char *name = json_string_value(json_object_get(call, "name"));
    const json_t *arguments = json_object_get(call, "arguments");
    arguments = arguments ? arguments : json_object_get(call, "parameters");
    return name && name[0] && json_is_object(arguments);
}

/* Is the brace after the arguments missing?  Small models omit it. */
static bool lacks_brace(const struct tn_call_reader *r, const char *text, size_t n)
{
    return r->is_whole && tn_text_n_space(text + r->n_read, n - r->n_read) == n - r->n_read;
}

tern_status tn_call_end_object(struct tn_call_reader *r, const char *text, size_t n)
{
    json_t *call;
    const bool was_begun = r->is_begun, has_arguments_only = lacks_brace(r, text, n);
    if (has_arguments_only) {
        text = tn_call_arguments(r)->data;
        n = tn_call_arguments(r)->n_bytes;
    }
    tern_status status = tn_json_load(&call, "call", text, n, TN_JSON_LARGE_AS_REAL, NULL);
    if (status == TERN_OK && !has_arguments_only && !is_call(call))
        status = TERN_INPUT;
    tn_call_finish(r, status == TERN_OK || r->is_early);
    if (status == TERN_OK && !was_begun && !add_call(r, call))
        status = TERN_MEMORY;
    json_decref(call);
    return status;
}
