/* SPDX-License-Identifier: MIT
 *
 * POST /v1/chat/completions.
 *
 * Normalises messages for templates, renders and encodes them, and writes answers and streams.
 */
#include <string.h>

#include "base/compiler.h"
#include "base/json_dump.h"
#include "server/answer_schema.h"
#include "server/begun_answer.h"
#include "server/json_out.h"
#include "server/late_system.h"
#include "server/logprobs.h"
#include "server/openai.h"
#include "server/reasoning.h"
#include "server/tools.h"

/* ---- the conversation ---- */

static bool is_text_part(const char *type)
{
    return strcmp(type, "text") == 0 || strcmp(type, "input_text") == 0 ||
           strcmp(type, "output_text") == 0;
}

/* Joins the texts of parts, one per line, to a new string; NULL: refused. */
static json_t *join_parts(const struct tn_task *task, const json_t *parts, size_t i_message,
                          struct tn_refusal *r)
{
    struct tn_buf text = {0};
    for (size_t i = 0; i < json_array_size(parts); i++) {
        const json_t *part = json_array_get(parts, i);
        const char *type = json_string_value(json_object_get(part, "type"));
        const bool is_refusal = type && strcmp(type, "refusal") == 0;
        const json_t *piece = json_is_string(part)
                                  ? part
                                  : json_object_get(part, is_refusal ? "refusal" : "text");
        if (!json_is_string(piece) || (type && !is_refusal && !is_text_part(type))) {
            tn_refuse(r, 400, task->gen.api->conversation,
                      "message %zu: this model reads text only, not \"%.40s\"", i_message,
                      type ? type : "?");
            tn_buf_fini(&text);
            return NULL;
        }
        if (i > 0)
            tn_buf_append(&text, "\n", 1);
        tn_buf_append(&text, json_string_value(piece), json_string_length(piece));
    }
    json_t *joined = text.failed ? NULL : json_stringn(tn_buf_bytes(&text), text.n_bytes);
    if (!joined)
        tn_refuse_memory(r);
    tn_buf_fini(&text);
    return joined;
}

/* Parses the arguments of calls: templates expect objects, OpenAI sends them as JSON strings. */
static bool open_arguments(struct tn_task *task, json_t *calls, struct tn_refusal *r)
{
    for (size_t i = 0; i < json_array_size(calls); i++) {
        json_t *function = json_object_get(json_array_get(calls, i), "function");
        const json_t *arguments = json_object_get(function, "arguments");
        if (!json_is_string(arguments))
            continue;
        const char *text = json_string_value(arguments);
        const size_t n = json_string_length(arguments);
        struct tn_refusal ignored = {0};
        struct tn_json_wide seed;
        if (!tn_body_hold_copies(task->server, &task->request, tn_json_body_bound(text, n) - n, r))
            return false;
        json_t *object = tn_json_body_read(text, n, &seed, &ignored);
        if (ignored.status == 503) {
            *r = ignored;
            return false;
        }
        if (object && !tn_json_put(function, "arguments", object, r))
            return false;
    }
    return true;
}

/* Maps a role to the template's name for it.  false: unknown role. */
static bool rename_role(json_t *message, const char *role, size_t i, const char *param,
                        struct tn_refusal *r)
{
    static const char *const roles[][2] = {
        {"user", NULL},          {"assistant", NULL},   {"system", NULL}, {"tool", NULL},
        {"developer", "system"}, {"function", "tool"}};
    for (size_t k = 0; k < TN_COUNT_OF(roles); k++)
        if (strcmp(role, roles[k][0]) == 0)
            return !roles[k][1] || tn_json_put(message, "role", json_string(roles[k][1]), r);
    return tn_refuse(r, 400, param,
                     "message %zu: \"role\" is \"%.40s\"; it must be system, developer, user, "
                     "assistant or tool", i, role);
}

/* Clients send back an answer without text as null or without "content", and a refusal in a member
 * of that name.  A call in the form that "tool_calls" replaced would be lost. */
static bool may_omit_content(const json_t *message)
{
    return tn_json_has_role(message, "assistant") && !tn_json_member(message, "function_call");
}

/* The text of a message without "content": its refusal, or none. */
static json_t *text_without_content(json_t *message)
{
    json_t *refusal = json_object_get(message, "refusal");
    return json_is_string(refusal) ? json_incref(refusal) : json_string("");
}

