/* SPDX-License-Identifier: MIT
 *
 * POST /completion and /infill of llama.cpp's server.
 *
 * The events of a stream are separate objects without an end mark; several prompts yield an array.
 */
#include <string.h>

#include "base/text_match.h"
#include "server/answer_schema.h"
#include "server/infill.h"
#include "server/json_out.h"
#include "server/llama.h"
#include "server/logprobs.h"
#include "server/openai.h"

/* ---- JSON ---- */

static void append_ids(struct tn_buf *out, const struct tn_choice *choice, uint32_t from,
                       uint32_t to)
{
    tn_buf_append_text(out, ",\"tokens\":[");
    for (uint32_t i = from; i < to; i++)
        tn_buf_printf(out, i > from ? ",%u" : "%u", tn_choice_logprobs(choice, i)->id);
    tn_buf_append_text(out, "]");
}

/* Members of the events before the end of a choice. */
static void append_counts(struct tn_buf *out, const struct tn_choice *choice)
{
    tn_buf_printf(out,
                  ",\"id_slot\":-1,\"stop\":false,\"tokens_predicted\":%u,"
                  "\"tokens_evaluated\":%zu", choice->n_taken, choice->job.request.n_ids);
}

/* {"index":0,"content":"..."  with the tokens [n_shown, to) and the text after n_sent. */
static void append_piece(struct tn_buf *out, const struct tn_task *task,
                         const struct tn_choice *choice, uint32_t to)
{
    tn_buf_printf(out, "{\"index\":%u,\"content\":", choice->job.i_choice);
    tn_json_tail(out, &choice->text, choice->n_sent);
    append_ids(out, choice, choice->n_shown, to);
    if (task->gen.n_top > 0) {
        tn_buf_append_text(out, ",\"completion_probabilities\":");
        tn_logprobs_append(out, task, choice, choice->n_shown, to, true);
    }
}

static const char *stop_type(const struct tn_choice *choice)
{
    enum tern_stop stop = choice->job.result.stop;
    return stop == TERN_STOP_EOS ? "eos" : stop == TERN_STOP_STRING ? "word" : "limit";
}

static void append_prompt(struct tn_buf *out, const struct tn_task *task,
                          const struct tn_choice *choice)
{
    struct tern_error err;
    char *text;
    size_t n;
    const struct tern_request *request = &choice->job.request;
    tn_buf_append_text(out, ",\"prompt\":");
    if (tern_tokenizer_decode(tn_task_tokenizer(task), request->ids,
                              request->n_ids, false, &text, &n, &err) != TERN_OK) {
        out->failed = true;
        return;
    }
    tn_json_string(out, text, n);
    tern_text_free(text);
}

/* Members that are known at the end of a choice. */
static void append_end(struct tn_buf *out, const struct tn_task *task,
                       const struct tn_choice *choice)
{
    const struct tern_generate_result *r = &choice->job.result;
    const bool has_line =
        choice->text.n_bytes > 0 && memchr(choice->text.data, '\n', choice->text.n_bytes);
    tn_buf_append_text(out, ",\"id_slot\":-1,\"stop\":true,\"model\":");
    tn_json_text(out, task->model->id);
    tn_buf_printf(out,
                  ",\"tokens_predicted\":%u,\"tokens_evaluated\":%u,\"tokens_cached\":%u,"
                  "\"has_new_line\":%s,\"truncated\":false,\"stop_type\":\"%s\","
                  "\"stopping_word\":",
                  r->n_new, r->n_prompt, r->n_prompt + r->n_new - (r->n_new > 0),
                  has_line ? "true" : "false", stop_type(choice));
    tn_json_text(out, r->stop == TERN_STOP_STRING ? task->gen.stops[r->i_stop_string] : "");
    append_prompt(out, task, choice);
    tn_buf_append_text(out, ",\"generation_settings\":");
    tn_llama_append_settings(out, &task->gen);
    tn_openai_append_timings(out, choice);
    tn_buf_append_text(out, "}");
}

/* ---- selected members ---- */

#define MAX_FIELDS 32u

/* Refuses anything but names as "response_fields". */
static bool check_fields(const json_t *body, struct tn_refusal *r)
{
    static const char name[] = "response_fields";
    const json_t *fields = tn_json_member(body, name);
    const size_t n = json_array_size(fields);
    bool is_good = !fields || (json_is_array(fields) && n <= MAX_FIELDS);
    for (size_t i = 0; i < n && is_good; i++)
        is_good = json_is_string(json_array_get(fields, i));
    return is_good || tn_refuse(r, 400, name, "\"%s\" must be an array of at most %u strings", name,
                                MAX_FIELDS);
}

/* Appends the last object of a choice, or the members that the request selects.  Frees `json`. */
static void append_selected(struct tn_buf *out, const struct tn_task *task, struct tn_buf *json)
{
    const json_t *fields = tn_json_member(task->body, "response_fields");
    const char *paths[MAX_FIELDS];
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(fields); i++) {
        const char *path = json_string_value(json_array_get(fields, i));
        if (!tn_text_is_one_of(path, paths, n))
            paths[n++] = path;
    }
    if (n > 0)
        tn_json_pick(out, json, paths, n);
    else
        tn_buf_append(out, tn_buf_bytes(json), json->n_bytes);
    out->failed = out->failed || json->failed;
    tn_buf_fini(json);
}

