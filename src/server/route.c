/* SPDX-License-Identifier: MIT
 *
 * Maps paths and methods to functions, and answers requests that need no model.
 *
 * The table is the list of all routes; a path with another method gets 405 with Allow.
 */
#include <inttypes.h>
#include <string.h>

#include "plat/plat.h"
#include "plat/sandbox.h"
#include "server/json_out.h"
#include "server/serve.h"
#include "tern/version.h"

#define GET 1u
#define POST 2u
#define ANY 4u /* the function refuses other methods itself */

static const struct route {
    const char *path;
    unsigned methods;
    bool is_prefix; /* a name follows the path */
    tn_route_fn *run;
} routes[] = {
    {"/health", GET, false, tn_route_health},
    {"/v1/health", GET, false, tn_route_health},
    {"/metrics", GET, false, tn_route_metrics},
    {"/v1/models", GET, false, tn_route_models},
    {"/models", GET, false, tn_route_models},
    {"/v1/models/", GET, true, tn_route_model},
    {"/models/", GET, true, tn_route_model},
    {"/v1/chat/completions", POST, false, tn_route_chat},
    {"/chat/completions", POST, false, tn_route_chat},
    {"/v1/chat/completions/input_tokens", POST, false, tn_route_chat_count},
    {"/chat/completions/input_tokens", POST, false, tn_route_chat_count},
    {"/v1/completions", POST, false, tn_route_completions},
    {"/completions", POST, false, tn_route_completions},
    {"/v1/embeddings", POST, false, tn_route_embeddings},
    {"/embeddings", POST, false, tn_route_embeddings},
    {"/v1/responses", POST, false, tn_route_responses},
    {"/responses", POST, false, tn_route_responses},
    {"/v1/responses/input_tokens", POST, false, tn_route_responses_count},
    {"/responses/input_tokens", POST, false, tn_route_responses_count},
    {"/v1/messages", POST, false, tn_route_messages},
    {"/v1/messages/count_tokens", POST, false, tn_route_messages_count},
    {"/", GET, false, tn_route_root},
    {"/page/", GET, true, tn_route_page},
    {"/page.json", GET, false, tn_route_page_json},
    {"/checksum", POST, false, tn_route_checksum},
    {"/tokenize", POST, false, tn_route_tokenize},
    {"/detokenize", POST, false, tn_route_detokenize},
    {"/tokenizer_info", GET, false, tn_route_tokenizer_info},
    {"/completion", POST, false, tn_route_completion},
    {"/infill", POST, false, tn_route_infill},
    {"/apply-template", POST, false, tn_route_apply_template},
    {"/props", GET, false, tn_route_props},
    {"/slots", GET, false, tn_route_slots},
    {"/api/version", GET, false, tn_route_ollama_version},
    {"/api/tags", GET, false, tn_route_ollama_tags},
    {"/api/ps", GET, false, tn_route_ollama_ps},
    {"/api/show", POST, false, tn_route_ollama_show},
    {"/api/chat", POST, false, tn_route_ollama_chat},
    {"/api/generate", POST, false, tn_route_ollama_generate},
    {"/api/embed", POST, false, tn_route_ollama_embed},
    {"/api/embeddings", POST, false, tn_route_ollama_embeddings},
    {"/api/pull", POST, false, tn_route_ollama_pull},
    {"/api/push", ANY, false, tn_route_not_here},
    {"/api/create", ANY, false, tn_route_not_here},
    {"/api/copy", ANY, false, tn_route_not_here},
    {"/api/delete", ANY, false, tn_route_not_here},
    {"/api/blobs/", ANY, true, tn_route_not_here},
};

void tn_reply_json(struct tn_conn *conn, int status, struct tn_buf *body)
{
    tn_reply_buf(conn, status, "application/json", NULL, body);
}

/* ---- methods ---- */

static unsigned bit_of(enum tn_http_method method)
{
    if (method == TN_HTTP_GET || method == TN_HTTP_HEAD_METHOD)
        return GET;
    return method == TN_HTTP_POST ? POST : 0;
}

static const char *allow_line(unsigned methods)
{
    if (methods & GET)
        return methods & POST ? "Allow: GET, HEAD, POST, OPTIONS\r\n"
                              : "Allow: GET, HEAD, OPTIONS\r\n";
    return "Allow: POST, OPTIONS\r\n";
}

