/* SPDX-License-Identifier: MIT
 *
 * Ollama's API: what its programs ask about models, /api/chat and /api/generate.
 *
 * Errors are {"error":"text"}.  Streams are lines of JSON, never empty ones, and the default.  The
 * last object of an answer says "done":true and how long everything took, in ns, never 0.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/compiler.h"
#include "plat/plat.h"
#include "server/answer_schema.h"
#include "server/json_out.h"
#include "server/openai.h"
#include "server/tools.h"
#include "tern/version.h"

void tn_ollama_refuse(struct tn_conn *conn, const struct tn_refusal *refusal)
{
    struct tn_buf body = {0};
    tn_buf_append_text(&body, "{\"error\":");
    tn_json_text(&body, refusal->message);
    tn_buf_append_text(&body, "}");
    tn_reply(conn, refusal->status, "application/json",
             refusal->status == 503 ? "Retry-After: 1\r\n" : NULL, body.data, body.n_bytes);
    tn_buf_fini(&body);
}

/* "2026-11-22T20:05:00.123456789Z" */
static void append_time(struct tn_buf *out, int64_t seconds)
{
    time_t moment = (time_t)seconds;
    const struct tm *t = gmtime(&moment);
    if (t)
        tn_buf_printf(out, "\"%04d-%02d-%02dT%02d:%02d:%02dZ\"", t->tm_year + 1900, t->tm_mon + 1,
                      t->tm_mday, t->tm_hour, t->tm_min, t->tm_sec);
    else
        tn_buf_append_text(out, "\"1970-01-01T00:00:00Z\"");
}

/* ---- answers ---- */

static void append_head(struct tn_buf *out, const struct tn_task *task)
{
    tn_buf_append_text(out, "{\"model\":");
    tn_json_text(out, task->called ? task->called : task->model->id);
    tn_buf_append_text(out, ",\"created_at\":");
    append_time(out, (int64_t)time(NULL));
}

/* The text and, from call `first` on, the calls of tools. */
static void append_text(struct tn_buf *out, const struct tn_task *task, const char *text, size_t n,
                        size_t first)
{
    tn_buf_append_text(out, task->is_chat ? ",\"message\":{\"role\":\"assistant\",\"content\":"
                                         : ",\"response\":");
    tn_json_string(out, text ? text : "", n);
    if (tn_choice_n_calls(&task->choices[0]) > first)
        tn_tools_append_ollama(out, task, &task->choices[0], first);
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
                  tn_now_ns() - task->waiting.began_ns + 1, u.n_prompt, ns_of(u.prompt_s), u.n_new,
                  ns_of(u.decode_s));
}

/* /api/generate hands the ids of prompt and answer out, for programs that send them back; the
 * answer's text is what counts, so these are the prompt's. */
static void append_context(struct tn_buf *out, const struct tn_task *task)
{
    tn_buf_append_text(out, ",\"context\":[");
    for (size_t i = 0; i < task->ids.n; i++)
        tn_buf_printf(out, i ? ",%u" : "%u", task->ids.ids[i]);
    tn_buf_append_text(out, "]");
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
        tn_stream_break(task->conn);
    else
        tn_task_write(task, line->data, line->n_bytes);
    tn_buf_fini(line);
}

static void begin(struct tn_task *task)
{
    (void)task; /* the first line is the first text */
}

static void more(struct tn_task *task, struct tn_choice *choice)
{
    struct tn_buf line = {0};
    append_head(&line, task);
    append_text(&line, task, choice->text.data + choice->n_sent,
                choice->text.n_bytes - choice->n_sent, choice->n_calls_sent);
    choice->n_calls_sent = tn_choice_n_calls(choice);
    tn_buf_append_text(&line, ",\"done\":false}");
    choice->n_sent = choice->text.n_bytes;
    send_line(task, &line);
}

static void end_choice(struct tn_task *task, struct tn_choice *choice)
{
    (void)task, (void)choice; /* there is one, and `end` says the rest */
}

