/* SPDX-License-Identifier: MIT
 *
 * Common JSON of OpenAI's routes: errors, models, usage, events.
 *
 * The routes are in openai_chat.c, openai_text.c, responses.c and embeddings.c.
 */
#include "server/openai.h"

#include <inttypes.h>
#include <string.h>

#include "server/json_out.h"
#include "tern/version.h"

/* ---- errors ---- */

static const char *type_of(int status)
{
    if (status == 401)
        return "authentication_error";
    if (status == 403)
        return "permission_error";
    if (status == 404)
        return "not_found_error";
    return status >= 500 ? "server_error" : "invalid_request_error";
}

void tn_openai_error(struct tn_buf *out, const struct tn_refusal *r)
{
    tn_buf_append_text(out, "{\"error\":{\"message\":");
    tn_json_text(out, r->message);
    tn_buf_printf(out, ",\"type\":\"%s\",\"param\":", type_of(r->status));
    tn_json_text(out, r->param[0] ? r->param : NULL);
    tn_buf_append_text(out, ",\"code\":");
    tn_json_text(out, r->code);
    tn_buf_append_text(out, "}}");
}

void tn_reply_error(struct tn_conn *conn, tn_error_fn *error, const struct tn_refusal *r)
{
    /* Clients retry on 5xx; only a full queue is worth a retry. */
    const char *fields = r->status == 503 ? "Retry-After: 1\r\n"
                         : r->status == 401 ? "WWW-Authenticate: Bearer\r\n"
                                            : "x-should-retry: false\r\n";
    struct tn_buf body = {0};
    conn->code = r->code;
    error(&body, r);
    tn_reply_buf(conn, r->status, "application/json", fields, &body);
}

/* ---- models ---- */

static void append_model(struct tn_buf *out, const struct tn_server *server,
                         const struct tn_server_model *model)
{
    const struct tern_model_config *config = tern_model_config(model->model);
    tn_buf_append_text(out, "{\"id\":");
    tn_json_text(out, model->id);
    tn_buf_printf(out,
                  ",\"object\":\"model\",\"created\":%" PRId64 ",\"owned_by\":\"tern\","
                  "\"meta\":{\"n_ctx\":%u,\"n_ctx_train\":%u,\"n_vocab\":%u,\"n_params\":%" PRIu64
                  "}}",
                  server->start_s, model->n_ctx, config->context, config->vocab,
                  config->n_params);
}

void tn_route_models(struct tn_server *server, struct tn_conn *conn)
{
    struct tn_buf body = {0};
    tn_buf_append_text(&body, "{\"object\":\"list\",\"data\":[");
    for (uint32_t i = 0; i < server->config.n_models; i++) {
        tn_buf_append_text(&body, i ? "," : "");
        append_model(&body, server, &server->config.models[i]);
    }
    tn_buf_append_text(&body, "]}");
    tn_reply_json(conn, 200, &body);
}

void tn_route_model(struct tn_server *server, struct tn_conn *conn)
{
    struct tn_refusal refusal;
    struct tn_buf body = {0};
    const char *path = tn_buf_text(&conn->request.path);
    const char *name = strstr(path, "/models/") + strlen("/models/");
    const struct tn_server_model *model =
        name[0] ? tn_server_find_model(server, name, TN_USE_ANY, &refusal) : NULL;
    if (!name[0])
        tn_refuse(&refusal, 404, NULL, "the path names no model");
    if (!model) {
        tn_reply_error(conn, tn_openai_error, &refusal);
        return;
    }
    append_model(&body, server, model);
    tn_reply_json(conn, 200, &body);
}

/* ---- answers ---- */

static void append_rate(struct tn_buf *out, const char *what, uint64_t n, double seconds)
{
    const double ms = seconds * 1e3, count = (double)n;
    tn_buf_printf(out,
                  "\"%s_n\":%" PRIu64 ",\"%s_ms\":%.3f,\"%s_per_token_ms\":%.3f,"
                  "\"%s_per_second\":%.3f",
                  what, n, what, ms, what, n ? ms / count : 0.0, what,
                  ms > 0 ? count / ms * 1e3 : 0.0);
}

static void append_timings(struct tn_buf *out, const struct tn_usage_counts *u)
{
    tn_buf_printf(out, ",\"timings\":{\"cache_n\":%" PRIu64 ",", u->n_cached);
    append_rate(out, "prompt", u->n_prompt - u->n_cached, u->prompt_s);
    tn_buf_append_text(out, ",");
    append_rate(out, "predicted", u->n_new, u->decode_s);
    tn_buf_append_text(out, "}");
}

