/* SPDX-License-Identifier: MIT
 *
 * POST /v1/responses of OpenAI's API, without stored conversations.
 *
 * An answer is a list of items: reasoning, a message, and tool calls.  A stream names and numbers
 * its events, and opens and closes the items.
 */
#include <inttypes.h>
#include <string.h>

#include "base/json_dump.h"
#include "server/json_out.h"
#include "server/list_stream.h"
#include "server/logprobs.h"
#include "server/openai.h"
#include "server/translate.h"

/* ---- JSON ---- */

static const char *status_of(const struct tn_task *task)
{
    return strcmp(tn_choice_finish(&task->choices[0]), "stop") == 0 ? "completed" : "incomplete";
}

#define MAX_ECHO ((size_t)64 << 10) /* a stream repeats it three times */

/* ,"key":VALUE as the request has it, or `otherwise` if it is absent or very long. */
static void append_echo(struct tn_buf *out, const struct tn_task *task, const char *key,
                        const char *otherwise)
{
    const json_t *value = tn_json_member(task->request.root, key);
    if (value && json_dumpb(value, NULL, 0, JSON_COMPACT | JSON_ENCODE_ANY) > MAX_ECHO)
        value = NULL;
    tn_buf_printf(out, ",\"%s\":", key);
    if (value)
        tn_json_dump(out, value);
    else
        tn_buf_append_text(out, otherwise);
}

/* Per kind of item: prefix of its ids, its type and constant members, the start of its parts, its
 * events, and their name for the text. */
static const struct {
    const char *id, *type, *part, *delta, *done, *key;
} kinds[] = {
    [TN_OPEN_REASONING] = {"rs", "\"reasoning\",\"summary\":[]", "{\"type\":\"reasoning_text\"",
                           "response.reasoning_text.delta", "response.reasoning_text.done",
                           "text"},
    [TN_OPEN_TEXT] = {"msg", "\"message\",\"role\":\"assistant\"",
                      "{\"type\":\"output_text\",\"annotations\":[]",
                      "response.output_text.delta", "response.output_text.done", "text"},
    [TN_OPEN_CALL] = {"fc", "\"function_call\"", NULL, "response.function_call_arguments.delta",
                      "response.function_call_arguments.done", "arguments"},
};

/* The log-probabilities of the text are in the final response, and in a stream's pieces.  Calls and
 * text after them have none: the format has no place for those of calls. */
static void append_logprobs(struct tn_buf *out, const struct tn_task *task, bool is_first)
{
    const struct tn_choice *choice = &task->choices[0];
    const uint32_t to = task->is_ended && is_first ? choice->n_shown : choice->n_skipped;
    tn_buf_append_text(out, ",\"logprobs\":");
    tn_logprobs_append(out, task, choice, choice->n_skipped, to, false);
}

/* Appends those of the tokens in the first n_bytes of the text that were not shown yet. */
static void append_more_logprobs(struct tn_buf *out, const struct tn_task *task,
                                 struct tn_choice *choice, size_t n_bytes)
{
    const uint32_t from = choice->n_shown;
    choice->n_shown = tn_choice_tokens_before_calls(task, choice, n_bytes, &choice->n_shown_bytes);
    tn_buf_append_text(out, ",\"logprobs\":");
    tn_logprobs_append(out, task, choice, from, choice->n_shown, false);
}

static void append_part(struct tn_buf *out, const struct tn_task *task, enum tn_open kind,
                        const char *text, size_t n)
{
    tn_buf_append_text(out, kinds[kind].part);
    if (kind == TN_OPEN_TEXT)
        append_logprobs(out, task, n == 0 || text == task->choices[0].text.data);
    tn_buf_append_text(out, ",\"text\":");
    tn_json_string(out, text, n);
    tn_buf_append_text(out, "}");
}

/* {"id":...,"type":...,"status":... of item i */
static void begin_item(struct tn_buf *out, const struct tn_task *task, enum tn_open kind,
                       uint32_t i, const char *status)
{
    tn_buf_printf(out, "{\"id\":\"%s_%s_%u\",\"type\":%s,\"status\":\"%s\"", kinds[kind].id,
                  task->id, i, kinds[kind].type, status);
}

/* Item i, reasoning or a message, with n bytes of text; NULL: without a part so far. */
static void append_words(struct tn_buf *out, const struct tn_task *task, enum tn_open kind,
                         uint32_t i, const char *text, size_t n, const char *status)
{
    begin_item(out, task, kind, i, status);
    tn_buf_append_text(out, ",\"content\":[");
    if (text)
        append_part(out, task, kind, text, n);
    tn_buf_append_text(out, "]}");
}