/* Headers that clients of OpenAI and Anthropic send besides those named below. */
static bool may_be_sent(struct tn_http_text field)
{
    static const char *const begins[] = {"x-stainless-", "anthropic-", "openai-"};
    for (size_t i = 0; i < TN_COUNT_OF(begins); i++)
        if (tn_http_begins(field, begins[i]))
            return true;
    return false;
}

/* Answers a CORS preflight request of a configured origin.  User-Agent: libraries set it, and some
 * browsers send it. */
static void append_preflight(struct tn_buf *out, const struct tn_conn *conn)
{
    struct tn_http_text asked =
        tn_http_field(&conn->request, "access-control-request-headers", NULL);
    tn_buf_append_text(out, "Access-Control-Allow-Methods: GET, POST, OPTIONS\r\n"
                            "Access-Control-Max-Age: 600\r\n"
                            "Access-Control-Allow-Headers: Authorization, Content-Type, "
                            "User-Agent, X-Api-Key");
    while (asked.n > 0) {
        const struct tn_http_text field = tn_http_next_item(&asked);
        if (may_be_sent(field)) {
            tn_buf_append_text(out, ", ");
            tn_buf_append(out, field.data, field.n);
        }
    }
    tn_buf_append_text(out, "\r\n");
    if (tn_http_field(&conn->request, "access-control-request-private-network", NULL).data)
        tn_buf_append_text(out, "Access-Control-Allow-Private-Network: true\r\n");
}

static void answer_options(struct tn_conn *conn, unsigned methods)
{
    struct tn_buf fields = {0};
    tn_buf_append_text(&fields, allow_line(methods));
    if (conn->cors_origin.data)
        append_preflight(&fields, conn);
    tn_reply(conn, 204, NULL, tn_buf_text(&fields), NULL, 0); /* "" without memory */
    tn_buf_fini(&fields);
}

/* ---- dispatch ---- */

static const struct route *find_route(const struct tn_buf *path)
{
    for (size_t i = 0; i < TN_COUNT_OF(routes); i++) {
        size_t n = strlen(routes[i].path);
        if ((path->n_bytes == n || (routes[i].is_prefix && path->n_bytes > n)) &&
            memcmp(path->data, routes[i].path, n) == 0)
            return &routes[i];
    }
    return NULL;
}

bool tn_route_needs_no_slot(const struct tn_conn *conn)
{
    const struct route *route = find_route(&conn->request.path);
    return route && (route->run == tn_route_health || route->run == tn_route_metrics) &&
           bit_of(conn->request.method) == GET && !conn->request.has_body;
}

tn_error_fn *tn_error_of(const struct tn_conn *conn)
{
    static const char ollama[] = "/api/", anthropic[] = "/v1/messages";
    const struct tn_buf *path = &conn->request.path;
    const size_t n = sizeof anthropic - 1;
    if (path->n_bytes > sizeof ollama - 1 && memcmp(path->data, ollama, sizeof ollama - 1) == 0)
        return tn_ollama_error;
    const bool is_anthropic = path->n_bytes >= n && memcmp(path->data, anthropic, n) == 0 &&
                              (path->n_bytes == n || path->data[n] == '/');
    return is_anthropic ? tn_anthropic_error : tn_openai_error;
}

void tn_route(struct tn_server *server, struct tn_conn *conn)
{
    const struct route *route = find_route(&conn->request.path);
    enum tn_http_method method = conn->request.method;
    struct tn_refusal refusal;
    if (!route && !(method == TN_HTTP_OPTIONS && conn->request.path.data[0] == '*')) {
        tn_refuse(&refusal, 404, NULL, "there is nothing at this path");
        tn_reply_error(conn, tn_error_of(conn), &refusal);
    } else if (method == TN_HTTP_OPTIONS) {
        answer_options(conn, route ? route->methods : GET | POST);
    } else if (!(route->methods & (bit_of(method) | ANY))) {
        struct tn_buf body = {0};
        tn_refuse(&refusal, 405, NULL, "this path does not support %.*s",
                  (int)conn->request.method_name.n, conn->request.method_name.data);
        tn_error_of(conn)(&body, &refusal);
        tn_reply_buf(conn, 405, "application/json", allow_line(route->methods), &body);
    } else if (route->methods == POST && route->run != tn_route_checksum) {
        tn_body_take_route(server, conn, route->run);
    } else {
        route->run(server, conn);
    }
}

/* ---- health and version ---- */

void tn_route_health(struct tn_server *server, struct tn_conn *conn)
{
    struct tn_buf body = {0};
    (void)server;
    tn_buf_append_text(&body, "{\"status\":\"ok\"}");
    tn_reply_json(conn, 200, &body);
}
