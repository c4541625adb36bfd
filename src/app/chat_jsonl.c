/* SPDX-License-Identifier: MIT
 *
 * tern chat --jsonl: a conversation for programs, one JSON object per line in and out.  `tern help
 * jsonl` is its contract.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/json_dump.h"
#include "chat.h"
#include "json_io.h"
#include "line_queue.h"
#include "output.h"
#include "plat/plat.h"
#include "prompt.h"

struct jsonl {
    struct tn_chat_state *chat;
    struct tn_line_queue *queue;
    json_t *id; /* of the current line, which its replies repeat; NULL: none */
    bool has_told; /* a reply has reported why --session is not saved */
    struct tern_error print_err;
};

/* ---- replies ---- */

/* Writes a reply and releases the value; false if the output was closed. */
static bool reply(struct jsonl *j, json_t *value)
{
    if (j->id)
        json_object_set(value, "id", j->id);
    if (tn_json_io_print(value, &j->print_err) != TERN_OK) {
        tn_chat_fail(j->chat, &j->print_err);
        j->chat->leave = true;
    }
    if (!tn_out_is_open())
        j->chat->leave = true;
    return !j->chat->leave;
}

static void put_error(json_t *value, const struct tern_error *err)
{
    json_t *error = json_object();
    json_object_set_new(error, "message", json_string(err->detail));
    json_object_set_new(error, "code", json_integer(tern_status_exit_code(err->status)));
    json_object_set_new(value, "error", error);
}

/* Writes the last reply to a line.  Saves the changes of the line first, so that the program learns
 * whether that succeeded. */
static void reply_last(struct jsonl *j, json_t *value)
{
    const struct tern_error *unsaved = &j->chat->unsaved;
    tn_chat_keep_session(j->chat);
    j->has_told = unsaved->status != TERN_OK && !json_object_get(value, "error");
    if (j->has_told)
        put_error(value, unsaved);
    (void)reply(j, value);
}

static void reply_error(struct jsonl *j, const struct tern_error *err)
{
    json_t *value = json_object();
    put_error(value, err);
    reply_last(j, value);
}

static void reply_ok(struct jsonl *j)
{
    json_t *value = json_object();
    json_object_set_new(value, "ok", json_true());
    reply_last(j, value);
}

static bool on_part(void *arg, enum tern_part part, const char *text, size_t n)
{
    json_t *value = json_object();
    json_object_set_new(value, part == TERN_PART_ANSWER ? "delta" : "reasoning_delta",
                        json_stringn(text, n));
    return reply(arg, value);
}

static json_t *usage_of(const struct tern_generate_result *g)
{
    json_t *usage = json_object();
    json_object_set_new(usage, "prompt_tokens", json_integer(g->n_prompt));
    json_object_set_new(usage, "cached_tokens", json_integer(g->n_prompt - g->n_prompt_evaluated));
    json_object_set_new(usage, "completion_tokens", json_integer(g->n_new));
    json_object_set_new(usage, "prompt_s", json_real(g->prompt_s));
    json_object_set_new(usage, "decode_s", json_real(g->decode_s));
    return usage;
}

/* `turn` NULL: the answer was cancelled before its first token. */
static void reply_answer(struct jsonl *j, const struct tern_turn *turn,
                         const struct tern_answer_result *r)
{
    json_t *value = json_object();
    json_object_set_new(value, "content",
                        turn ? json_stringn(turn->content.bytes, turn->content.n)
                             : json_string(""));
    if (turn && turn->reasoning.bytes)
        json_object_set_new(value, "reasoning_content",
                            json_stringn(turn->reasoning.bytes, turn->reasoning.n));
    json_object_set_new(value, "stop",
                        json_string(tn_generator_stop_text(&j->chat->g, &r->generate)));
    json_object_set_new(value, "usage", usage_of(&r->generate));
    json_object_set_new(value, "forgotten", json_integer((json_int_t)r->n_forgotten));
    reply_last(j, value);
}

/* ---- answers ---- */

static bool is_cancelled(void *arg)
{
    return tn_line_queue_is_signalled(arg);
}

