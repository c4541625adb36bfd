/* SPDX-License-Identifier: MIT
 *
 * POST /v1/messages and /v1/messages/count_tokens of Anthropic's API.
 *
 * An answer is a list of blocks: reasoning if requested, text, and tool calls.  A stream names each
 * event, and opens and closes the blocks.
 */
#include <inttypes.h>
#include <string.h>

#include "base/compiler.h"
#include "server/json_out.h"
#include "server/list_stream.h"
#include "server/openai.h"
#include "server/translate.h"

/* ---- errors ---- */

static const char *type_of(int status)
{
    static const struct {
        int status;
        const char *type;
    } types[] = {{401, "authentication_error"}, {403, "permission_error"},
                 {404, "not_found_error"}, {413, "request_too_large"},
                 {429, "rate_limit_error"}, {500, "api_error"}, {503, "overloaded_error"}};
    for (size_t i = 0; i < TN_COUNT_OF(types); i++)
        if (types[i].status == status)
            return types[i].type;
    return "invalid_request_error";
}

void tn_anthropic_error(struct tn_buf *out, const struct tn_refusal *r)
{
    tn_buf_printf(out, "{\"type\":\"error\",\"error\":{\"type\":\"%s\",\"message\":",
                  type_of(r->status));
    tn_json_text(out, r->message);
    tn_buf_append_text(out, "}}");
}

/* ---- JSON ---- */

static const char *stop_reason(const struct tn_choice *choice)
{
    const enum tern_stop stop = choice->job.result.stop;
    if (stop == TERN_STOP_STRING)
        return "stop_sequence";
    if (stop != TERN_STOP_EOS)
        return "max_tokens";
    return tn_choice_n_calls(choice) > 0 ? "tool_use" : "end_turn";
}

/* "stop_reason":"...","stop_sequence":null */
static void append_stop(struct tn_buf *out, const struct tn_task *task)
{
    const struct tn_choice *choice = &task->choices[0];
    tn_buf_printf(out, "\"stop_reason\":\"%s\",\"stop_sequence\":", stop_reason(choice));
    tn_json_text(out, choice->job.result.stop == TERN_STOP_STRING
                          ? task->gen.stops[choice->job.result.i_stop_string]
                          : NULL);
}

static void append_usage(struct tn_buf *out, uint64_t n_in, uint64_t n_cached, uint64_t n_out)
{
    tn_buf_printf(out,
                  "\"usage\":{\"input_tokens\":%" PRIu64 ",\"cache_creation_input_tokens\":0,"
                  "\"cache_read_input_tokens\":%" PRIu64 ",\"output_tokens\":%" PRIu64 "}",
                  n_in, n_cached, n_out);
}

/* Usage of the complete answer; cached prompt tokens are counted separately. */
static void append_final_usage(struct tn_buf *out, const struct tn_task *task)
{
    struct tn_usage_counts u;
    tn_task_usage(task, &u);
    append_usage(out, u.n_prompt - u.n_cached, u.n_cached, u.n_new);
}

/* {"id":...,"content":[ */
static void append_head(struct tn_buf *out, const struct tn_task *task)
{
    tn_buf_printf(out, "{\"id\":\"msg_%s\",\"type\":\"message\",\"role\":\"assistant\",\"model\":",
                  task->id);
    tn_json_text(out, task->model->id);
    tn_buf_append_text(out, ",\"content\":[");
}

/* {"type":"tool_use",...,"input":  */
static void append_call(struct tn_buf *out, const struct tn_task *task, size_t i)
{
    tn_buf_printf(out, "{\"type\":\"tool_use\",\"id\":\"toolu_%s_%zu\",\"name\":", task->id, i);
    tn_json_text(out, tern_calls_get(task->choices[0].calls, i).name);
    tn_buf_append_text(out, ",\"input\":");
}

/* ---- streams ---- */

/* {"type":"NAME","index":N  of the open block. */
static void begin_event(struct tn_buf *out, const char *name, const struct tn_choice *choice)
{
    tn_buf_printf(out, "{\"type\":\"%s\",\"index\":%u", name, choice->i_open);
}

static void begin_stream(struct tn_task *task)
{
    struct tn_buf json = {0};
    tn_buf_append_text(&json, "{\"type\":\"message_start\",\"message\":");
    append_head(&json, task);
    tn_buf_append_text(&json, "],\"stop_reason\":null,\"stop_sequence\":null,");
    append_usage(&json, task->ids.n, 0, 0);
    tn_buf_append_text(&json, "}}");
    tn_openai_send_named(task, "message_start", &json);
}

static void close_block(struct tn_task *task, struct tn_choice *choice)
{
    struct tn_buf json = {0};
    begin_event(&json, "content_block_stop", choice);
    tn_buf_append_text(&json, "}");
    tn_openai_send_named(task, "content_block_stop", &json);
}

/* Per kind of block: its start, and the prefix of each delta.  Signatures of reasoning are empty,
 * because nothing could verify them. */
static const struct {
    const char *begin, *delta;
} shapes[] = {
    [TN_OPEN_REASONING] = {"{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"",
                           "\"type\":\"thinking_delta\",\"thinking\""},
    [TN_OPEN_TEXT] = {"{\"type\":\"text\",\"text\":\"\"", "\"type\":\"text_delta\",\"text\""},
    [TN_OPEN_CALL] = {"{}", "\"type\":\"input_json_delta\",\"partial_json\""},
};

