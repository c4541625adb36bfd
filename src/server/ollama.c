/* SPDX-License-Identifier: MIT
 *
 * POST /api/chat and /api/generate of Ollama's API.
 *
 * Errors are {"error":"text"}.  Answers are streamed by default: one JSON object per line.  The
 * last one says "done":true and has all durations in ns, never 0.
 */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "plat/plat.h"
#include "server/answer_schema.h"
#include "server/choice.h"
#include "server/infill.h"
#include "server/json_out.h"
#include "server/logprobs.h"
#include "server/ollama.h"
#include "server/openai.h"
#include "server/reasoning.h"
#include "server/tools.h"
#include "server/translate.h"

/* ---- answers ---- */

static void append_head(struct tn_buf *out, const struct tn_task *task)
{
    tn_buf_append_text(out, "{\"model\":");
    tn_json_text(out, task->called ? task->called : task->model->id);
    tn_buf_append_text(out, ",\"created_at\":");
    tn_ollama_append_time(out, (int64_t)time(NULL));
}

/* Appends what was not sent yet: text, reasoning before it, tool calls. */
static void append_rest(struct tn_buf *out, const struct tn_task *task)
{
    const struct tn_choice *choice = &task->choices[0];
    tn_buf_append_text(out, task->is_chat ? ",\"message\":{\"role\":\"assistant\",\"content\":"
                                         : ",\"response\":");
    tn_json_tail(out, &choice->text, choice->n_sent);
    if (choice->reasoning.n_bytes > choice->n_reasoning_sent) {
        tn_buf_append_text(out, ",\"thinking\":");
        tn_json_tail(out, &choice->reasoning, choice->n_reasoning_sent);
    }
    if (tn_choice_n_calls(choice) > choice->n_calls_sent)
        tn_tools_append_ollama(out, task, choice, choice->n_calls_sent);
    if (task->is_chat)
        tn_buf_append_text(out, "}");
}

static uint64_t ns_of(double seconds)
{
    return seconds > 0 ? (uint64_t)(seconds * 1e9) + 1 : 1;
}

static void append_counts(struct tn_buf *out, const struct tn_task *task)
{
    struct tn_usage_counts u;
    tn_task_usage(task, &u);
    tn_buf_printf(out,
                  ",\"total_duration\":%" PRIu64 ",\"load_duration\":1,"
                  "\"prompt_eval_count\":%" PRIu64 ",\"prompt_eval_duration\":%" PRIu64
                  ",\"eval_count\":%" PRIu64 ",\"eval_duration\":%" PRIu64 "}",
                  tn_now_ns() - task->waiting.request_ns + 1, u.n_prompt, ns_of(u.prompt_s),
                  u.n_new, ns_of(u.decode_s));
}

/* Prompt and answer as ids, which a client sends back with its next prompt. */
static void append_context(struct tn_buf *out, const struct tn_task *task)
{
    const struct tn_choice *choice = &task->choices[0];
    const struct tn_buf *text = choice->thinking ? &choice->raw : &choice->text;
    struct tern_ids ids = {0};
    tn_buf_append_text(out, ",\"context\":[");
    for (size_t i = 0; i < task->ids.n; i++)
        tn_buf_printf(out, i ? ",%u" : "%u", task->ids.ids[i]);
    if (tern_tokenizer_encode(tn_task_tokenizer(task), tn_buf_bytes(text), text->n_bytes, 0, &ids,
                              NULL) != TERN_OK)
        out->failed = true;
    for (size_t i = 0; i < ids.n; i++)
        tn_buf_printf(out, ",%u", ids.ids[i]);
    if (choice->end_id != TERN_NO_ID)
        tn_buf_printf(out, ",%u", choice->end_id);
    tn_buf_append_text(out, "]");
    tern_ids_free(&ids);
}

static void append_done(struct tn_buf *out, const struct tn_task *task)
{
    tn_buf_printf(out, ",\"done\":true,\"done_reason\":\"%s\"",
                  tn_choice_finish(&task->choices[0]));
    if (!task->is_chat)
        append_context(out, task);
    append_counts(out, task);
}

static void send_line(struct tn_task *task, struct tn_buf *line)
{
    tn_buf_append(line, "\n", 1);
    if (line->failed)
        tn_task_break(task);
    else
        tn_task_write(task, line->data, line->n_bytes);
    tn_buf_fini(line);
}

