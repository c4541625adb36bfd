/* SPDX-License-Identifier: MIT
 *
 * Ollama's routes about models and the server, and the format of its errors.
 *
 * Routes that would write, download or publish are refused.
 */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "server/json_out.h"
#include "server/ollama.h"
#include "server/serve.h"
#include "tern/version.h"

void tn_ollama_error(struct tn_buf *out, const struct tn_refusal *refusal)
{
    tn_buf_append_text(out, "{\"error\":");
    tn_json_text(out, refusal->message);
    tn_buf_append_text(out, "}");
}

void tn_ollama_append_time(struct tn_buf *out, int64_t seconds)
{
    time_t moment = (time_t)seconds;
    const struct tm *t = gmtime(&moment);
    if (t)
        tn_buf_printf(out, "\"%04d-%02d-%02dT%02d:%02d:%02dZ\"", t->tm_year + 1900, t->tm_mon + 1,
                      t->tm_mday, t->tm_hour, t->tm_min, t->tm_sec);
    else
        tn_buf_append_text(out, "\"1970-01-01T00:00:00Z\"");
}

/* ---- models ---- */

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
    tn_buf_append_text(out, ",\"quantization_level\":");
    tn_json_text(out, info.n_ternary > 0 ? "ternary" : info.layout);
    tn_buf_append_text(out, "}");
}

/* Clients compare digests, but nothing here is addressed by one: 64 digits derived from name and
 * size. */
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

static void append_capabilities(struct tn_buf *out, const struct tn_server *server,
                                const struct tn_server_model *model)
{
    const uint32_t i = tn_server_index(server, model);
    struct tern_fim_ids fim;
    tn_buf_append_text(out, ",\"capabilities\":[");
    tn_buf_append_text(out, model->embedder ? "\"embedding\"" : "\"completion\"");
    if (!model->embedder && tern_tokenizer_fim_ids(tern_model_tokenizer(model->model), &fim))
        tn_buf_append_text(out, ",\"insert\"");
    if (server->has_tools[i])
        tn_buf_append_text(out, ",\"tools\"");
    if (server->reasoning[i].is_known)
        tn_buf_append_text(out, ",\"thinking\"");
    tn_buf_append_text(out, "]");
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
        tn_ollama_append_time(out, server->start_s);
        append_capabilities(out, server, model);
        tn_buf_append_text(out, "}");
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
                  "}",
                  config->n_params, info.architecture, config->context, info.architecture,
                  config->hidden, info.architecture, config->n_layer);
    append_capabilities(out, server, model);
    tn_buf_append_text(out, ",\"modified_at\":");
    tn_ollama_append_time(out, server->start_s);
    tn_buf_append_text(out, "}");
}

/* The model that a request names.  NULL: refused. */
static const struct tn_server_model *find_model(struct tn_server *server, struct tn_conn *conn,
                                                struct tn_body *request,
                                                struct tn_refusal *refusal)
{
    const char *name = NULL;
    const bool is_read = tn_body_read(server, conn, request, refusal) &&
                         tn_json_get_text(request->root, "name", &name, NULL, refusal) &&
                         tn_json_get_text(request->root, "model", &name, NULL, refusal);
    return is_read ? tn_server_find_model(server, name, TN_USE_ANY, refusal) : NULL;
}

void tn_route_ollama_show(struct tn_server *server, struct tn_conn *conn)
{
    struct tn_refusal refusal;
    struct tn_buf body = {0};
    struct tn_body request;
    const struct tn_server_model *model = find_model(server, conn, &request, &refusal);
    if (model) {
        append_show(&body, server, model);
        tn_reply_json(conn, 200, &body);
    } else {
        tn_reply_error(conn, tn_ollama_error, &refusal);
    }
    tn_body_free(server, &request);
}

/* Clients pull a model before they use it: a model that is served is complete.  The answer is the
 * last line of a stream, and the same without one. */
void tn_route_ollama_pull(struct tn_server *server, struct tn_conn *conn)
{
    struct tn_refusal refusal;
    struct tn_buf body = {0};
    struct tn_body request;
    if (find_model(server, conn, &request, &refusal)) {
        tn_buf_append_text(&body, "{\"status\":\"success\"}\n");
        tn_reply_buf(conn, 200, "application/x-ndjson", NULL, &body);
    } else if (refusal.status == 404) {
        tn_route_not_here(server, conn);
    } else {
        tn_reply_error(conn, tn_ollama_error, &refusal);
    }
    tn_body_free(server, &request);
}

/* Refuses routes that would write, download or publish. */
void tn_route_not_here(struct tn_server *server, struct tn_conn *conn)
{
    struct tn_refusal refusal;
    (void)server;
    tn_refuse(&refusal, 501, NULL,
              "tern serve neither downloads nor publishes models: get a model's folder or GGUF "
              "file, then tern convert");
    tn_reply_error(conn, tn_ollama_error, &refusal);
}