/* The length of the namespace in a call's name, which tn_translation_tools() added; 0: none. */
static size_t namespace_length(const struct tn_task *task, const char *name)
{
    const json_t *tools = tn_json_member(task->request.root, "tools");
    for (size_t i = 0; i < json_array_size(tools); i++) {
        const json_t *tool = json_array_get(tools, i);
        const char *group = json_string_value(tn_json_member(tool, "name"));
        const size_t n = group && tn_json_has_type(tool, "namespace") ? strlen(group) : 0;
        if (n > 0 && strncmp(name, group, n) == 0 && name[n] == '.')
            return n;
    }
    return 0;
}

/* ,"name":... of a call, and its namespace. */
static void append_name(struct tn_buf *out, const struct tn_task *task, size_t i_call)
{
    const char *name = tern_calls_get(task->choices[0].calls, i_call).name;
    const size_t n = namespace_length(task, name);
    tn_buf_append_text(out, ",\"name\":");
    tn_json_text(out, n > 0 ? name + n + 1 : name);
    if (n > 0) {
        tn_buf_append_text(out, ",\"namespace\":");
        tn_json_string(out, name, n);
    }
}

/* Item i, a tool call. */
static void append_call(struct tn_buf *out, const struct tn_task *task, uint32_t i, size_t i_call,
                        const char *arguments, const char *status)
{
    begin_item(out, task, TN_OPEN_CALL, i, status);
    tn_buf_printf(out, ",\"call_id\":\"call_%s_%zu\"", task->id, i_call);
    append_name(out, task, i_call);
    tn_buf_append_text(out, ",\"arguments\":");
    tn_json_text(out, arguments);
    tn_buf_append_text(out, "}");
}

static void append_items(struct tn_buf *out, const struct tn_task *task)
{
    const struct tn_choice *choice = &task->choices[0];
    struct tn_list_entry e = {0}, next = e;
    for (bool is_more = tn_list_next(choice, &next); is_more;) {
        e = next;
        is_more = tn_list_next(choice, &next);
        const char *status = is_more ? "completed" : status_of(task); /* of the last item */
        tn_buf_append_text(out, e.i > 0 ? "," : "");
        if (e.kind != TN_OPEN_CALL)
            append_words(out, task, e.kind, e.i, e.text, e.n, status);
        else
            append_call(out, task, e.i, e.i_call,
                        tern_calls_get(choice->calls, e.i_call).arguments, status);
    }
}

static void append_usage(struct tn_buf *out, const struct tn_task *task)
{
    struct tn_usage_counts u;
    tn_task_usage(task, &u);
    tn_buf_printf(out,
                  ",\"usage\":{\"input_tokens\":%" PRIu64
                  ",\"input_tokens_details\":{\"cached_tokens\":%" PRIu64
                  "},\"output_tokens\":%" PRIu64
                  ",\"output_tokens_details\":{\"reasoning_tokens\":%" PRIu64
                  "},\"total_tokens\":%" PRIu64 "}",
                  u.n_prompt, u.n_cached, u.n_new, u.n_reasoning, u.n_prompt + u.n_new);
}

/* The response object, complete or as at its start. */
static void append_response(struct tn_buf *out, const struct tn_task *task, bool is_whole)
{
    const char *status = is_whole ? status_of(task) : "in_progress";
    tn_buf_printf(out,
                  "{\"id\":\"resp_%s\",\"object\":\"response\",\"created_at\":%" PRId64
                  ",\"status\":\"%s\",\"background\":false,\"error\":null,"
                  "\"incomplete_details\":%s,\"previous_response_id\":null,\"store\":false,"
                  "\"truncation\":\"disabled\","
                  "\"temperature\":%g,\"top_p\":%g,\"max_output_tokens\":%u,\"model\":",
                  task->id, task->created, status,
                  status[0] == 'i' && is_whole ? "{\"reason\":\"max_output_tokens\"}" : "null",
                  (double)task->gen.sampler.temperature, (double)task->gen.sampler.top_p,
                  task->gen.max_tokens);
    tn_json_text(out, task->model->id);
    append_echo(out, task, "instructions", "null");
    append_echo(out, task, "metadata", "{}");
    append_echo(out, task, "reasoning", "{\"effort\":null,\"summary\":null}");
    append_echo(out, task, "text", "{\"format\":{\"type\":\"text\"}}");
    append_echo(out, task, "tools", "[]");
    append_echo(out, task, "tool_choice", "\"auto\"");
    append_echo(out, task, "parallel_tool_calls", "true");
    append_echo(out, task, "top_logprobs", "0");
    tn_buf_append_text(out, ",\"output\":[");
    if (is_whole)
        append_items(out, task);
    tn_buf_append_text(out, "]");
    if (is_whole)
        append_usage(out, task);
    else
        tn_buf_append_text(out, ",\"usage\":null");
    tn_buf_append_text(out, "}");
}

