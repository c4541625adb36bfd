/* SPDX-License-Identifier: MIT
 *
 * Serves the browser page, its configuration and the checksum of saved conversations.
 *
 * The files are compiled into the program; the Content-Security-Policy allows them to talk to this
 * server only.
 */
#include "server/page.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "server/json_out.h"
#include "server/serve.h"
#include "tern/conversation.h"
#include "tern/version.h"

#define SECURITY                                                                                   \
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "           \
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "                    \
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'\r\n"         \
    "Referrer-Policy: no-referrer\r\n"                                                             \
    "X-Frame-Options: DENY\r\n"                                                                    \
    "Cross-Origin-Opener-Policy: same-origin\r\n"                                                  \
    "Cross-Origin-Resource-Policy: same-origin\r\n"

/* ---- files ---- */

static const struct tn_page_file *find_file(const char *name)
{
    const struct tn_page_file *file = tn_page_files;
    while (file->name && strcmp(file->name, name) != 0)
        file++;
    return file->name ? file : NULL;
}

/* The browser caches the file and revalidates each time, so a new version of the program shows at
 * once. */
static void reply_file(struct tn_conn *conn, const struct tn_page_file *file, const char *vary)
{
    char fields[1024];
    struct tn_http_text known = tn_http_field(&conn->request, "if-none-match", NULL);
    bool is_known = known.data && tn_http_is(known, file->tag);
    snprintf(fields, sizeof fields, "Cache-Control: no-cache\r\nETag: %s\r\n%s" SECURITY,
             file->tag, vary);
    tn_reply(conn, is_known ? 304 : 200, is_known ? NULL : file->type, fields,
             is_known ? NULL : file->data, is_known ? 0 : file->n_bytes);
}

void tn_route_page(struct tn_server *server, struct tn_conn *conn)
{
    const char *name = tn_buf_text(&conn->request.path) + strlen("/page/");
    const struct tn_page_file *file = server->config.has_page ? find_file(name) : NULL;
    struct tn_refusal refusal;
    if (file) {
        reply_file(conn, file, "");
        return;
    }
    tn_refuse(&refusal, 404, NULL, "there is nothing at this path");
    tn_reply_error(conn, tn_openai_error, &refusal);
}

/* Does an Accept field name text/html?  Programs send none, or a wildcard. */
static bool accepts_html(const struct tn_conn *conn)
{
    struct tn_http_text accept = tn_http_field(&conn->request, "accept", NULL);
    for (; accept.n > 0; accept.data++, accept.n--)
        if (tn_http_begins(accept, "text/html"))
            return true;
    return false;
}

void tn_route_root(struct tn_server *server, struct tn_conn *conn)
{
    static const char text[] = "Ollama is running";
    if (server->config.has_page && accepts_html(conn))
        reply_file(conn, find_file("index.html"), "Vary: Accept\r\n");
    else
        tn_reply(conn, 200, "text/plain; charset=utf-8", "Vary: Accept\r\n", text,
                 sizeof text - 1);
}

/* ---- configuration of the page ---- */

static void append_model(struct tn_buf *out, const struct tn_server_model *model)
{
    struct tern_model_info info;
    tern_model_get_info(model->model, &info);
    const bool is_embedding = tern_model_config(model->model)->pooling != TERN_POOLING_NONE;
    tn_buf_append_text(out, "{\"id\":");
    tn_json_text(out, model->id);
    tn_buf_append_text(out, ",\"name\":");
    tn_json_text(out, info.name);
    tn_buf_printf(out,
                  ",\"hash\":\"%016" PRIx64 "\",\"has_chat\":%s,\"is_embedding\":%s,\"n_ctx\":%u"
                  ",\"default_new_tokens\":%u,\"cap_new_tokens\":%u}",
                  tern_model_hash(model->model), model->chat ? "true" : "false",
                  is_embedding ? "true" : "false", model->n_ctx,
                  model->default_new_tokens, model->cap_new_tokens);
}

static void append_defaults(struct tn_buf *out)
{
    struct tern_sampler_params s;
    tern_sampler_params_default(&s);
    tn_buf_append_text(out, ",\"defaults\":{\"temperature\":");
    tn_json_real(out, (double)s.temperature, 0);
    tn_buf_printf(out, ",\"top_k\":%u,\"top_p\":", s.top_k);
    tn_json_real(out, (double)s.top_p, 0);
    tn_buf_append_text(out, ",\"min_p\":");
    tn_json_real(out, (double)s.min_p, 0);
    tn_buf_append_text(out, ",\"repeat_penalty\":");
    tn_json_real(out, (double)s.repeat_penalty, 0);
    tn_buf_append_text(out, ",\"presence_penalty\":");
    tn_json_real(out, (double)s.presence_penalty, 0);
    tn_buf_append_text(out, ",\"frequency_penalty\":");
    tn_json_real(out, (double)s.frequency_penalty, 0);
    tn_buf_printf(out, ",\"repeat_last_n\":%u}", s.penalty_last);
}

void tn_route_page_json(struct tn_server *server, struct tn_conn *conn)
{
    struct tn_buf body = {0};
    tn_buf_append_text(&body, "{\"version\":");
    tn_json_text(&body, TERN_VERSION_STRING);
    tn_buf_append_text(&body, ",\"models\":[");
    for (uint32_t i = 0; i < server->config.n_models; i++) {
        tn_buf_append_text(&body, i ? "," : "");
        append_model(&body, &server->config.models[i]);
    }
    tn_buf_append_text(&body, "]");
    append_defaults(&body);
    tn_buf_append_text(&body, "}");
    tn_reply_json(conn, 200, &body);
}

void tn_route_checksum(struct tn_server *server, struct tn_conn *conn)
{
    struct tn_buf body = {0};
    const struct tn_http_text text = conn->request.body;
    (void)server;
    tn_buf_printf(&body, "{\"checksum\":\"%016" PRIx64 "\"}",
                  tern_conversation_checksum(text.data, text.n));
    tn_reply_json(conn, 200, &body);
}