/* On an error the messages from n_keep on are removed. */
static void run_answer(struct jsonl *j, tn_chat_answer_fn *kind, size_t n_keep)
{
    struct tern_error err;
    struct tern_turn turn;
    struct tern_answer_result result;
    struct tn_chat_state *chat = j->chat;
    tern_status status = tn_chat_run_answer(chat, kind, on_part, j, &result, &err);
    if (status != TERN_OK)
        tern_conversation_truncate(chat->c, n_keep);
    if (status == TERN_OK) {
        tern_conversation_get(chat->c, tern_conversation_n_turns(chat->c) - 1, &turn);
        chat->is_changed = true;
        chat->last = result;
        reply_answer(j, &turn, &result);
        tn_generator_print_stats(&chat->g, &result.generate);
    } else if (status == TERN_INTERRUPTED) {
        result.generate.stop = TERN_STOP_INTERRUPT;
        reply_answer(j, NULL, &result);
    } else {
        reply_error(j, &err);
    }
    if (tn_stop_requested()) {
        chat->failed = TERN_INTERRUPTED;
        chat->leave = true;
    }
}

/* ---- messages ---- */

/* A member that is a string, null, or absent. */
static bool get_text(struct tern_text *out, const json_t *object, const char *key)
{
    const json_t *m = json_object_get(object, key);
    *out = (struct tern_text){json_string_value(m), json_string_length(m)};
    return !m || json_is_null(m) || json_is_string(m);
}

/* Strings may contain NUL. */
static bool is_text(const json_t *value, const char *text)
{
    const size_t n = strlen(text);
    return json_string_length(value) == n && memcmp(json_string_value(value), text, n) == 0;
}

static tern_status add_message(struct tern_conversation *c, const json_t *m,
                               struct tern_error *err)
{
    struct tern_turn turn;
    const json_t *calls = json_object_get(m, "tool_calls");
    if (calls && !json_is_null(calls) && !json_is_array(calls))
        return tn_fail(err, TERN_USAGE, "\"tool_calls\" must be an array");
    if (!get_text(&turn.role, m, "role") || !turn.role.bytes ||
        !get_text(&turn.content, m, "content") ||
        !get_text(&turn.reasoning, m, "reasoning_content") || !get_text(&turn.name, m, "name") ||
        !get_text(&turn.tool_call_id, m, "tool_call_id"))
        return tn_fail(err, TERN_USAGE, "a message has a \"role\" and a \"content\", both strings");
    if (is_text(json_object_get(m, "role"), "system"))
        return tern_conversation_set_system(c, turn.content.bytes, turn.content.n, err);
    struct tn_buf text = {0};
    if (!turn.content.bytes && !json_is_array(calls))
        return tn_fail(err, TERN_USAGE, "a message has a \"role\" and a \"content\", both strings");
    if (!turn.content.bytes) /* some templates write it in any case */
        turn.content.bytes = "";
    if (json_is_array(calls))
        tn_json_dump(&text, calls);
    turn.tool_calls = (struct tern_text){text.data, text.n_bytes};
    tern_status status = text.failed ? tn_fail(err, TERN_MEMORY, "no memory for a message")
                                     : tern_conversation_add(c, &turn, err);
    tn_buf_fini(&text);
    return status;
}

static bool asks(const json_t *m)
{
    const json_t *role = json_object_get(m, "role");
    return is_text(role, "user") || is_text(role, "tool");
}

static void take_message(struct jsonl *j, const json_t *m)
{
    struct tern_error err;
    const size_t n_turns = tern_conversation_n_turns(j->chat->c);
    if (add_message(j->chat->c, m, &err) != TERN_OK) {
        reply_error(j, &err);
        return;
    }
    j->chat->is_changed = true;
    if (asks(m))
        run_answer(j, tern_conversation_answer, n_turns);
    else
        reply_ok(j);
}

/* Replaces the conversation by these messages. */
static tern_status put_messages(struct tern_conversation *c, const json_t *messages,
                                struct tern_error *err)
{
    tern_conversation_clear(c);
    tern_status status = tern_conversation_set_system(c, NULL, 0, err);
    for (size_t i = 0; i < json_array_size(messages) && status == TERN_OK; i++)
        status = add_message(c, json_array_get(messages, i), err);
    return status;
}

/* Whether all of them are valid. */
static tern_status check_messages(struct tn_chat_state *chat, const json_t *messages,
                                  struct tern_error *err)
{
    struct tern_conversation *other;
    if (!json_is_array(messages))
        return tn_fail(err, TERN_USAGE, "\"messages\" must be an array");
    tern_status status = tern_conversation_create(&other, err);
    if (status != TERN_OK)
        return status;
    tern_conversation_set_template(other, tern_model_tokenizer(chat->opened.model),
                                   chat->template.t, &chat->template.params);
    status = put_messages(other, messages, err);
    tern_conversation_free(other);
    return status;
}