/* ---- streams ---- */

/* {"type":"NAME","sequence_number":N */
static void begin_event(struct tn_buf *out, struct tn_task *task, const char *name)
{
    tn_buf_printf(out, "{\"type\":\"%s\",\"sequence_number\":%u", name, task->n_events++);
}

static void end_event(struct tn_buf *out, struct tn_task *task, const char *name)
{
    tn_buf_append_text(out, "}");
    tn_openai_send_named(task, name, out);
}

static void send_response(struct tn_task *task, const char *name, bool is_whole)
{
    struct tn_buf json = {0};
    begin_event(&json, task, name);
    tn_buf_append_text(&json, ",\"response\":");
    append_response(&json, task, is_whole);
    end_event(&json, task, name);
}

/* About the open item: ,"item_id":...,"output_index":N */
static void begin_item_event(struct tn_buf *out, struct tn_task *task, const char *name)
{
    const struct tn_choice *choice = &task->choices[0];
    const uint32_t i = choice->i_open;
    begin_event(out, task, name);
    tn_buf_printf(out, ",\"item_id\":\"%s_%s_%u\",\"output_index\":%u", kinds[choice->open].id,
                  task->id, i, i);
    if (choice->open != TN_OPEN_CALL)
        tn_buf_append_text(out, ",\"content_index\":0");
}

static void send_piece(struct tn_task *task, const char *name, const char *key, const char *text,
                       size_t n)
{
    struct tn_choice *choice = &task->choices[0];
    const bool is_delta = strcmp(key, "delta") == 0;
    struct tn_buf json = {0};
    begin_item_event(&json, task, name);
    tn_buf_printf(&json, ",\"%s\":", key);
    tn_json_string(&json, text, n);
    if (choice->open == TN_OPEN_TEXT && is_delta)
        append_more_logprobs(&json, task, choice, choice->n_sent + n);
    else if (choice->open == TN_OPEN_TEXT)
        append_logprobs(&json, task, false);
    if (choice->open == TN_OPEN_CALL && !is_delta)
        append_name(&json, task, choice->n_calls_sent - 1);
    end_event(&json, task, name);
}

static void send_part(struct tn_task *task, const char *name, const char *text, size_t n)
{
    struct tn_buf json = {0};
    begin_item_event(&json, task, name);
    tn_buf_append_text(&json, ",\"part\":");
    append_part(&json, task, task->choices[0].open, text, n);
    end_event(&json, task, name);
}

/* Sends the current state of the open item; text NULL: nothing of it exists yet. */
static void send_item(struct tn_task *task, const char *name, const char *text, size_t n,
                      const char *status)
{
    const struct tn_choice *choice = &task->choices[0];
    struct tn_buf json = {0};
    begin_event(&json, task, name);
    tn_buf_printf(&json, ",\"output_index\":%u,\"item\":", choice->i_open);
    if (choice->open == TN_OPEN_CALL)
        append_call(&json, task, choice->i_open, choice->n_calls_sent - 1, text ? text : "",
                    status);
    else
        append_words(&json, task, choice->open, choice->i_open, text, n, status);
    end_event(&json, task, name);
}

static void begin_stream(struct tn_task *task)
{
    send_response(task, "response.created", false);
    send_response(task, "response.in_progress", false);
}

/* An event, not a comment: clients such as Codex count only events against their timeouts. */
static void write_heartbeat(struct tn_task *task)
{
    send_response(task, "response.in_progress", false);
}

static void open_item(struct tn_task *task, struct tn_choice *choice)
{
    send_item(task, "response.output_item.added", NULL, 0, "in_progress");
    if (choice->open != TN_OPEN_CALL)
        send_part(task, "response.content_part.added", "", 0);
}