/* ---- streams ---- */

static void send_piece(struct tn_task *task, struct tn_choice *choice, bool is_end)
{
    struct tn_buf json = {0}, event = {0};
    size_t n_bytes;
    uint32_t to = tn_choice_tokens_of(choice, choice->text.n_bytes, &n_bytes);
    append_piece(&json, task, choice, to);
    if (is_end) {
        append_end(&json, task, choice);
    } else {
        append_counts(&json, choice);
        tn_buf_append_text(&json, "}");
    }
    choice->n_sent = choice->text.n_bytes;
    choice->n_shown = to;
    choice->n_shown_bytes = n_bytes;
    if (is_end)
        append_selected(&event, task, &json);
    tn_openai_send_event(task, is_end ? &event : &json);
}

static void send_more(struct tn_task *task, struct tn_choice *choice)
{
    if (choice->text.n_bytes > choice->n_sent)
        send_piece(task, choice, false);
}

static void send_progress(struct tn_task *task, const struct tn_choice *choice,
                          const struct tn_prompt_progress *progress)
{
    struct tn_buf json = {0};
    append_piece(&json, task, choice, choice->n_shown); /* empty so far */
    append_counts(&json, choice);
    tn_openai_append_progress(&json, progress);
    tn_buf_append_text(&json, "}");
    tn_openai_send_event(task, &json);
}

static void end_choice(struct tn_task *task, struct tn_choice *choice)
{
    send_piece(task, choice, true);
}

/* ---- complete answers ---- */

static void end_answer(struct tn_task *task, struct tn_buf *out)
{
    if (task->gen.streams)
        return;
    tn_buf_append_text(out, task->n_choices > 1 ? "[" : "");
    for (uint32_t i = 0; i < task->n_choices; i++) {
        struct tn_choice *choice = &task->choices[i];
        struct tn_buf json = {0};
        size_t n_bytes;
        append_piece(&json, task, choice,
                     tn_choice_tokens_of(choice, choice->text.n_bytes, &n_bytes));
        append_end(&json, task, choice);
        tn_buf_append_text(out, i ? "," : "");
        append_selected(out, task, &json);
    }
    tn_buf_append_text(out, task->n_choices > 1 ? "]" : "");
}

static const struct tn_task_format llama_format = {
    .stream_type = "text/event-stream",
    .heartbeat = ": waiting\n\n",
    .error = tn_openai_error,
    .send_more = send_more,
    .send_progress = send_progress,
    .end_choice = end_choice,
    .send_error = tn_openai_send_error,
    .end_answer = end_answer,
};

/* ---- requests ---- */

static bool read_common(struct tn_task *task, struct tn_refusal *r)
{
    task->gen.api = &tn_gen_text_api;
    return tn_gen_read_llama_format(&task->gen, task->body, r) &&
           tn_gen_read_llama(&task->gen, task->body, task->model, r) &&
           check_fields(task->body, r);
}

static bool read_completion(struct tn_task *task, struct tn_refusal *r)
{
    return tn_gen_refuse_suffix(task->body, r) && read_common(task, r);
}

void tn_route_completion(struct tn_server *server, struct tn_conn *conn)
{
    tn_task_answer(server, conn, &llama_format, read_completion, tn_text_ids);
}

static bool get_text(const json_t *body, const char *name, struct tn_infill_text *out,
                     struct tn_refusal *r)
{
    return tn_json_get_text(body, name, &out->text, &out->n, r);
}

static bool read_gap(struct tn_infill_gap *gap, const json_t *body, struct tn_refusal *r)
{
    *gap = (struct tn_infill_gap){.typed = {"", 0},
                                  .extra = tn_json_member(body, "input_extra")};
    if (!get_text(body, "input_prefix", &gap->before, r) ||
        !get_text(body, "prompt", &gap->typed, r) ||
        !get_text(body, "input_suffix", &gap->after, r))
        return false;
    const char *missing = !gap->before.text ? "input_prefix"
                          : !gap->after.text ? "input_suffix"
                                             : NULL;
    return !missing || tn_refuse(r, 400, missing, "\"%s\" is missing", missing);
}

static bool prepare_infill(struct tn_task *task, struct tn_refusal *r)
{
    struct tn_infill_gap gap;
    return read_gap(&gap, task->body, r) && tn_infill_encode(task, &gap, r);
}

static bool read_infill(struct tn_task *task, struct tn_refusal *r)
{
    task->gen.fills_in = true;
    return tn_infill_check(task, 501, r) && read_common(task, r);
}

void tn_route_infill(struct tn_server *server, struct tn_conn *conn)
{
    tn_task_answer(server, conn, &llama_format, read_infill, prepare_infill);
}
