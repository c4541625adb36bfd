/* SPDX-License-Identifier: MIT
 *
 * Saved conversations: readable JSON that detects damage.
 *
 *   {"format": "tern conversation", "version": 1,
 *    "model": {"name", "hash"}, "settings": {...}, "system", "tools", "variables",
 *    "forgotten", "answers", "messages": [...],
 *    "checksum": "0123456789abcdef"}
 *
 * The checksum is the XXH3-64 of all bytes before its line, which has exactly one spelling.
 * Members that the conversation lacks are absent from the file.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json_dump.h"
#include "base/json_load.h"
#include "chat/conversation.h"
#include "chat/json_text.h"
#include "plat/plat.h"

#define FORMAT "tern conversation"
#define VERSION 1
#define MAX_BYTES ((size_t)256 << 20)
#define LAST_LINE_BYTES 32u

/* ---- writing ---- */

uint64_t tern_conversation_checksum(const char *text, size_t n)
{
    return XXH3_64bits(text, n);
}

/* The checksum line for n bytes of text. */
static void make_last_line(char line[LAST_LINE_BYTES + 1], const char *text, size_t n)
{
    snprintf(line, LAST_LINE_BYTES + 1, "\"checksum\": \"%016" PRIx64 "\"}\n",
             tern_conversation_checksum(text, n));
}

static void put_json(struct tn_buf *out, const char *key, const struct tn_buf *json)
{
    tn_buf_printf(out, "\"%s\": ", key);
    tn_buf_append(out, json->data, json->n_bytes);
    tn_buf_append_text(out, ",\n");
}

static void write_saved(struct tn_buf *out, const struct tern_conversation *c,
                        const struct tern_saved *saved)
{
    char line[LAST_LINE_BYTES + 1];
    tn_buf_printf(out,
                  "{\"format\": \"" FORMAT "\", \"version\": %d,\n\"model\": {\"name\": ", VERSION);
    tn_json_put_string(out, saved->model_name, strlen(saved->model_name));
    tn_buf_printf(out, ", \"hash\": \"%016" PRIx64 "\"},\n", saved->model_hash);
    if (saved->settings)
        tn_buf_printf(out, "\"settings\": %s,\n", saved->settings);
    if (c->has_system) {
        tn_buf_append_text(out, "\"system\": ");
        tn_json_put_string(out, c->system.data, c->system.n_bytes);
        tn_buf_append_text(out, ",\n");
    }
    if (c->has_tools)
        put_json(out, "tools", &c->tools);
    if (c->has_variables)
        put_json(out, "variables", &c->variables);
    tn_buf_printf(out,
                  "\"forgotten\": %zu, \"answers\": %" PRIu64 ",\n\"messages\": ", c->n_forgotten,
                  c->n_answers);
    tn_conversation_write_messages(out, c, 0, c->n_turns, false);
    tn_buf_append_text(out, ",\n");
    make_last_line(line, out->data, out->n_bytes);
    tn_buf_append_text(out, line);
}

/* ---- reading ---- */

static tern_status check_whole(const char *path, const char *text, size_t n, struct tern_error *err)
{
    static const char begin[] = "{\"format\": \"" FORMAT "\"";
    char line[LAST_LINE_BYTES + 1];
    if (n < sizeof begin - 1 || memcmp(text, begin, sizeof begin - 1) != 0)
        return tn_fail(err, TERN_INPUT, "%s: not a saved conversation", path);
    if (n >= LAST_LINE_BYTES) {
        make_last_line(line, text, n - LAST_LINE_BYTES);
        if (memcmp(text + n - LAST_LINE_BYTES, line, LAST_LINE_BYTES) == 0)
            return TERN_OK;
    }
    return tn_fail(err, TERN_INPUT, "%s: damaged: the checksum does not match its %zu bytes",
                   path, n);
}

/* Reads a string member; out->bytes is NULL if absent. */
static bool get_text(struct tern_text *out, const json_t *object, const char *key)
{
    const json_t *m = json_object_get(object, key);
    *out = (struct tern_text){json_string_value(m), m ? json_string_length(m) : 0};
    return !m || json_is_string(m);
}