static void fail(struct tn_task *task, const struct tn_refusal *refusal)
{
    struct tn_buf line = {0};
    tn_buf_append_text(&line, "{\"error\":");
    tn_json_text(&line, refusal->message);
    tn_buf_append_text(&line, "}");
    send_line(task, &line);
}

static void end(struct tn_task *task, struct tn_buf *out)
{
    const struct tn_choice *choice = &task->choices[0];
    struct tn_buf line = {0};
    struct tn_buf *to = task->gen.streams ? &line : out;
    append_head(to, task);
    append_text(to, task, choice->text.data, task->gen.streams ? 0 : choice->text.n_bytes,
                choice->n_calls_sent);
    append_done(to, task);
    if (task->gen.streams)
        send_line(task, &line);
}

static const struct tn_task_format ollama_format = {
    .stream_type = "application/x-ndjson", .refuse = tn_ollama_refuse, .begin = begin,
    .more = more, .end_choice = end_choice, .fail = fail, .end = end};

/* ---- requests ---- */

/* What would change the answer and is not there is refused; images: [] and the like are absent. */
static bool refuse_others(const struct tn_task *task, struct tn_refusal *r)
{
    const json_t *suffix = tn_json_member(task->body, "suffix");
    if (json_array_size(tn_json_member(task->body, "images")) > 0)
        return tn_refuse(r, 400, "images", "this server takes no images");
    if (json_is_true(tn_json_member(task->body, "think")))
        return tn_refuse(r, 400, "think", "\"%s\" does not support thinking", task->model->id);
    if (json_is_true(tn_json_member(task->body, "logprobs")))
        return tn_refuse(r, 400, "logprobs", "\"logprobs\" are given at /v1 only");
    if (json_string_length(suffix) > 0)
        return tn_refuse(r, 400, "suffix", "\"suffix\" is not supported");
    return true;
}

static bool read_common(struct tn_task *task, struct tn_refusal *r)
{
    task->gen.streams = true;
    (void)tn_json_get_text(task->body, "model", &task->called, NULL, r);
    return tn_json_get_bool(task->body, "stream", &task->gen.streams, r) &&
           tn_gen_read_format(&task->gen, task->body, r) &&
           tn_gen_read_options(&task->gen, tn_json_member(task->body, "options"), task->model, r) &&
           refuse_others(task, r);
}

/* Nothing to say: programs ask so for the model to be loaded or unloaded. It always is. */
static void answer_load(struct tn_task *task)
{
    const json_t *keep = tn_json_member(task->body, "keep_alive");
    struct tn_buf body = {0};
    bool unloads = json_is_number(keep) && json_number_value(keep) == 0;
    append_head(&body, task);
    append_text(&body, task, "", 0, 0);
    tn_buf_printf(&body, ",\"done\":true,\"done_reason\":\"%s\"}", unloads ? "unload" : "load");
    tn_reply_json(task->conn, 200, &body);
    tn_task_free(task);
}

static bool prepare_chat(struct tn_task *task, struct tn_refusal *r)
{
    return tn_chat_ids(task, tn_json_member(task->body, "messages"), task->tools, r);
}

void tn_route_ollama_chat(struct tn_server *server, struct tn_conn *conn)
{
    struct tn_refusal refusal;
    struct tn_task *task = tn_task_new(server, conn, &ollama_format);
    if (!task)
        return;
    const json_t *messages = tn_json_member(task->body, "messages");
    task->is_chat = true;
    if (!read_common(task, &refusal) || !tn_tools_read(task, &refusal))
        tn_task_refuse(task, &refusal);
    else if (!messages || (json_is_array(messages) && json_array_size(messages) == 0))
        answer_load(task);
    else
        tn_task_start(task, prepare_chat);
}

