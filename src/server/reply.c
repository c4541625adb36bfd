/* SPDX-License-Identifier: MIT
 *
 * Writes HTTP/1.1 responses: complete ones with their length, streams in chunks.
 *
 * HTTP/1.0 clients get streams that end with the connection.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "server/conn.h"

#define HEAD_BYTES 2048u /* exceeds any head, including optional fields */
#define CHUNK_BYTES 32u  /* overhead of a chunk */

static const char *reason(int status)
{
    static const struct {
        int status;
        const char *text;
    } reasons[] = {
        {200, "OK"}, {204, "No Content"}, {304, "Not Modified"}, {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"}, {404, "Not Found"}, {405, "Method Not Allowed"},
        {408, "Request Timeout"}, {413, "Content Too Large"}, {414, "URI Too Long"},
        {415, "Unsupported Media Type"}, {417, "Expectation Failed"},
        {429, "Too Many Requests"}, {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"}, {501, "Not Implemented"}, {503, "Service Unavailable"},
        {505, "HTTP Version Not Supported"},
    };
    for (size_t i = 0; i < TN_COUNT_OF(reasons); i++)
        if (reasons[i].status == status)
            return reasons[i].text;
    return "Unknown";
}

static void append_date(struct tn_buf *out)
{
    static const char days[] = "SunMonTueWedThuFriSat";
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    time_t now = time(NULL);
    const struct tm *t = gmtime(&now); /* only the loop thread calls it */
    if (t)
        tn_buf_printf(out, "Date: %.3s, %02d %.3s %d %02d:%02d:%02d GMT\r\n", days + 3 * t->tm_wday,
                      t->tm_mday, months + 3 * t->tm_mon, t->tm_year + 1900, t->tm_hour, t->tm_min,
                      t->tm_sec);
}

/* Responses must not be cached by browsers and proxies unless `fields` say otherwise. */
static void append_head(struct tn_conn *conn, int status, const char *type, const char *fields)
{
    struct tn_buf *out = &conn->out;
    const struct tn_http_request *r = &conn->request;
    if (!r->keeps_alive)
        conn->closes = true;
    tn_buf_printf(out, "HTTP/1.1 %d %s\r\n", status, reason(status));
    append_date(out);
    if (type)
        tn_buf_printf(out, "Content-Type: %s\r\n", type);
    if (!fields || !strstr(fields, "Cache-Control:"))
        tn_buf_append_text(out, "Cache-Control: no-store\r\n");
    tn_buf_append_text(out, "X-Content-Type-Options: nosniff\r\nVary: Origin\r\n");
    if (conn->cors_origin.data) {
        tn_buf_append_text(out, "Access-Control-Allow-Origin: ");
        tn_buf_append(out, conn->cors_origin.data, conn->cors_origin.n);
        tn_buf_append_text(out, "\r\n");
    }
    if (conn->closes)
        tn_buf_append_text(out, "Connection: close\r\n");
    else if (r->is_1_0)
        tn_buf_append_text(out, "Connection: keep-alive\r\n");
    conn->status = status;
    conn->state = TN_CONN_BUSY;
}

static void append_answer(struct tn_conn *conn, int status, const char *type, const char *fields,
                          const char *body, size_t n)
{
    append_head(conn, status, type, fields);
    if (fields)
        tn_buf_append_text(&conn->out, fields);
    if (status != 204 && status != 304)
        tn_buf_printf(&conn->out, "Content-Length: %zu\r\n", n);
    tn_buf_append_text(&conn->out, "\r\n");
    if (conn->request.method != TN_HTTP_HEAD_METHOD)
        tn_buf_append(&conn->out, body, n);
    conn->n_out = n;
    conn->is_answered = true;
}

/* Replaces an answer for which memory ran out by an error in the client's API.  Without memory for
 * that, the client is dropped. */
static void refuse_memory(struct tn_conn *conn, const char *why)
{
    struct tn_buf body = {0};
    conn->code = NULL;
    conn->host->append_error(conn->host->arg, conn, 503, why, &body);
    append_answer(conn, 503, "application/json", "Retry-After: 1\r\n", body.data, body.n_bytes);
    conn->out.failed = conn->out.failed || body.failed;
    tn_buf_fini(&body);
}

void tn_reply(struct tn_conn *conn, int status, const char *type, const char *fields,
              const char *body, size_t n)
{
    if (conn->state == TN_CONN_DEAD)
        return;
    if (tn_conn_reserve(conn, HEAD_BYTES + n))
        append_answer(conn, status, type, fields, body, n);
    else
        refuse_memory(conn, "no memory for the answer: other requests use it");
}

void tn_reply_buf(struct tn_conn *conn, int status, const char *type, const char *fields,
                  struct tn_buf *body)
{
    if (!body->failed)
        tn_reply(conn, status, type, fields, body->data, body->n_bytes);
    else if (conn->state != TN_CONN_DEAD)
        refuse_memory(conn, "no memory for the answer");
    tn_buf_fini(body);
}

void tn_stream_begin(struct tn_conn *conn, int status, const char *type)
{
    if (conn->state == TN_CONN_DEAD)
        return;
    conn->is_chunked = !conn->request.is_1_0;
    if (!conn->is_chunked)
        conn->closes = true;
    append_head(conn, status, type, NULL);
    tn_buf_append_text(&conn->out,
                       conn->is_chunked ? "Transfer-Encoding: chunked\r\n\r\n" : "\r\n");
}

void tn_stream_write(struct tn_conn *conn, const char *bytes, size_t n)
{
    if (conn->state == TN_CONN_DEAD || n == 0)
        return;
    if (!tn_conn_reserve(conn, n + CHUNK_BYTES)) {
        conn->out.failed = true;
        return;
    }
    if (conn->is_chunked)
        tn_buf_printf(&conn->out, "%zx\r\n", n);
    tn_buf_append(&conn->out, bytes, n);
    if (conn->is_chunked)
        tn_buf_append(&conn->out, "\r\n", 2);
    conn->n_out += n;
}

void tn_stream_end(struct tn_conn *conn)
{
    if (conn->state == TN_CONN_DEAD)
        return;
    if (conn->is_chunked)
        tn_buf_append_text(&conn->out, "0\r\n\r\n");
    conn->is_answered = true;
}
