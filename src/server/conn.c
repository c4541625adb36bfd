/* SPDX-License-Identifier: MIT
 *
 * Connections: states, time limits, reading and writing.
 *
 * conn.h describes the states.  Answers are buffered; a client that reads too slowly is dropped.
 */
#include "server/conn.h"

#include <string.h>

#include "server/conn_limits.h"

void tn_conn_init(struct tn_conn *conn, tn_socket socket, const struct tn_conn_host *host,
                  uint64_t now_ns)
{
    *conn = (struct tn_conn){
        .socket = socket, .host = host, .reading_since_ns = now_ns, .progress_ns = now_ns,
        .request = {.budget = host->budget}};
}

void tn_conn_drop(struct tn_conn *conn)
{
    if (conn->state == TN_CONN_DEAD)
        return;
    const bool was_busy = conn->state == TN_CONN_BUSY;
    conn->state = TN_CONN_DEAD;
    if (was_busy && !conn->is_answered && conn->user.on_gone)
        conn->user.on_gone(conn->user.arg);
    if (was_busy)
        conn->host->on_done(conn->host->arg, conn, 0);
    conn->user = (struct tn_conn_user){0};
    tn_net_close(conn->socket);
    conn->socket = TN_NO_SOCKET;
}

/* Frees the output buffer; unsent bytes are lost. */
static void free_out(struct tn_conn *conn)
{
    tn_buf_fini(&conn->out);
    conn->n_sent = 0;
    if (conn->n_held > 0)
        tn_budget_release(conn->host->budget, conn->n_held);
    conn->n_held = 0;
}

static size_t n_unsent(const struct tn_conn *conn)
{
    return conn->out.n_bytes - conn->n_sent;
}

static void forget_sent(struct tn_conn *conn)
{
    const size_t n = n_unsent(conn);
    if (conn->n_sent > 0)
        memmove(conn->out.data, conn->out.data + conn->n_sent, n);
    conn->out.n_bytes = n;
    conn->n_sent = 0;
}

void tn_conn_fini(struct tn_conn *conn)
{
    tn_conn_drop(conn);
    tn_http_fini(&conn->request);
    tn_buf_fini(&conn->pending);
    free_out(conn);
}

bool tn_conn_reserve(struct tn_conn *conn, size_t n)
{
    struct tn_buf *out = &conn->out;
    struct tn_budget *budget = conn->host->budget;
    if (n <= out->capacity - out->n_bytes)
        return true;
    if (conn->n_sent >= n_unsent(conn)) /* moves fewer bytes than have been sent */
        forget_sent(conn);
    if (n <= out->capacity - out->n_bytes)
        return true;
    const size_t capacity = TN_MAX(out->n_bytes + n, out->capacity + out->capacity / 2);
    const size_t n_held = capacity - TN_MIN(capacity, TN_CONN_MAX_UNSENT);
    const size_t n_more = n_held - TN_MIN(n_held, conn->n_held);
    if (budget && !tn_budget_take(budget, n_more))
        return false;
    conn->n_held += budget ? n_more : 0;
    const bool had_failed = out->failed;
    const bool has_room = tn_buf_reserve(out, n);
    out->failed = had_failed; /* no byte is missing yet */
    return has_room;
}

void tn_conn_hold(struct tn_conn *conn, const struct tn_conn_user *user)
{
    conn->user = *user;
}

/* ---- reading ---- */

bool tn_conn_is_due(const struct tn_conn *conn)
{
    return conn->state == TN_CONN_READING && conn->pending.n_bytes > 0 &&
           n_unsent(conn) < TN_CONN_MAX_UNSENT;
}

bool tn_conn_wants_read(const struct tn_conn *conn)
{
    if (conn->has_ended)
        return false;
    if (conn->state == TN_CONN_READING)
        return conn->pending.n_bytes == 0 && n_unsent(conn) < TN_CONN_MAX_UNSENT;
    if (conn->state == TN_CONN_BUSY)
        return conn->pending.n_bytes < TN_CONN_MAX_PENDING;
    return conn->state == TN_CONN_CLOSING && conn->is_shut;
}

bool tn_conn_wants_write(const struct tn_conn *conn)
{
    return conn->state != TN_CONN_DEAD && n_unsent(conn) > 0;
}

static bool has_begun(const struct tn_http_request *request)
{
    return request->state != TN_HTTP_HEAD || request->head.n_bytes > 0;
}