/* Brings a message into the form that templates expect. */
static bool normalise(struct tn_task *task, json_t *message, size_t i, struct tn_refusal *r)
{
    const char *role = json_string_value(json_object_get(message, "role"));
    const json_t *content = tn_json_member(message, "content");
    json_t *calls = json_object_get(message, "tool_calls");
    bool has_calls = json_is_array(calls) && json_array_size(calls) > 0, has_reasoning;
    const char *param = task->gen.api->conversation;
    if (!role || !role[0])
        return tn_refuse(r, 400, param, "message %zu: \"role\" must be a string", i);
    if (json_array_size(json_object_get(message, "images")) > 0)
        return tn_refuse(r, 400, param, "message %zu: this model does not support images", i);
    if (!tn_reasoning_normalise(message, &has_reasoning, r) ||
        !rename_role(message, role, i, param, r))
        return false;
    if (json_is_array(content)) {
        json_t *joined = join_parts(task, content, i, r);
        if (!joined || !tn_json_put(message, "content", joined, r))
            return false;
    } else if (content && !json_is_string(content)) {
        return tn_refuse(r, 400, param,
                         "message %zu: \"content\" must be a string or an array of parts", i);
    } else if (!content && !has_calls && !has_reasoning && !may_omit_content(message)) {
        return tn_refuse(r, 400, param, "message %zu has no \"content\"", i);
    } else if (!content && !tn_json_put(message, "content", text_without_content(message), r)) {
        return false;
    }
    if (has_calls)
        return open_arguments(task, calls, r);
    json_object_del(message, "tool_calls");
    return true;
}

static json_t *read_messages(struct tn_task *task, const json_t *messages, struct tn_refusal *r)
{
    const char *param = task->gen.api->conversation;
    if (!json_is_array(messages) || json_array_size(messages) == 0) {
        tn_refuse(r, 400, param, "\"messages\" must be an array of messages, not empty");
        return NULL;
    }
    json_t *copy = tn_json_copy(messages, r);
    for (size_t i = 0; i < json_array_size(copy); i++) {
        json_t *message = json_array_get(copy, i);
        if (!json_is_object(message)) {
            tn_refuse(r, 400, param, "message %zu is not an object", i);
            json_decref(copy);
            return NULL;
        }
        if (!normalise(task, message, i, r)) {
            json_decref(copy);
            return NULL;
        }
    }
    return copy;
}

/* Refuses with the error of the template (*is_rejected) or of parsing its JSON. */
static bool refuse_conversation(const struct tn_task *task, const struct tern_error *err,
                                bool *is_rejected, struct tn_refusal *r)
{
    *is_rejected = err->status == TERN_USAGE;
    if (err->status == TERN_MEMORY)
        return tn_refuse(r, 503, NULL, "%s", err->detail);
    if (err->status != TERN_INTERRUPTED)
        return tn_refuse(r, 400, task->gen.api->conversation, "%s", err->detail);
    tn_refuse_end(r);
    return false;
}

/* Finds the format of tool calls; refuses templates without one.  A template that supports tools
 * may still refuse the conversation. */
static bool find_call_form(struct tn_task *task, const struct tn_buf *json, bool *is_rejected,
                           struct tn_refusal *r)
{
    const struct tn_server *server = task->server;
    const struct tn_server_model *model = task->model;
    struct tern_error err;
    tern_status status = tern_chat_call_form(&task->call_form, model->chat, json->data,
                                             json->n_bytes, &task->chat_params, &err);
    if (status == TERN_OK)
        return true;
    if (status == TERN_MEMORY || status == TERN_INTERRUPTED)
        return refuse_conversation(task, &err, is_rejected, r);
    if (status == TERN_UNSUPPORTED || !server->has_tools[tn_server_index(server, model)])
        return tn_refuse(r, 400, "tools", "\"%s\" does not support tools: %s", model->id,
                         err.detail);
    return refuse_conversation(task, &err, is_rejected, r);
}

static bool encode_json(struct tn_task *task, const struct tn_buf *json, bool *is_rejected,
                        struct tn_refusal *r)
{
    const struct tn_server_model *model = task->model;
    const size_t max_ids = task->gen.n_choices > 0 ? model->n_ctx : SIZE_MAX; /* only counted */
    struct tern_error err;
    size_t n_least;
    tern_status status = tern_chat_encode_json_within(
        tern_model_tokenizer(model->model), model->chat, json->data, json->n_bytes,
        &task->chat_params, max_ids, &n_least, &task->ids, &err);
    if (status == TERN_OK && tern_model_has_state(model->model))
        tern_chat_marks_json(&task->marks, tern_model_tokenizer(model->model), model->chat,
                             json->data, json->n_bytes, &task->chat_params, &task->ids);
    if (status == TERN_OK)
        return true;
    if (n_least > 0)
        return tn_task_refuse_length(task, true, n_least, r);
    return refuse_conversation(task, &err, is_rejected, r);
}

