/* SPDX-License-Identifier: MIT
 *
 * Detects the format of tool calls that a template requests.
 *
 * Renders a small conversation with tools and looks for the marks of known formats; the template's
 * source is not read.
 */
#include <jansson.h>
#include <string.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/json_dump.h"
#include "base/json_load.h"
#include "tern/calls.h"

/* Marks that templates of a format write themselves. */
static const struct {
    const char *mark;
    enum tern_call_form form;
} marks[] = {
    {"<tool_call>\n<function=", TERN_CALLS_PARAMETERS},
    {"<tool_call>", TERN_CALLS_TAGGED},
    {"{\"name\": function name, \"parameters\":", TERN_CALLS_BARE},
};

/* Does the mark occur in bytes of the template?  User text does not count. */
static bool contains(const char *text, const unsigned char *user_map, size_t n, const char *mark)
{
    const size_t n_mark = strlen(mark);
    for (size_t i = 0; i + n_mark <= n; i++)
        if (memcmp(text + i, mark, n_mark) == 0 && !memchr(user_map + i, 1, n_mark))
            return true;
    return false;
}

/* Appends the conversation without its tools; false: out of memory. */
static bool append_without_tools(struct tn_buf *out, const char *json, size_t n)
{
    json_t *request;
    if (tn_json_load(&request, "conversation", json, n, JSON_ALLOW_NUL, NULL) != TERN_OK)
        return false;
    json_object_del(request, "tools");
    const bool is_good = tn_json_dump(out, request);
    json_decref(request);
    return is_good;
}

/* Does the template write the same without the tools?  Then it does not support them. */
static tern_status compare(bool *is_same, const struct tern_chat_template *t, const char *json,
                           size_t n_json, const struct tern_chat_params *params, const char *text,
                           size_t n_text, struct tern_error *err)
{
    struct tn_buf bare = {0};
    char *plain = NULL;
    size_t n_plain = 0;
    tern_status status =
        append_without_tools(&bare, json, n_json)
            ? tern_chat_render_json(t, bare.data, bare.n_bytes, params, &plain, &n_plain, NULL, err)
            : tn_fail(err, TERN_MEMORY, "no memory for a conversation");
    tn_buf_fini(&bare);
    *is_same = status == TERN_OK && n_plain == n_text && memcmp(plain, text, n_text) == 0;
    tern_text_free(plain);
    return status == TERN_MEMORY ? status : tn_ok(err);
}

tern_status tern_chat_call_form(enum tern_call_form *out, const struct tern_chat_template *t,
                                const char *json, size_t n_json,
                                const struct tern_chat_params *params, struct tern_error *err)
{
    char *text;
    unsigned char *user_map;
    size_t n;
    bool is_same, is_known = false;
    *out = TERN_CALLS_TAGGED;
    tern_status status =
        tern_chat_render_json(t, json, n_json, params, &text, &n, &user_map, err);
    if (status != TERN_OK)
        return status;
    status = compare(&is_same, t, json, n_json, params, text, n, err);
    for (size_t i = 0; i < TN_COUNT_OF(marks) && !is_known && !is_same; i++) {
        is_known = contains(text, user_map, n, marks[i].mark);
        *out = is_known ? marks[i].form : *out;
    }
    tern_text_free(text);
    tern_text_free(user_map);
    if (status == TERN_OK && is_same)
        return tn_fail(err, TERN_UNSUPPORTED, "the model's chat template does not support tools");
    if (status == TERN_OK && !is_known)
        return tn_fail(err, TERN_UNSUPPORTED,
                       "the model's chat template uses an unknown format for tool calls");
    return status;
}