static void refuse(struct tn_conn *conn, int status, const char *why)
{
    struct tn_buf body = {0};
    conn->host->append_error(conn->host->arg, conn, status, why, &body);
    conn->closes = true;
    tn_reply_buf(conn, status, "application/json", status == 503 ? "Retry-After: 1\r\n" : NULL,
                 &body);
}

static void handle_head(struct tn_conn *conn)
{
    struct tn_http_request *request = &conn->request;
    if (!conn->host->on_head(conn->host->arg, conn))
        return; /* answered already; the body is not read */
    tn_http_continue(request);
    if (request->expects_continue && request->has_body) {
        static const char line[] = "HTTP/1.1 100 Continue\r\n\r\n";
        tn_buf_append(&conn->out, line, sizeof line - 1);
    }
}

/* Consumes bytes of the request.  The rest belongs to the next one. */
static size_t consume(struct tn_conn *conn, const char *bytes, size_t n, uint64_t now_ns)
{
    size_t i = 0;
    struct tn_http_request *request = &conn->request;
    while (conn->state == TN_CONN_READING) {
        if (!has_begun(request) && i < n)
            conn->reading_since_ns = now_ns;
        size_t n_taken = tn_http_feed(request, bytes + i, n - i);
        i += n_taken;
        if (request->state == TN_HTTP_HEAD_DONE) {
            handle_head(conn);
        } else if (request->state == TN_HTTP_FAILED) {
            refuse(conn, request->status, request->why);
        } else if (request->state == TN_HTTP_DONE) {
            conn->state = TN_CONN_BUSY;
            conn->host->on_request(conn->host->arg, conn);
        } else if (i == n) {
            break;
        }
    }
    return i;
}

/* The client has shut down its side: complete requests are still answered. */
static void take_end(struct tn_conn *conn, uint64_t now_ns)
{
    conn->has_ended = true;
    conn->ended_ns = now_ns;
    if (conn->state == TN_CONN_BUSY && conn->user.on_end)
        conn->user.on_end(conn->user.arg);
    else if (conn->state != TN_CONN_BUSY && n_unsent(conn) == 0)
        tn_conn_drop(conn);
}

void tn_conn_read(struct tn_conn *conn, char *scratch, size_t n_scratch, uint64_t now_ns)
{
    int64_t n = tn_net_read(conn->socket, scratch, n_scratch);
    if (n == TN_NET_AGAIN)
        return;
    if (n == TN_NET_GONE)
        tn_conn_drop(conn);
    else if (n == 0)
        take_end(conn, now_ns);
    if (n <= 0)
        return;
    size_t i = conn->state == TN_CONN_READING ? consume(conn, scratch, (size_t)n, now_ns) : 0;
    if (conn->state == TN_CONN_BUSY && i < (size_t)n &&
        !tn_buf_append(&conn->pending, scratch + i, (size_t)n - i))
        tn_conn_drop(conn);
}

/* ---- writing ---- */

void tn_conn_write(struct tn_conn *conn, uint64_t now_ns)
{
    if (conn->out.failed) { /* bytes of the answer are missing: send none of it */
        tn_conn_drop(conn);
        return;
    }
    const bool had_bytes = n_unsent(conn) > 0;
    while (tn_conn_wants_write(conn)) {
        int64_t n = tn_net_write(conn->socket, conn->out.data + conn->n_sent, n_unsent(conn));
        if (n == TN_NET_AGAIN)
            return;
        if (n < 0) {
            tn_conn_drop(conn);
            return;
        }
        conn->n_sent += (size_t)n;
        conn->n_progress += (size_t)n;
        if (conn->n_progress >= TN_CONN_MIN_PROGRESS) {
            conn->progress_ns = now_ns;
            conn->n_progress = 0;
        }
    }
    if (conn->out.capacity > TN_CONN_MAX_UNSENT)
        free_out(conn);
    else
        tn_buf_clear(&conn->out);
    conn->n_sent = 0;
    conn->progress_ns = now_ns;
    conn->n_progress = 0;
    if (had_bytes && conn->state == TN_CONN_READING && !has_begun(&conn->request))
        conn->reading_since_ns = now_ns; /* it waits for a request from now on */
}

/* ---- from one request to the next ---- */