static void piece_of_item(struct tn_task *task, struct tn_choice *choice, const char *text,
                          size_t n)
{
    send_piece(task, kinds[choice->open].delta, "delta", text, n);
}

/* The n bytes of text in the open item. */
static const char *open_text(const struct tn_choice *choice, size_t *n)
{
    const char *arguments;
    switch (choice->open) {
    case TN_OPEN_REASONING:
        *n = choice->n_reasoning_sent;
        return choice->reasoning.data;
    case TN_OPEN_TEXT:
        *n = choice->n_sent - choice->open_from;
        return choice->text.data ? choice->text.data + choice->open_from : "";
    default:
        arguments = tern_calls_get(choice->calls, choice->n_calls_sent - 1).arguments;
        *n = strlen(arguments);
        return arguments;
    }
}

static void close_item(struct tn_task *task, struct tn_choice *choice)
{
    const enum tn_open open = choice->open;
    size_t n, n_token_bytes;
    const char *text = open_text(choice, &n);
    if (open == TN_OPEN_TEXT && choice->n_shown < tn_choice_tokens_before_calls(
                                                      task, choice, choice->n_sent,
                                                      &n_token_bytes))
        piece_of_item(task, choice, "", 0); /* tokens that only the end of the text decides */
    send_piece(task, kinds[open].done, kinds[open].key, text, n);
    if (open != TN_OPEN_CALL)
        send_part(task, "response.content_part.done", text, n);
    const bool is_last = choice->has_ended && choice->n_sent == choice->text.n_bytes &&
                         choice->n_calls_sent == tn_choice_n_calls(choice);
    send_item(task, "response.output_item.done", text, n,
              is_last ? status_of(task) : "completed");
}

static const struct tn_list_stream items = {
    .open = open_item, .piece = piece_of_item, .close = close_item};

static void send_more(struct tn_task *task, struct tn_choice *choice)
{
    tn_list_more(&items, task, choice);
}

static void end_choice(struct tn_task *task, struct tn_choice *choice)
{
    tn_list_end(&items, task, choice);
}

static void send_error(struct tn_task *task, const struct tn_refusal *refusal)
{
    struct tn_buf json = {0};
    begin_event(&json, task, "error");
    tn_buf_append_text(&json, ",\"code\":\"server_error\",\"param\":null,\"message\":");
    tn_json_text(&json, refusal->message);
    end_event(&json, task, "error");
}

static void end_answer(struct tn_task *task, struct tn_buf *out)
{
    struct tn_choice *choice = &task->choices[0];
    choice->n_shown = tn_choice_tokens_before_calls(task, choice, choice->text.n_bytes,
                                                    &choice->n_shown_bytes);
    if (!task->gen.streams)
        append_response(out, task, true);
    else if (strcmp(status_of(task), "completed") == 0)
        send_response(task, "response.completed", true);
    else
        send_response(task, "response.incomplete", true);
}

static const struct tn_task_format responses_format = {
    .stream_type = "text/event-stream",
    .write_heartbeat = write_heartbeat,
    .streams_arguments = true,
    .error = tn_openai_error,
    .begin_stream = begin_stream,
    .send_more = send_more,
    .end_choice = end_choice,
    .send_error = send_error,
    .end_answer = end_answer,
};

/* ---- requests ---- */

static bool prepare(struct tn_task *task, struct tn_refusal *r)
{
    return tn_translation_hold(task, r) &&
           tn_translation_encode(task, tn_responses_conversation(task->request.root, r), r);
}

static bool read_request(struct tn_task *task, struct tn_refusal *r)
{
    static const char format[] = "text.format";
    static const struct tn_gen_api api = {
        .stops = "stop", .format = format, .json_schema = format,
        .schema = "text.format.schema", .conversation = "input"};
    task->gen.api = &api;
    return tn_translation_read(task, tn_responses_parameters(task->request.root, r), "text", r) &&
           tn_logprobs_read(task, r);
}

void tn_route_responses(struct tn_server *server, struct tn_conn *conn)
{
    tn_task_answer(server, conn, &responses_format, read_request, prepare);
}

/* ---- number of input tokens ---- */

/* Counts the ids of a prompt; computes nothing. */
void tn_route_responses_count(struct tn_server *server, struct tn_conn *conn)
{
    static const struct tn_task_format format = {
        .is_of_prompt = true, .error = tn_openai_error, .end_answer = tn_openai_end_count};
    tn_task_answer(server, conn, &format, read_request, prepare);
}
