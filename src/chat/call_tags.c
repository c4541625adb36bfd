/* SPDX-License-Identifier: MIT
 *
 * Reads calls written with tags, as Qwen3-Coder and Qwen3.5 do.
 *
 * A value between tags has no type: the tool's schema says whether it is text.  Text is passed on
 * while it arrives, other values when they are complete.
 */
#include <jansson.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json_dump.h"
#include "base/json_load.h"
#include "base/text_match.h"
#include "chat/call_reader.h"
#include "chat/json_text.h"
#include "grammar/schema_tags.h"

static const char function_open[] = "<function=", function_close[] = "</function>";
static const char value_open[] = TN_TAG_OPEN, value_close[] = TN_TAG_CLOSE;

/* Matches a name and the '>' after it.  false: it differs, or may still arrive (*at is n). */
static bool skip_name(const char *text, size_t n, size_t *at, size_t *name_at, size_t *n_name)
{
    *name_at = *at;
    while (*at < n && !memchr("<>\n", text[*at], 3))
        ++*at;
    *n_name = *at - *name_at;
    return *n_name > 0 && tn_call_skip_word(text, n, at, ">");
}

static bool read_function(struct tn_call_reader *r, const char *text, size_t n)
{
    size_t at = 0, name_at, n_name;
    if (tn_call_skip_word(text, n, &at, function_open) &&
        skip_name(text, n, &at, &name_at, &n_name)) {
        if (!tn_call_begin(r, text + name_at, n_name))
            return false;
        r->phase = TN_CALL_ARGUMENTS;
        r->n_read = at;
        r->has_arguments = false;
        return tn_buf_append(tn_call_arguments(r), "{", 1);
    }
    if (at < n || at > TN_CALL_MAX_HEAD)
        r->phase = TN_CALL_REST;
    return true;
}

/* Starts an argument at `at`, after its tag. */
static bool begin_value(struct tn_call_reader *r, const char *key, size_t n_key, size_t at)
{
    struct tn_buf *out = tn_call_arguments(r);
    char *name = tn_copy_bytes(key, n_key);
    if (!name)
        return false;
    r->value = tn_call_tools_value(r->tools, r->calls[r->n_calls].name, name);
    tn_free(name);
    tn_buf_append(out, ",", r->has_arguments);
    tn_json_put_string(out, key, n_key);
    tn_buf_append_text(out, r->value == TN_CALL_TEXT ? ":\"" : ":");
    r->has_arguments = true;
    r->phase = TN_CALL_VALUE;
    r->n_read = at;
    return !out->failed;
}

/* Reads the tag after the function's name or an argument. */
static bool read_tag(struct tn_call_reader *r, const char *text, size_t n)
{
    size_t at = r->n_read, closed_at = at, key_at, n_key;
    if (tn_call_skip_word(text, n, &closed_at, function_close)) {
        r->phase = TN_CALL_REST;
        r->n_read = closed_at;
        r->is_whole = true;
        return tn_buf_append(tn_call_arguments(r), "}", 1);
    }
    if (tn_call_skip_word(text, n, &at, value_open) && skip_name(text, n, &at, &key_at, &n_key)) {
        if (at < n) /* a line feed after the tag does not belong to the value */
            return begin_value(r, text + key_at, n_key, at + (text[at] == '\n'));
    } else if (at < n && closed_at < n) {
        r->phase = TN_CALL_REST;
    }
    return true;
}

/* Appends text as a part of a JSON string. */
static bool append_text(struct tn_buf *out, const char *text, size_t n)
{
    const size_t from = out->n_bytes;
    tn_json_put_string(out, text, n);
    if (out->failed)
        return false;
    memmove(out->data + from, out->data + from + 1, out->n_bytes - from - 2);
    out->n_bytes -= 2;
    return true;
}