/* Finishes the current answer if it is complete. */
static void finish_answer(struct tn_conn *conn, uint64_t now_ns)
{
    if (!conn->is_answered || conn->state == TN_CONN_DEAD)
        return;
    conn->host->on_done(conn->host->arg, conn, conn->status);
    conn->user = (struct tn_conn_user){0};
    conn->state = conn->closes ? TN_CONN_CLOSING : TN_CONN_READING;
    conn->was_answered = true;
    conn->is_answered = conn->is_chunked = false;
    conn->cors_origin = (struct tn_http_text){0};
    conn->status = 0;
    conn->code = NULL;
    conn->n_out = 0;
    conn->reading_since_ns = now_ns;
    tn_http_fini(&conn->request);
    if (conn->closes)
        tn_buf_fini(&conn->pending);
}

static void take_pending(struct tn_conn *conn, uint64_t now_ns)
{
    struct tn_buf pending = conn->pending;
    conn->pending = (struct tn_buf){0};
    size_t n = consume(conn, pending.data, pending.n_bytes, now_ns);
    if (conn->state == TN_CONN_BUSY && n < pending.n_bytes &&
        !tn_buf_append(&conn->pending, pending.data + n, pending.n_bytes - n))
        tn_conn_drop(conn);
    tn_buf_fini(&pending);
}

static void shut(struct tn_conn *conn, uint64_t now_ns)
{
    tn_net_shutdown(conn->socket);
    conn->is_shut = true;
    conn->reading_since_ns = now_ns;
    if (conn->has_ended) /* no more input will arrive */
        tn_conn_drop(conn);
}

void tn_conn_advance(struct tn_conn *conn, uint64_t now_ns)
{
    tn_conn_write(conn, now_ns);
    finish_answer(conn, now_ns);
    for (int i = 0; i < TN_CONN_ANSWERS_PER_TURN && tn_conn_is_due(conn); i++) {
        take_pending(conn, now_ns);
        tn_conn_write(conn, now_ns);
        finish_answer(conn, now_ns);
    }
    if (conn->state == TN_CONN_READING && conn->has_ended && conn->pending.n_bytes == 0)
        conn->state = TN_CONN_CLOSING;
    if (conn->state == TN_CONN_CLOSING && !conn->is_shut && n_unsent(conn) == 0)
        shut(conn, now_ns);
    if (conn->state != TN_CONN_BUSY && !has_begun(&conn->request) && n_unsent(conn) == 0)
        conn->has_slot = false;
}

void tn_conn_tell_busy(struct tn_conn *conn, uint64_t now_ns)
{
    refuse(conn, 503, "the server is busy: all connections are in use");
    tn_conn_advance(conn, now_ns);
}

/* ---- time ---- */

bool tn_conn_is_waiting(const struct tn_conn *conn)
{
    return conn->state == TN_CONN_READING && !conn->has_slot && n_unsent(conn) == 0;
}

bool tn_conn_is_incomplete(const struct tn_conn *conn)
{
    return tn_conn_is_waiting(conn) || conn->is_shut;
}

bool tn_conn_is_late(const struct tn_conn *conn, uint64_t now_ns)
{
    return conn->state == TN_CONN_READING && conn->has_slot && has_begun(&conn->request) &&
           now_ns - conn->reading_since_ns > TN_CONN_PATIENCE_NS;
}

/* A client that is still receiving its last answer is not idle; TN_CONN_STUCK_NS limits it. */
static uint64_t limit_of_reading(const struct tn_conn *conn)
{
    if (!has_begun(&conn->request))
        return n_unsent(conn) > 0 ? UINT64_MAX : TN_CONN_IDLE_NS;
    return conn->request.state == TN_HTTP_HEAD ? TN_CONN_HEAD_NS : TN_CONN_REQUEST_NS;
}

void tn_conn_tick(struct tn_conn *conn, uint64_t now_ns)
{
    uint64_t waited_ns = now_ns - conn->reading_since_ns;
    if (n_unsent(conn) > 0 &&
        (now_ns - conn->progress_ns > TN_CONN_STUCK_NS ||
         (conn->state == TN_CONN_BUSY && n_unsent(conn) > TN_CONN_MAX_STUCK_BYTES)))
        tn_conn_drop(conn);
    if (conn->state == TN_CONN_BUSY && conn->user.on_tick)
        conn->user.on_tick(conn->user.arg, now_ns);
    else if (conn->state == TN_CONN_CLOSING && conn->is_shut && waited_ns > TN_CONN_LINGER_NS)
        tn_conn_drop(conn);
    else if (conn->state == TN_CONN_READING && waited_ns > limit_of_reading(conn)) {
        if (has_begun(&conn->request))
            refuse(conn, 408, "the request did not arrive in time");
        else
            tn_conn_drop(conn);
    }
}