/* The prompt as one turn of a conversation, or, with "raw" or without a template, as it is. */
static bool prepare_generate(struct tn_task *task, struct tn_refusal *r)
{
    bool is_raw = false;
    const char *prompt = "", *system = NULL;
    size_t n = 0;
    struct tern_error err;
    if (!tn_json_get_bool(task->body, "raw", &is_raw, r) ||
        !tn_json_get_text(task->body, "prompt", &prompt, &n, r) ||
        !tn_json_get_text(task->body, "system", &system, NULL, r))
        return false;
    if (is_raw || !task->model->chat) {
        if (tern_tokenizer_encode(tern_model_tokenizer(task->model->model), prompt, n,
                                  TERN_ENCODE_ADD_SPECIAL, &task->ids, &err) == TERN_OK)
            return true;
        return tn_refuse(r, 503, NULL, "%s", err.detail);
    }
    json_t *messages = json_array();
    if (system && system[0])
        json_array_append_new(messages, json_pack("{s:s,s:s}", "role", "system", "content",
                                                  system));
    json_array_append_new(messages, json_pack("{s:s,s:s%}", "role", "user", "content", prompt, n));
    bool is_good = tn_chat_ids(task, messages, NULL, r);
    json_decref(messages);
    return is_good;
}

void tn_route_ollama_generate(struct tn_server *server, struct tn_conn *conn)
{
    struct tn_refusal refusal;
    const char *prompt = "";
    size_t n = 0;
    struct tn_task *task = tn_task_new(server, conn, &ollama_format);
    if (!task)
        return;
    if (!read_common(task, &refusal) ||
        !tn_json_get_text(task->body, "prompt", &prompt, &n, &refusal))
        tn_task_refuse(task, &refusal);
    else if (n == 0)
        answer_load(task);
    else
        tn_task_start(task, prepare_generate);
}

/* ---- about models ---- */

void tn_route_ollama_version(struct tn_server *server, struct tn_conn *conn)
{
    static const char body[] = "{\"version\":\"" TERN_VERSION_STRING "\"}";
    (void)server;
    tn_reply(conn, 200, "application/json", NULL, body, sizeof body - 1);
}

static void append_details(struct tn_buf *out, const struct tn_server_model *model)
{
    struct tern_model_info info;
    tern_model_get_info(model->model, &info);
    double n = (double)tern_model_config(model->model)->n_params;
    tn_buf_append_text(out, "\"details\":{\"parent_model\":\"\",\"format\":\"tern\",\"family\":");
    tn_json_text(out, info.architecture);
    tn_buf_append_text(out, ",\"families\":[");
    tn_json_text(out, info.architecture);
    tn_buf_printf(out, "],\"parameter_size\":\"%.1f%s\"", n >= 1e9 ? n * 1e-9 : n * 1e-6,
                  n >= 1e9 ? "B" : "M");
    tn_buf_append_text(out, ",\"quantization_level\":\"ternary\"}");
}

/* Programs compare digests; nothing here is addressed by one: 64 digits of the name and size. */
static void append_digest(struct tn_buf *out, const struct tn_server_model *model, uint64_t bytes)
{
    uint64_t h = 0xCBF29CE484222325u ^ bytes;
    for (const char *c = model->id; *c; c++)
        h = (h ^ (unsigned char)*c) * 0x100000001B3u;
    for (int i = 0; i < 4; i++) {
        h = (h ^ (h >> 29)) * 0xBF58476D1CE4E5B9u;
        tn_buf_printf(out, "%016" PRIx64, h);
    }
}

static void append_capability(struct tn_buf *out, const struct tn_server_model *model)
{
    tn_buf_append_text(out, model->embedder ? "\"embedding\"" : "\"completion\"");
}