static tern_status add_message(struct tern_conversation *c, const json_t *m, struct tern_error *err)
{
    struct tern_turn turn = {0};
    const json_t *calls = json_object_get(m, "tool_calls");
    bool is_good = json_is_object(m) && get_text(&turn.role, m, "role") && turn.role.bytes &&
                   get_text(&turn.content, m, "content") &&
                   get_text(&turn.reasoning, m, "reasoning_content") &&
                   get_text(&turn.name, m, "name") &&
                   get_text(&turn.tool_call_id, m, "tool_call_id");
    if (!is_good)
        return tn_fail(err, TERN_INPUT, "a message has no role, or a member that is not text");
    struct tn_buf text = {0};
    if (calls)
        tn_json_dump(&text, calls);
    turn.tool_calls = (struct tern_text){text.data, text.n_bytes};
    tern_status status = text.failed ? tn_fail(err, TERN_MEMORY, "no memory for a message")
                                     : tern_conversation_add(c, &turn, err);
    tn_buf_fini(&text);
    return status;
}

static tern_status set_json(struct tern_conversation *c, const json_t *root, const char *key,
                            tern_status (*set)(struct tern_conversation *, const char *, size_t,
                                               struct tern_error *),
                            struct tern_error *err)
{
    const json_t *m = json_object_get(root, key);
    struct tn_buf text = {0};
    if (!m)
        return TERN_OK;
    tern_status status = tn_json_dump(&text, m)
                             ? set(c, text.data, text.n_bytes, err)
                             : tn_fail(err, TERN_MEMORY, "no memory for \"%s\"", key);
    tn_buf_fini(&text);
    return status;
}

static tern_status check_model(const json_t *root, const struct tern_saved *expected,
                               struct tern_error *err)
{
    const json_t *model = json_object_get(root, "model");
    const char *name = json_string_value(json_object_get(model, "name"));
    const char *hash = json_string_value(json_object_get(model, "hash"));
    char own[17];
    snprintf(own, sizeof own, "%016" PRIx64, expected->model_hash);
    if (!name || !hash)
        return tn_fail(err, TERN_INPUT, "the file names no model");
    if (strcmp(hash, own) != 0)
        return tn_fail(err, TERN_INPUT,
                       "saved with the model %.80s (%.16s), the model here is %.80s (%s)", name,
                       hash, expected->model_name, own);
    return TERN_OK;
}

static bool get_count(uint64_t *out, const json_t *root, const char *key)
{
    const json_t *m = json_object_get(root, key);
    *out = (uint64_t)json_integer_value(m);
    return json_is_integer(m) && json_integer_value(m) >= 0;
}

static tern_status read_conversation(struct tern_conversation *c, const json_t *root,
                                     const struct tern_saved *expected, struct tern_error *err)
{
    struct tern_text system;
    uint64_t n_forgotten;
    const json_t *messages = json_object_get(root, "messages");
    if (json_integer_value(json_object_get(root, "version")) != VERSION)
        return tn_fail(err, TERN_INPUT, "written by another version of tern");
    tern_status status = check_model(root, expected, err);
    if (status != TERN_OK)
        return status;
    if (!json_is_array(messages) || !get_text(&system, root, "system") ||
        !get_count(&n_forgotten, root, "forgotten") || !get_count(&c->n_answers, root, "answers") ||
        n_forgotten > json_array_size(messages))
        return tn_fail(err, TERN_INPUT, "not a saved conversation");
    status = tern_conversation_set_system(c, system.bytes, system.n, err);
    if (status == TERN_OK)
        status = set_json(c, root, "tools", tern_conversation_set_tools, err);
    if (status == TERN_OK)
        status = set_json(c, root, "variables", tern_conversation_set_variables, err);
    for (size_t i = 0; i < json_array_size(messages) && status == TERN_OK; i++)
        status = add_message(c, json_array_get(messages, i), err);
    c->n_forgotten = (size_t)n_forgotten;
    return status;
}