/* The conversation of --session is replaced only by a line that says "replace". */
static tern_status check_replace(const struct tn_chat_state *chat, const json_t *line,
                                 const char *what, struct tern_error *err)
{
    if (!chat->o.session || json_is_true(json_object_get(line, "replace")))
        return TERN_OK;
    return tn_fail(err, TERN_USAGE,
                   "\"%s\" replaces the conversation in %.200s (--session): the line needs "
                   "\"replace\":true",
                   what, chat->o.session);
}

/* Replaces the conversation by a whole new one; if a message is invalid, the old one stays. */
static void take_messages(struct jsonl *j, const json_t *line, const json_t *messages)
{
    struct tern_error err;
    struct tern_conversation *c = j->chat->c;
    const size_t n = json_array_size(messages);
    tern_status status = check_replace(j->chat, line, "messages", &err);
    if (status == TERN_OK)
        status = check_messages(j->chat, messages, &err);
    if (status == TERN_OK) {
        j->chat->is_changed = true;
        status = put_messages(c, messages, &err);
    }
    if (status != TERN_OK)
        reply_error(j, &err);
    else if (n > 0 && asks(json_array_get(messages, n - 1)))
        run_answer(j, tern_conversation_answer, tern_conversation_n_turns(c) - 1);
    else
        reply_ok(j);
}

/* ---- other lines ---- */

typedef tern_status set_fn(struct tn_chat_state *chat, const char *name, const char *value,
                           struct tern_error *err);