static bool encode(struct tn_task *task, const json_t *conversation, bool *is_rejected,
                   struct tn_refusal *r)
{
    struct tn_buf json = {0};
    *is_rejected = false;
    const bool is_good =
        (tn_json_dump(&json, conversation) || tn_refuse_memory(r)) &&
        (!task->tools || find_call_form(task, &json, is_rejected, r)) &&
        encode_json(task, &json, is_rejected, r);
    tn_buf_fini(&json);
    return is_good;
}

/* Encodes the conversation, rewritten if the template rejects it for its system messages. */
static bool encode_any(struct tn_task *task, json_t *conversation, struct tn_refusal *r)
{
    const json_t *messages = json_object_get(conversation, "messages");
    bool is_rejected;
    if (encode(task, conversation, &is_rejected, r))
        return true;
    if (!is_rejected || !tn_late_system_exists(messages))
        return false;
    is_rejected = false;
    struct tn_refusal again = {0};
    const bool is_good =
        tn_body_hold_copies(task->server, &task->request, task->request.n_tree, &again) &&
        tn_json_put(conversation, "messages", tn_late_system_join(messages), &again) &&
        encode(task, conversation, &is_rejected, &again);
    if (is_good || !is_rejected)
        *r = again;
    return is_good; /* rejected twice: the first reason is about the messages of the request */
}

bool tn_chat_ids(struct tn_task *task, const json_t *messages, struct tn_refusal *r)
{
    if (!task->model->chat)
        return tn_refuse(r, 400, task->gen.api->conversation,
                         "model \"%s\" has no chat template; /v1/completions continues texts",
                         task->model->id);
    if (!tn_body_hold_copies(task->server, &task->request, task->request.n_tree, r))
        return false;
    json_t *copy = read_messages(task, messages, r);
    if (!copy)
        return false;
    json_t *begun;
    if (!tn_begun_answer_take(&begun, task, copy, r)) {
        json_decref(copy);
        return false;
    }
    tn_reasoning_strip(task, copy);
    json_t *conversation = json_object(), *variables;
    const json_t *prompts = tn_json_member(task->body, "add_generation_prompt");
    bool is_encoded = tn_json_put(conversation, "messages", copy, r) &&
                      tn_reasoning_variables(&variables, task, r) &&
                      (!variables || tn_json_put(conversation, "kwargs", variables, r)) &&
                      (!task->tools ||
                       tn_json_put(conversation, "tools", json_incref((json_t *)task->tools),
                                   r)) &&
                      (begun || !json_is_false(prompts) ||
                       tn_json_put(conversation, "add_generation_prompt", json_false(), r)) &&
                      encode_any(task, conversation, r) &&
                      (!task->tools || tn_tools_bind(task, r)) &&
                      (begun ? tn_begun_answer_append(task, begun, r)
                             : tn_reasoning_begin(task, r));
    json_decref(begun);
    json_decref(conversation);
    return is_encoded;
}

/* {"content":[...],"refusal":null} for the tokens [from, to). */
static void append_logprobs(struct tn_buf *out, const struct tn_task *task,
                            const struct tn_choice *choice, uint32_t from, uint32_t to)
{
    tn_buf_append_text(out, "{\"content\":");
    tn_logprobs_append(out, task, choice, from, to, false);
    tn_buf_append_text(out, ",\"refusal\":null}");
}

/* ---- streams ---- */

static void send_chunk(struct tn_task *task, uint32_t i_choice, const char *finish,
                       const struct tn_buf *delta, const struct tn_buf *logprobs)
{
    struct tn_buf json = {0};
    tn_openai_begin_answer(&json, task, "chatcmpl", "chat.completion.chunk");
    tn_buf_printf(&json, "{\"index\":%u,\"delta\":", i_choice);
    tn_buf_append(&json, delta->data, delta->n_bytes);
    tn_buf_append_text(&json, ",\"logprobs\":");
    if (logprobs && logprobs->n_bytes > 0)
        tn_buf_append(&json, logprobs->data, logprobs->n_bytes);
    else
        tn_buf_append_text(&json, "null");
    tn_buf_append_text(&json, ",\"finish_reason\":");
    tn_json_text(&json, finish);
    tn_buf_append_text(&json, "}");
    tn_openai_end_event(&json, task, &task->choices[i_choice], finish != NULL);
    json.failed = json.failed || delta->failed || (logprobs && logprobs->failed);
    tn_openai_send_event(task, &json);
}