void tn_openai_append_timings(struct tn_buf *out, const struct tn_choice *choice)
{
    const struct tern_generate_result *r = &choice->job.result;
    append_timings(out, &(struct tn_usage_counts){.n_prompt = r->n_prompt,
                                                  .n_cached = r->n_prompt - r->n_prompt_evaluated,
                                                  .n_new = r->n_new, .prompt_s = r->prompt_s,
                                                  .decode_s = r->decode_s});
}

void tn_openai_end_event(struct tn_buf *out, const struct tn_task *task,
                         const struct tn_choice *choice, bool is_last)
{
    tn_buf_append_text(out, "]");
    if (is_last && !task->gen.includes_usage)
        tn_openai_append_timings(out, choice);
    tn_buf_append_text(out, "}");
}

/* ,"usage":{...},"timings":{...} */
static void append_usage(struct tn_buf *out, const struct tn_task *task)
{
    struct tn_usage_counts u;
    tn_task_usage(task, &u);
    tn_buf_printf(out,
                  ",\"usage\":{\"prompt_tokens\":%" PRIu64 ",\"completion_tokens\":%" PRIu64
                  ",\"total_tokens\":%" PRIu64
                  ",\"prompt_tokens_details\":{\"cached_tokens\":%" PRIu64
                  "},\"completion_tokens_details\":{\"reasoning_tokens\":%" PRIu64 "}}",
                  u.n_prompt, u.n_new, u.n_prompt + u.n_new, u.n_cached, u.n_reasoning);
    append_timings(out, &u);
}

void tn_openai_begin_answer(struct tn_buf *out, const struct tn_task *task, const char *prefix,
                            const char *object)
{
    tn_buf_printf(out, "{\"id\":\"%s-%s\",\"object\":\"%s\",\"created\":%" PRId64 ",\"model\":",
                  prefix, task->id, object, task->created);
    tn_json_text(out, task->model->id);
    tn_buf_append_text(out, ",\"system_fingerprint\":\"tern-" TERN_VERSION_STRING "\","
                            "\"choices\":[");
}

void tn_openai_end_answer(struct tn_buf *out, const struct tn_task *task)
{
    tn_buf_append_text(out, "]");
    append_usage(out, task);
    tn_buf_append_text(out, "}");
}

void tn_openai_end_count(struct tn_task *task, struct tn_buf *out)
{
    tn_buf_printf(out, "{\"object\":\"response.input_tokens\",\"input_tokens\":%zu}",
                  task->ids.n);
}

void tn_openai_append_progress(struct tn_buf *out, const struct tn_prompt_progress *progress)
{
    tn_buf_printf(out,
                  ",\"prompt_progress\":{\"total\":%u,\"cache\":%u,\"processed\":%u,"
                  "\"time_ms\":%" PRIu64 "}",
                  progress->n_total, progress->n_cached, progress->n_processed, progress->ms);
}

void tn_openai_send_event(struct tn_task *task, struct tn_buf *json)
{
    tn_openai_send_named(task, NULL, json);
}

void tn_openai_send_named(struct tn_task *task, const char *name, struct tn_buf *json)
{
    struct tn_buf event = {0};
    if (name)
        tn_buf_printf(&event, "event: %s\n", name);
    tn_buf_append_text(&event, "data: ");
    tn_buf_append(&event, json->data, json->n_bytes);
    tn_buf_append_text(&event, "\n\n");
    if (event.failed || json->failed)
        tn_task_break(task);
    else
        tn_task_write(task, event.data, event.n_bytes);
    tn_buf_fini(&event);
    tn_buf_fini(json);
}

void tn_openai_end_stream(struct tn_task *task, const char *prefix, const char *object)
{
    if (task->gen.includes_usage) {
        struct tn_buf json = {0};
        tn_openai_begin_answer(&json, task, prefix, object);
        tn_openai_end_answer(&json, task);
        tn_openai_send_event(task, &json);
    }
    tn_task_write(task, "data: [DONE]\n\n", 14);
}

void tn_openai_send_error(struct tn_task *task, const struct tn_refusal *refusal)
{
    struct tn_buf json = {0};
    tn_openai_error(&json, refusal);
    tn_openai_send_event(task, &json);
}