static void append_entry(struct tn_buf *out, const struct tn_server *server,
                         const struct tn_server_model *model, bool is_running)
{
    struct tern_model_info info;
    char name[300];
    tern_model_get_info(model->model, &info);
    snprintf(name, sizeof name, "%.280s:latest", model->id);
    tn_buf_append_text(out, "{\"name\":");
    tn_json_text(out, name);
    tn_buf_append_text(out, ",\"model\":");
    tn_json_text(out, name);
    tn_buf_printf(out, ",\"size\":%" PRIu64 ",\"digest\":\"", info.file_bytes);
    append_digest(out, model, info.file_bytes);
    tn_buf_append_text(out, "\",");
    append_details(out, model);
    if (is_running) {
        tn_buf_append_text(out, ",\"expires_at\":\"9999-12-31T23:59:59Z\",\"size_vram\":0");
        tn_buf_printf(out, ",\"context_length\":%u}", model->n_ctx);
    } else {
        tn_buf_append_text(out, ",\"modified_at\":");
        append_time(out, server->began_s);
        tn_buf_append_text(out, ",\"capabilities\":[");
        append_capability(out, model);
        tn_buf_append_text(out, "]}");
    }
}

static void answer_list(struct tn_server *server, struct tn_conn *conn, bool is_running)
{
    struct tn_buf body = {0};
    tn_buf_append_text(&body, "{\"models\":[");
    for (uint32_t i = 0; i < server->config.n_models; i++) {
        tn_buf_append_text(&body, i ? "," : "");
        append_entry(&body, server, &server->config.models[i], is_running);
    }
    tn_buf_append_text(&body, "]}");
    tn_reply_json(conn, 200, &body);
}

void tn_route_ollama_tags(struct tn_server *server, struct tn_conn *conn)
{
    answer_list(server, conn, false);
}

void tn_route_ollama_ps(struct tn_server *server, struct tn_conn *conn)
{
    answer_list(server, conn, true);
}

static void append_show(struct tn_buf *out, const struct tn_server *server,
                        const struct tn_server_model *model)
{
    struct tern_model_info info;
    const struct tern_model_config *config = tern_model_config(model->model);
    tern_model_get_info(model->model, &info);
    tn_buf_append_text(out, "{\"modelfile\":\"\",\"parameters\":\"\",\"license\":\"\","
                            "\"template\":");
    tn_json_text(out, info.template_name ? info.template_name : "");
    tn_buf_append_text(out, ",");
    append_details(out, model);
    tn_buf_append_text(out, ",\"model_info\":{\"general.architecture\":");
    tn_json_text(out, info.architecture);
    tn_buf_printf(out,
                  ",\"general.parameter_count\":%" PRIu64 ",\"%s.context_length\":%u"
                  ",\"%s.embedding_length\":%u,\"%s.block_count\":%u"
                  "},\"capabilities\":[",
                  config->n_params, info.architecture, config->context, info.architecture,
                  config->hidden, info.architecture, config->n_layer);
    append_capability(out, model);
    tn_buf_append_text(out, "],\"modified_at\":");
    append_time(out, server->began_s);
    tn_buf_append_text(out, "}");
}

void tn_route_ollama_show(struct tn_server *server, struct tn_conn *conn)
{
    struct tn_refusal refusal;
    struct tn_buf body = {0};
    const char *name = NULL;
    const struct tn_server_model *model = NULL;
    struct tn_body request;
    if (tn_body_read(server, conn, &request, &refusal) &&
        tn_json_get_text(request.root, "name", &name, NULL, &refusal) &&
        tn_json_get_text(request.root, "model", &name, NULL, &refusal))
        model = tn_server_find_model(server, name, TN_USE_ANY, &refusal);
    if (model) {
        append_show(&body, server, model);
        tn_reply_json(conn, 200, &body);
    } else {
        tn_ollama_refuse(conn, &refusal);
    }
    tn_body_free(server, &request);
}

/* What would write, download or publish. */
void tn_route_not_here(struct tn_server *server, struct tn_conn *conn)
{
    struct tn_refusal refusal;
    (void)server;
    tn_refuse(&refusal, 501, NULL,
              "tern downloads, writes and publishes no models: get a model's folder or GGUF file, "
              "then tern convert");
    tn_ollama_refuse(conn, &refusal);
}