/* Copies into memory for tern_text_free. */
static tern_status copy_settings(char **out, const json_t *root, struct tern_error *err)
{
    const json_t *m = json_object_get(root, "settings");
    struct tn_buf text = {0};
    *out = NULL;
    if (!m)
        return TERN_OK;
    *out = tn_json_dump(&text, m) ? tn_copy_bytes(text.data, text.n_bytes) : NULL;
    tn_buf_fini(&text);
    return *out ? TERN_OK : tn_fail(err, TERN_MEMORY, "no memory for the settings");
}

static tern_status parse(struct tern_conversation *c, const char *path, const char *text, size_t n,
                         const struct tern_saved *expected, char **settings, struct tern_error *err)
{
    json_t *root;
    tern_status status =
        tn_json_load(&root, path, text, n, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, err);
    if (status != TERN_OK)
        return status;
    status = read_conversation(c, root, expected, err);
    if (status == TERN_OK && settings)
        status = copy_settings(settings, root, err);
    json_decref(root);
    if (status != TERN_OK)
        tn_fail_prefix(err, path);
    return status;
}

/* ---- files ---- */

static tern_status read_file(char **text, size_t *n, const char *path, struct tern_error *err)
{
    tern_status status = tn_file_read_all(text, n, path, MAX_BYTES, err);
    if (status == TERN_OK) {
        status = check_whole(path, *text, *n, err);
        if (status != TERN_OK)
            tn_free(*text);
    }
    return status;
}

/* Refuses to replace a file that is not a saved conversation. */
static tern_status check_target(const char *path, struct tern_error *err)
{
    char *text;
    size_t n;
    if (tn_path_kind(path) != TN_PATH_FILE)
        return TERN_OK;
    tern_status status = tn_file_read_regular(&text, &n, path, MAX_BYTES, err);
    if (status == TERN_OK)
        status = check_whole(path, text, n, err);
    tn_free(text);
    if (status == TERN_INPUT) {
        struct tern_error why;
        tn_fail(&why, status, "%s", err ? err->detail : path);
        status = tn_fail(err, TERN_OUTPUT, "not replaced: %s", why.detail);
    }
    return status;
}

tern_status tern_conversation_save(const struct tern_conversation *c, const char *path,
                                   const struct tern_saved *saved, struct tern_error *err)
{
    struct tn_buf out = {0};
    tern_status status = check_target(path, err);
    if (status != TERN_OK)
        return status;
    write_saved(&out, c, saved);
    if (out.failed)
        status = tn_fail(err, TERN_MEMORY, "no memory to save the conversation");
    else if (out.n_bytes > MAX_BYTES)
        status = tn_fail(err, TERN_LIMIT,
                         "%s: not saved: the conversation takes %zu bytes, a file may have %zu",
                         path, out.n_bytes, MAX_BYTES);
    else
        status = tn_file_write_private(path, out.data, out.n_bytes, err);
    tn_buf_fini(&out);
    return status;
}

/* Exchanges messages, settings and counts with those of `from`. */
static void swap_contents(struct tern_conversation *c, struct tern_conversation *from)
{
    struct tern_conversation old = *c;
    *c = *from;
    c->tokenizer = old.tokenizer;
    c->t = old.t;
    c->params = old.params;
    c->overrides = old.overrides;
    c->has_overrides = old.has_overrides;
    old.overrides = from->overrides;
    old.has_overrides = from->has_overrides;
    *from = old;
}

tern_status tern_conversation_load(struct tern_conversation *c, const char *path,
                                   const struct tern_saved *expected, char **settings,
                                   struct tern_error *err)
{
    char *text;
    size_t n;
    struct tern_conversation read = {.tokenizer = c->tokenizer, .t = c->t, .params = c->params};
    if (settings)
        *settings = NULL;
    tern_status status = read_file(&text, &n, path, err);
    if (status != TERN_OK)
        return status;
    status = parse(&read, path, text, n, expected, settings, err);
    tn_free(text);
    if (status == TERN_OK)
        swap_contents(c, &read);
    tn_conversation_empty(&read);
    tn_free(read.turns);
    return status;
}