/* Log-probabilities of unsent tokens that are complete in the text so far. */
static void append_logprobs(struct tn_buf *out, const struct tn_task *task,
                            struct tn_choice *choice)
{
    size_t n_bytes;
    uint32_t to = tn_choice_tokens_of(choice, choice->text.n_bytes, &n_bytes);
    if (to == choice->n_shown)
        return;
    tn_buf_append_text(out, ",\"logprobs\":");
    tn_logprobs_append(out, task, choice, choice->n_shown, to, false);
    choice->n_shown = to;
    choice->n_shown_bytes = n_bytes;
}

static void send_more(struct tn_task *task, struct tn_choice *choice)
{
    struct tn_buf line = {0};
    if (!tn_choice_has_more(task, choice))
        return; /* the token ends inside a character */
    append_head(&line, task);
    append_rest(&line, task);
    append_logprobs(&line, task, choice);
    choice->n_calls_sent = tn_choice_n_calls(choice);
    tn_buf_append_text(&line, ",\"done\":false}");
    choice->n_sent = choice->text.n_bytes;
    choice->n_reasoning_sent = choice->reasoning.n_bytes;
    send_line(task, &line);
}

/* A line without text, as a heartbeat. */
static void write_heartbeat(struct tn_task *task)
{
    struct tn_buf line = {0};
    append_head(&line, task);
    tn_buf_append_text(&line, task->is_chat
                                  ? ",\"message\":{\"role\":\"assistant\",\"content\":\"\"}"
                                  : ",\"response\":\"\"");
    tn_buf_append_text(&line, ",\"done\":false}");
    send_line(task, &line);
}

static void send_error(struct tn_task *task, const struct tn_refusal *refusal)
{
    struct tn_buf line = {0};
    tn_ollama_error(&line, refusal);
    send_line(task, &line);
}

static void end_answer(struct tn_task *task, struct tn_buf *out)
{
    struct tn_choice *choice = &task->choices[0];
    struct tn_buf line = {0};
    struct tn_buf *to = task->gen.streams ? &line : out;
    append_head(to, task);
    append_rest(to, task);
    append_logprobs(to, task, choice);
    append_done(to, task);
    if (task->gen.streams)
        send_line(task, &line);
}

const struct tn_task_format tn_ollama_format = {
    .stream_type = "application/x-ndjson", .write_heartbeat = write_heartbeat,
    .error = tn_ollama_error, .send_more = send_more, .send_error = send_error,
    .end_answer = end_answer}; /* which also reports the end of the only choice */

/* ---- requests ---- */

static bool has_text(const struct tn_task *task, const char *key)
{
    const json_t *value = tn_json_member(task->body, key);
    return value && !(json_is_string(value) && json_string_length(value) == 0);
}

/* Refuses unsupported fields that would change the answer; neutral values such as images: [] pass.
 */
static bool refuse_others(const struct tn_task *task, struct tn_refusal *r)
{
    const char *id = task->model->id;
    const json_t *images = tn_json_member(task->body, "images");
    if (images && !(json_is_array(images) && json_array_size(images) == 0))
        return tn_refuse(r, 400, "images", "\"%s\" does not support images", id);
    if (has_text(task, "template"))
        return tn_refuse(r, 400, "template", "\"template\" is not supported in requests");
    return tn_gen_refuse_others(task->body, "format", r) &&
           tn_gen_refuse_others(tn_json_member(task->body, "options"), "", r);
}

static bool read_common(struct tn_task *task, struct tn_refusal *r)
{
    task->gen.streams = true;
    (void)tn_json_get_text(task->body, "model", &task->called, NULL, r);
    return tn_json_get_bool(task->body, "stream", &task->gen.streams, r) &&
           tn_gen_read_format(&task->gen, task->body, r) &&
           (task->is_chat ? tn_gen_refuse_suffix(task->body, r) && tn_tools_read(task, r)
                          : tn_infill_read_suffix(task, r)) &&
           tn_gen_read_options(&task->gen, tn_json_member(task->body, "options"), task->model, r) &&
           tn_logprobs_read(task, r) && refuse_others(task, r) && tn_reasoning_read_think(task, r);
}

/* An empty prompt asks to load or unload the model, which is always loaded. */
static void answer_load(struct tn_task *task)
{
    const json_t *keep = tn_json_member(task->body, "keep_alive");
    struct tn_buf body = {0};
    bool unloads = json_is_number(keep) && json_number_value(keep) == 0;
    append_head(&body, task);
    append_rest(&body, task);
    tn_buf_printf(&body, ",\"done\":true,\"done_reason\":\"%s\"}", unloads ? "unload" : "load");
    tn_reply_json(task->conn, 200, &body);
    tn_task_free(task);
}