static void begin_stream(struct tn_task *task)
{
    static const char first[] = "{\"role\":\"assistant\",\"content\":\"\"}";
    struct tn_buf delta = {.data = (char *)first, .n_bytes = sizeof first - 1};
    for (uint32_t i = 0; i < task->n_choices; i++)
        send_chunk(task, i, NULL, &delta, NULL);
}

/* Sends text, and the log-probabilities of tokens up to `to`, which end n_bytes after the first. */
static void send_text(struct tn_task *task, struct tn_choice *choice, uint32_t to,
                      size_t n_bytes)
{
    struct tn_buf delta = {0}, logprobs = {0};
    if (task->gen.has_logprobs)
        append_logprobs(&logprobs, task, choice, choice->n_shown, to);
    choice->n_shown = to;
    choice->n_shown_bytes = n_bytes;
    tn_buf_append_text(&delta, "{\"content\":");
    tn_json_tail(&delta, &choice->text, choice->n_sent);
    tn_buf_append_text(&delta, "}");
    choice->n_sent = choice->text.n_bytes;
    send_chunk(task, choice->job.i_choice, NULL, &delta, &logprobs);
    tn_buf_fini(&delta);
    tn_buf_fini(&logprobs);
}

static void send_reasoning(struct tn_task *task, struct tn_choice *choice)
{
    struct tn_buf delta = {0};
    tn_buf_append_text(&delta, "{\"reasoning_content\":");
    tn_json_tail(&delta, &choice->reasoning, choice->n_reasoning_sent);
    tn_buf_append_text(&delta, "}");
    choice->n_reasoning_sent = choice->reasoning.n_bytes;
    send_chunk(task, choice->job.i_choice, NULL, &delta, NULL);
    tn_buf_fini(&delta);
}

static void send_more(struct tn_task *task, struct tn_choice *choice)
{
    struct tn_buf delta = {0};
    size_t n_bytes;
    if (choice->reasoning.n_bytes > choice->n_reasoning_sent)
        send_reasoning(task, choice);
    uint32_t to = tn_choice_tokens_of(choice, choice->text.n_bytes, &n_bytes);
    if (choice->text.n_bytes > choice->n_sent || to > choice->n_shown)
        send_text(task, choice, to, n_bytes);
    while (tn_tools_append_delta(&delta, task, choice)) {
        send_chunk(task, choice->job.i_choice, NULL, &delta, NULL);
        tn_buf_clear(&delta);
    }
    tn_buf_fini(&delta);
}

static void send_progress(struct tn_task *task, const struct tn_choice *choice,
                          const struct tn_prompt_progress *progress)
{
    struct tn_buf json = {0};
    tn_openai_begin_answer(&json, task, "chatcmpl", "chat.completion.chunk");
    tn_buf_printf(&json,
                  "{\"index\":%u,\"delta\":{},\"logprobs\":null,\"finish_reason\":null}]",
                  choice->job.i_choice);
    tn_openai_append_progress(&json, progress);
    tn_buf_append_text(&json, "}");
    tn_openai_send_event(task, &json);
}

/* "stop", "length" or "tool_calls". */
static const char *finish_of(const struct tn_choice *choice)
{
    const char *finish = tn_choice_finish(choice);
    return tn_choice_n_calls(choice) > 0 && strcmp(finish, "stop") == 0 ? "tool_calls" : finish;
}

static void end_choice(struct tn_task *task, struct tn_choice *choice)
{
    struct tn_buf delta = {.data = "{}", .n_bytes = 2};
    if (task->gen.has_logprobs)
        send_more(task, choice); /* tokens that only the end decides */
    send_chunk(task, choice->job.i_choice, finish_of(choice), &delta, NULL);
}

/* ---- complete answers ---- */