static void open_block(struct tn_task *task, struct tn_choice *choice)
{
    struct tn_buf json = {0};
    begin_event(&json, "content_block_start", choice);
    tn_buf_append_text(&json, ",\"content_block\":");
    if (choice->open == TN_OPEN_CALL)
        append_call(&json, task, choice->n_calls_sent - 1);
    tn_buf_append_text(&json, shapes[choice->open].begin);
    tn_buf_append_text(&json, "}}");
    tn_openai_send_named(task, "content_block_start", &json);
}

static void send_piece(struct tn_task *task, struct tn_choice *choice, const char *text, size_t n)
{
    struct tn_buf json = {0};
    begin_event(&json, "content_block_delta", choice);
    tn_buf_printf(&json, ",\"delta\":{%s:", shapes[choice->open].delta);
    tn_json_string(&json, text, n);
    tn_buf_append_text(&json, "}}");
    tn_openai_send_named(task, "content_block_delta", &json);
}

static const struct tn_list_stream blocks = {
    .open = open_block, .piece = send_piece, .close = close_block};

static void send_more(struct tn_task *task, struct tn_choice *choice)
{
    tn_list_more(&blocks, task, choice);
}

static void end_choice(struct tn_task *task, struct tn_choice *choice)
{
    tn_list_end(&blocks, task, choice);
}

static void send_error(struct tn_task *task, const struct tn_refusal *refusal)
{
    struct tn_buf json = {0};
    tn_anthropic_error(&json, refusal);
    tn_openai_send_named(task, "error", &json);
}

static void end_stream(struct tn_task *task)
{
    struct tn_buf delta = {0}, stop = {0};
    tn_buf_append_text(&delta, "{\"type\":\"message_delta\",\"delta\":{");
    append_stop(&delta, task);
    tn_buf_append_text(&delta, "},");
    append_final_usage(&delta, task);
    tn_buf_append_text(&delta, "}");
    tn_openai_send_named(task, "message_delta", &delta);
    tn_buf_append_text(&stop, "{\"type\":\"message_stop\"}");
    tn_openai_send_named(task, "message_stop", &stop);
}

/* ---- complete answers ---- */

static void append_blocks(struct tn_buf *out, const struct tn_task *task)
{
    const struct tn_choice *choice = &task->choices[0];
    for (struct tn_list_entry e = {0}; tn_list_next(choice, &e);) {
        tn_buf_append_text(out, e.i > 0 ? "," : "");
        if (e.kind != TN_OPEN_CALL) {
            tn_buf_append_text(out, e.kind == TN_OPEN_TEXT
                                        ? "{\"type\":\"text\",\"text\":"
                                        : "{\"type\":\"thinking\",\"signature\":\"\","
                                          "\"thinking\":");
            tn_json_string(out, e.text, e.n);
            tn_buf_append_text(out, "}");
        } else {
            append_call(out, task, e.i_call);
            tn_buf_append_text(out, tern_calls_get(choice->calls, e.i_call).arguments);
            tn_buf_append_text(out, "}");
        }
    }
}

static void end_answer(struct tn_task *task, struct tn_buf *out)
{
    if (task->gen.streams) {
        end_stream(task);
        return;
    }
    append_head(out, task);
    append_blocks(out, task);
    tn_buf_append_text(out, "],");
    append_stop(out, task);
    tn_buf_append_text(out, ",");
    append_final_usage(out, task);
    tn_buf_append_text(out, "}");
}

static const struct tn_task_format messages_format = {
    .stream_type = "text/event-stream",
    .heartbeat = "event: ping\ndata: {\"type\":\"ping\"}\n\n",
    .streams_arguments = true,
    .error = tn_anthropic_error,
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
           tn_translation_encode(task, tn_messages_conversation(task->request.root, r), r);
}

static bool read_request(struct tn_task *task, struct tn_refusal *r)
{
    static const char format[] = "output_config.format";
    static const struct tn_gen_api api = {
        .stops = "stop_sequences", .has_stop_list = true, .format = format,
        .json_schema = format, .schema = "output_config.format.schema",
        .conversation = "messages"};
    task->gen.api = &api;
    task->begun_answers = TN_BEGUN_CONTINUED;
    return tn_translation_read(task, tn_messages_parameters(task->request.root, r),
                               "output_config", r);
}

static bool read_for_answer(struct tn_task *task, struct tn_refusal *r)
{
    if (!tn_json_member(task->body, "max_tokens"))
        return tn_refuse(r, 400, "max_tokens", "\"max_tokens\" is missing");
    return read_request(task, r);
}

void tn_route_messages(struct tn_server *server, struct tn_conn *conn)
{
    tn_task_answer(server, conn, &messages_format, read_for_answer, prepare);
}

static void end_count(struct tn_task *task, struct tn_buf *out)
{
    tn_buf_printf(out, "{\"input_tokens\":%zu}", task->ids.n);
}

/* Counts the ids of a conversation; computes nothing. */
void tn_route_messages_count(struct tn_server *server, struct tn_conn *conn)
{
    static const struct tn_task_format format = {
        .is_of_prompt = true, .error = tn_anthropic_error, .end_answer = end_count};
    tn_task_answer(server, conn, &format, read_request, prepare);
}