void tn_route_ollama_chat(struct tn_server *server, struct tn_conn *conn)
{
    struct tn_refusal refusal;
    struct tn_task *task = tn_task_new(server, conn, &tn_ollama_format);
    if (!task)
        return;
    const json_t *messages = tn_json_member(task->body, "messages");
    task->is_chat = true;
    task->begun_answers = TN_BEGUN_CONTINUED;
    if (!read_common(task, &refusal))
        tn_task_refuse(task, &refusal);
    else if (!messages || (json_is_array(messages) && json_array_size(messages) == 0))
        answer_load(task);
    else
        tn_task_start(task, tn_chat_prepare);
}

/* Encodes the prompt as one turn of a conversation. */
static bool encode_turn(struct tn_task *task, const char *prompt, size_t n, struct tn_refusal *r)
{
    const char *system = NULL;
    size_t n_system = 0;
    if (!tn_json_get_text(task->body, "system", &system, &n_system, r))
        return false;
    struct tn_translation t = {0};
    json_t *messages = json_array();
    if (n_system > 0)
        tn_translation_set(&t, tn_translation_message(&t, messages, "system"), "content",
                           json_stringn(system, n_system));
    tn_translation_set(&t, tn_translation_message(&t, messages, "user"), "content",
                       json_stringn(prompt, n));
    return tn_translation_encode(task, tn_translation_end(&t, messages, r), r);
}

/* Prepends the ids of "context"; the prompt's BOS is dropped if they have one.  Marks in the prompt
 * move with it; 0 is none. */
static bool prepend_context(struct tn_task *task, struct tn_refusal *r)
{
    const struct tern_model *model = task->model->model;
    const json_t *context = tn_json_member(task->body, "context");
    struct tern_ids *prompt = &task->ids, all = {0};
    if (!context || (json_is_array(context) && json_array_size(context) == 0))
        return true;
    if (!json_is_array(context))
        return tn_refuse(r, 400, "context", "\"context\" must be an array of ids");
    if (!tn_json_take_ids(context, "context", tern_model_config(model)->vocab, &all, r)) {
        tern_ids_free(&all);
        return false;
    }
    const size_t skip = prompt->n > 0 && prompt->ids[0] == all.ids[0] &&
                        tern_tokenizer_is_special(tern_model_tokenizer(model), all.ids[0]);
    const size_t n_moved = all.n - skip;
    if (!tn_task_add_ids(&all, prompt->ids + skip, prompt->n - skip, r)) {
        tern_ids_free(&all);
        return false;
    }
    tern_ids_free(prompt);
    *prompt = all;
    task->marks.n_system += task->marks.n_system ? (uint32_t)n_moved : 0;
    task->marks.n_turn += task->marks.n_turn ? (uint32_t)n_moved : 0;
    return true;
}

/* Encodes a turn of a conversation; with "suffix" a gap; with "raw" or without a template, the
 * prompt verbatim. */
static bool prepare_generate(struct tn_task *task, struct tn_refusal *r)
{
    bool is_raw = false;
    const char *prompt = "";
    size_t n = 0;
    if (!tn_json_get_bool(task->body, "raw", &is_raw, r) ||
        !tn_json_get_text(task->body, "prompt", &prompt, &n, r))
        return false;
    if (task->gen.fills_in)
        return tn_infill_prepare(task, r) && prepend_context(task, r);
    if (!is_raw && task->model->chat)
        return encode_turn(task, prompt, n, r) && prepend_context(task, r);
    const bool may_think = task->reasoning == TN_REASONING_ON;
    if (!tn_task_encode(task, &task->ids, prompt, n, TERN_ENCODE_PARSE_SPECIAL, r))
        return false;
    if (tern_tokenizer_add_special(tn_task_tokenizer(task), &task->ids, 0, NULL, NULL) != TERN_OK)
        return tn_refuse_memory(r);
    return prepend_context(task, r) && (!may_think || tn_reasoning_begin(task, r));
}

void tn_route_ollama_generate(struct tn_server *server, struct tn_conn *conn)
{
    struct tn_refusal refusal;
    const char *prompt = "";
    size_t n = 0;
    struct tn_task *task = tn_task_new(server, conn, &tn_ollama_format);
    if (!task)
        return;
    task->keeps_raw = true;
    if (!read_common(task, &refusal) ||
        !tn_json_get_text(task->body, "prompt", &prompt, &n, &refusal))
        tn_task_refuse(task, &refusal);
    else if (n == 0)
        answer_load(task);
    else
        tn_task_start(task, prepare_generate);
}