static void append_choice(struct tn_buf *out, struct tn_task *task, uint32_t i)
{
    struct tn_choice *choice = &task->choices[i];
    size_t n_bytes;
    tn_buf_printf(out, "{\"index\":%u,\"message\":{\"role\":\"assistant\",\"content\":", i);
    const bool has_calls = tn_choice_n_calls(choice) > 0;
    if ((has_calls || task->must_call) && choice->text.n_bytes == 0)
        tn_buf_append_text(out, "null");
    else
        tn_json_tail(out, &choice->text, 0);
    if (choice->reasoning.n_bytes > 0) {
        tn_buf_append_text(out, ",\"reasoning_content\":");
        tn_json_tail(out, &choice->reasoning, 0);
    }
    if (has_calls)
        tn_tools_append_openai(out, task, choice);
    tn_buf_printf(out, ",\"refusal\":null},\"finish_reason\":\"%s\",\"logprobs\":",
                  finish_of(choice));
    if (task->gen.has_logprobs)
        append_logprobs(out, task, choice, choice->n_shown,
                        tn_choice_tokens_of(choice, choice->text.n_bytes, &n_bytes));
    else
        tn_buf_append_text(out, "null");
    tn_buf_append_text(out, "}");
}

static void end_answer(struct tn_task *task, struct tn_buf *out)
{
    if (task->gen.streams) {
        tn_openai_end_stream(task, "chatcmpl", "chat.completion.chunk");
        return;
    }
    tn_openai_begin_answer(out, task, "chatcmpl", "chat.completion");
    for (uint32_t i = 0; i < task->n_choices; i++) {
        tn_buf_append_text(out, i ? "," : "");
        append_choice(out, task, i);
    }
    tn_openai_end_answer(out, task);
}

static const struct tn_task_format chat_format = {
    .stream_type = "text/event-stream",
    .heartbeat = ": waiting\n\n",
    .streams_arguments = true,
    .error = tn_openai_error,
    .begin_stream = begin_stream,
    .send_more = send_more,
    .send_progress = send_progress,
    .end_choice = end_choice,
    .send_error = tn_openai_send_error,
    .end_answer = end_answer,
};

/* ---- the request ---- */

bool tn_chat_prepare(struct tn_task *task, struct tn_refusal *r)
{
    return tn_chat_ids(task, tn_json_member(task->body, "messages"), r);
}

bool tn_chat_read(struct tn_task *task, struct tn_refusal *r)
{
    return tn_gen_read_response_format(&task->gen, task->body, r) &&
           tn_tools_read(task, r) && tn_reasoning_read(task, r) &&
           tn_gen_read_openai(&task->gen, task->body, task->model, r);
}

static bool read_request(struct tn_task *task, struct tn_refusal *r)
{
    return tn_gen_refuse_others(task->body, "response_format", r) &&
           tn_gen_refuse_suffix(task->body, r) &&
           tn_gen_read_added_formats(&task->gen, task->body, r) && tn_chat_read(task, r) &&
           tn_begun_answer_read(task, r) && tn_logprobs_read(task, r);
}

void tn_route_chat(struct tn_server *server, struct tn_conn *conn)
{
    tn_task_answer(server, conn, &chat_format, read_request, tn_chat_prepare);
}

/* ---- llama.cpp's routes for the prompt of a conversation ---- */

/* Counts the ids of the prompt; computes nothing. */
void tn_route_chat_count(struct tn_server *server, struct tn_conn *conn)
{
    static const struct tn_task_format format = {
        .is_of_prompt = true, .error = tn_openai_error, .end_answer = tn_openai_end_count};
    tn_task_answer(server, conn, &format, read_request, tn_chat_prepare);
}

static void end_text(struct tn_task *task, struct tn_buf *out)
{
    struct tn_refusal refusal;
    char *text = NULL;
    size_t n = 0;
    out->failed = tern_tokenizer_decode(tn_task_tokenizer(task), task->ids.ids, task->ids.n, false,
                                        &text, &n, NULL) != TERN_OK ||
                  !tn_body_hold_out(task->server, &task->request, n * TN_JSON_ESCAPED, &refusal);
    if (!out->failed) {
        tn_buf_append_text(out, "{\"prompt\":");
        tn_json_string(out, text, n);
        tn_buf_append_text(out, "}");
    }
    tern_text_free(text);
}

/* POST /apply-template: answers with the text of the prompt; computes nothing. */
void tn_route_apply_template(struct tn_server *server, struct tn_conn *conn)
{
    static const struct tn_task_format format = {
        .is_of_prompt = true, .error = tn_openai_error, .end_answer = end_text};
    tn_task_answer(server, conn, &format, read_request, tn_chat_prepare);
}