/* Sets "max_tokens" as max-tokens; numbers as they would be typed. */
static tern_status set_one(struct tn_chat_state *chat, const char *key, const json_t *value,
                           set_fn *set, struct tern_error *err)
{
    char name[32], text[40];
    const char *given = json_string_value(value);
    if (given && strlen(given) != json_string_length(value))
        return tn_fail(err, TERN_USAGE, "\"%.40s\" contains NUL", key);
    snprintf(name, sizeof name, "%s", key);
    for (char *c = name; *c; c++)
        *c = *c == '_' ? '-' : *c;
    if (json_is_integer(value))
        snprintf(text, sizeof text, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        snprintf(text, sizeof text, "%.17g", json_real_value(value));
    else if (!given)
        return tn_fail(err, TERN_USAGE, "\"%.40s\" must be a number or a string", key);
    return set(chat, name, given ? given : text, err);
}

/* Applies all settings or none. */
static tern_status take_set(struct tn_chat_state *chat, const json_t *settings,
                            struct tern_error *err)
{
    set_fn *const steps[] = {tn_chat_check, tn_chat_apply};
    const char *key;
    json_t *value;
    tern_status status = TERN_OK;
    if (!json_is_object(settings))
        return tn_fail(err, TERN_USAGE, "\"set\" must be an object");
    for (size_t i = 0; i < TN_COUNT_OF(steps); i++)
        json_object_foreach((json_t *)settings, key, value)
            if (status == TERN_OK)
                status = set_one(chat, key, value, steps[i], err);
    return status;
}

/* Passes a JSON value to the library; null removes. */
static tern_status take_json(struct tn_chat_state *chat, const json_t *value,
                             tern_status (*set)(struct tern_conversation *, const char *, size_t,
                                                struct tern_error *),
                             struct tern_error *err)
{
    if (json_is_null(value))
        return set(chat->c, NULL, 0, err);
    struct tn_buf text = {0};
    tern_status status = tn_json_dump(&text, value)
                             ? set(chat->c, text.data, text.n_bytes, err)
                             : tn_fail(err, TERN_MEMORY, "no memory for a line");
    tn_buf_fini(&text);
    return status;
}

static tern_status take_variables(struct tn_chat_state *chat, const json_t *variables,
                                  struct tern_error *err)
{
    tern_status status = take_json(chat, variables, tern_conversation_set_variables, err);
    if (status == TERN_OK)
        chat->has_old_off = false;
    return status;
}

static tern_status take_clear(struct tn_chat_state *chat, const json_t *line,
                              struct tern_error *err)
{
    tern_status status = check_replace(chat, line, "clear", err);
    if (status == TERN_OK)
        tern_conversation_clear(chat->c);
    return status;
}

static void finish_change(struct jsonl *j, tern_status status, const struct tern_error *err)
{
    if (status != TERN_OK) {
        reply_error(j, err);
        return;
    }
    j->chat->is_changed = true;
    reply_ok(j);
}

static void take_change(struct jsonl *j, const json_t *line)
{
    struct tern_error err;
    struct tn_chat_state *chat = j->chat;
    const json_t *m;
    if ((m = json_object_get(line, "set")) != NULL)
        finish_change(j, take_set(chat, m, &err), &err);
    else if ((m = json_object_get(line, "tools")) != NULL)
        finish_change(j, take_json(chat, m, tern_conversation_set_tools, &err), &err);
    else if ((m = json_object_get(line, "variables")) != NULL)
        finish_change(j, take_variables(chat, m, &err), &err);
    else if (json_is_true(json_object_get(line, "clear")))
        finish_change(j, take_clear(chat, line, &err), &err);
    else if (json_is_true(json_object_get(line, "undo"))) {
        bool any = tern_conversation_undo(chat->c);
        finish_change(j, any ? TERN_OK : tn_fail(&err, TERN_USAGE, "there is nothing to undo"),
                      &err);
    } else {
        tn_fail(&err, TERN_USAGE,
                "the line is none of: a message, \"messages\", \"set\", "
                "\"tools\", \"variables\", \"clear\", \"undo\", \"regen\", "
                "\"continue\", \"cancel\"; see tern help jsonl");
        reply_error(j, &err);
    }
}

static void take_object(struct jsonl *j, const json_t *line)
{
    const json_t *messages = json_object_get(line, "messages");
    j->id = json_object_get(line, "id");
    if (json_object_get(line, "role"))
        take_message(j, line);
    else if (messages)
        take_messages(j, line, messages);
    else if (json_is_true(json_object_get(line, "regen")))
        run_answer(j, tern_conversation_regenerate, SIZE_MAX);
    else if (json_is_true(json_object_get(line, "continue")))
        run_answer(j, tern_conversation_continue, SIZE_MAX);
    else
        take_change(j, line);
    j->id = NULL;
}

static void take_line(struct jsonl *j, const struct tn_buf *text)
{
    struct tern_error err;
    json_t *line = NULL;
    size_t start = tn_prompt_mark(text->data, text->n_bytes);
    tern_status status = TERN_OK;
    if (text->failed)
        status = tn_fail(&err, TERN_MEMORY, "no room for a line of more than %zu bytes (limit %zu)",
                         text->n_bytes, TN_MAX_PROMPT_BYTES);
    else
        status = tn_json_io_read(&line, "the line", text->data + start, text->n_bytes - start,
                                 JSON_ALLOW_NUL, &err);
    if (status == TERN_OK && !json_is_object(line))
        status = tn_fail(&err, TERN_USAGE, "the line must be a JSON object");
    if (status == TERN_OK)
        take_object(j, line);
    else
        reply_error(j, &err);
    json_decref(line);
}

/* ---- lines ---- */

/* At the end, reports an error that no reply has reported. */
static void tell_unsaved(struct jsonl *j)
{
    json_t *value;
    tn_chat_keep_session(j->chat);
    if (j->chat->unsaved.status == TERN_OK || j->has_told || !tn_out_is_open())
        return;
    value = json_object();
    put_error(value, &j->chat->unsaved);
    (void)reply(j, value);
}

/* {"cancel":true}, with or without blanks. */
static bool is_cancel(const char *line, size_t n)
{
    static const char form[] = "{\"cancel\":true}";
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        if (memchr(" \t\r", line[i], 3))
            continue;
        if (at == sizeof form - 1 || line[i] != form[at])
            return false;
        at++;
    }
    return at == sizeof form - 1;
}

void tn_chat_jsonl(struct tn_chat_state *chat)
{
    struct tern_error err;
    struct tn_buf line;
    struct jsonl j = {.chat = chat};
    enum tn_queued kind = TN_QUEUED_LINE;
    if (tn_line_queue_open(&j.queue, is_cancel, &err) != TERN_OK) {
        tn_chat_fail(chat, &err);
        return;
    }
    chat->g.is_cancelled = is_cancelled;
    chat->g.is_cancelled_arg = j.queue;
    while (!chat->leave && (kind = tn_line_queue_take(j.queue, &line, &err)) == TN_QUEUED_LINE) {
        if (line.failed || !tn_prompt_is_blank(line.data, line.n_bytes))
            take_line(&j, &line);
        tn_buf_fini(&line);
    }
    tell_unsaved(&j);
    if (kind == TN_QUEUED_INTERRUPT)
        chat->failed = TERN_INTERRUPTED;
    else if (kind == TN_QUEUED_FAILED)
        tn_chat_fail(chat, &err);
    chat->g.is_cancelled = NULL;
    tn_line_queue_close(j.queue);
}