/* JSON for a value that templates of this form write as Python does; NULL: none. */
static const char *word_of(const char *text, size_t n)
{
    static const char *const words[][2] = {{"True", "true"}, {"False", "false"}, {"None", "null"}};
    for (size_t i = 0; i < TN_COUNT_OF(words); i++)
        if (strlen(words[i][0]) == n && memcmp(words[i][0], text, n) == 0)
            return words[i][1];
    return NULL;
}

static bool append_value(struct tn_buf *out, enum tn_call_value kind, const char *text, size_t n)
{
    json_t *value = NULL;
    const char *word = word_of(text, n);
    tern_status status = word ? TERN_OK
                              : tn_json_load(&value, "value", text, n,
                                             JSON_DECODE_ANY | TN_JSON_LARGE_AS_REAL, NULL);
    const bool is_null = word ? strcmp(word, "null") == 0 : json_is_null(value);
    if (status == TERN_OK && (kind == TN_CALL_JSON || is_null))
        word ? tn_buf_append_text(out, word) : tn_json_dump(out, value);
    else if (status != TERN_MEMORY)
        tn_json_put_string(out, text, n);
    json_decref(value);
    return status != TERN_MEMORY && !out->failed;
}

/* The line feed before the closing tag does not belong to the value. */
static size_t without_line_feed(const char *text, size_t n)
{
    return n - (n > 0 && text[n - 1] == '\n');
}

/* Offset of the closing tag, or n: it may still arrive, after *n_searched bytes. */
static size_t find_close(const struct tn_call_reader *r, const char *text, size_t n,
                         size_t *n_searched)
{
    size_t at = tn_text_find(text, n, r->n_searched, value_close);
    bool is_known = true;
    while (at < n && r->value != TN_CALL_TEXT &&
           tn_call_has_string_around(text, n, at, &is_known))
        at = tn_text_find(text, n, at + 1, value_close);
    *n_searched = at < n ? at : n - tn_text_n_begun(text, n, value_close);
    return is_known || r->is_last ? at : n;
}

static bool read_value(struct tn_call_reader *r, const char *text, size_t n)
{
    struct tn_buf *out = tn_call_arguments(r);
    const char *from = text + r->n_read;
    const size_t n_left = n - r->n_read, n_close = sizeof value_close - 1;
    size_t n_searched;
    const size_t close_at = find_close(r, from, n_left, &n_searched);
    const bool is_text = r->value == TN_CALL_TEXT;
    if (close_at == n_left) {
        const size_t n_sure = without_line_feed(from, n_searched);
        r->n_searched = is_text ? 0 : n_sure;
        r->n_read += is_text ? n_sure : 0;
        return !is_text || append_text(out, from, n_sure);
    }
    r->n_searched = 0;
    const size_t n_value = without_line_feed(from, close_at);
    r->n_read += close_at + n_close;
    r->phase = TN_CALL_ARGUMENTS;
    return is_text ? append_text(out, from, n_value) && tn_buf_append(out, "\"", 1)
                   : append_value(out, r->value, from, n_value);
}

bool tn_call_read_tags(struct tn_call_reader *r, const char *text, size_t n)
{
    bool is_good = true, is_moving = true;
    while (is_good && is_moving) {
        const enum tn_call_phase phase = r->phase;
        const size_t n_read = r->n_read;
        if (phase == TN_CALL_NAME)
            is_good = read_function(r, text, n);
        else if (phase == TN_CALL_ARGUMENTS)
            is_good = read_tag(r, text, n);
        else if (phase == TN_CALL_VALUE)
            is_good = read_value(r, text, n);
        is_moving = r->phase != phase || r->n_read != n_read;
    }
    return is_good;
}

tern_status tn_call_end_tags(struct tn_call_reader *r)
{
    json_t *arguments = NULL;
    tern_status status = TERN_INPUT;
    if (r->is_whole)
        status = tn_json_load(&arguments, "call", tn_call_arguments(r)->data,
                              tn_call_arguments(r)->n_bytes, TN_JSON_LARGE_AS_REAL, NULL);
    json_decref(arguments);
    tn_call_finish(r, status == TERN_OK || r->is_early);
    return status;
}
