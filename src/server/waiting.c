/* SPDX-License-Identifier: MIT
 *
 * Heartbeats for complete answers that take long, and their late errors.
 *
 * Once the head is sent, errors can only be reported in the body.
 */
#include "server/waiting.h"

#include "server/conn_limits.h"

#define SLOW_NS (60ull * TN_SECOND_NS)

void tn_waiting_tick(struct tn_waiting *w, struct tn_conn *conn, uint64_t now_ns)
{
    const bool may_be_gone = conn->has_ended && now_ns - conn->ended_ns > TN_CONN_PROBE_NS;
    if (!w->has_head && (may_be_gone || now_ns - w->request_ns > SLOW_NS)) {
        w->has_head = true;
        tn_stream_begin(conn, 200, "application/json");
        w->written_ns = now_ns;
    } else if (w->has_head && now_ns - w->written_ns > TN_HEARTBEAT_NS) {
        tn_stream_write(conn, " ", 1);
        w->written_ns = now_ns;
    }
}

void tn_waiting_end(const struct tn_waiting *w, struct tn_conn *conn, const char *json, size_t n)
{
    if (w->has_head) {
        tn_stream_write(conn, json, n);
        tn_stream_end(conn);
    } else {
        tn_reply(conn, 200, "application/json", NULL, json, n);
    }
}

bool tn_waiting_refuse(const struct tn_waiting *w, struct tn_conn *conn,
                       const struct tn_refusal *refusal, tn_error_fn *error)
{
    struct tn_buf body = {0};
    if (!w->has_head) {
        tn_reply_error(conn, error, refusal);
        return true;
    }
    error(&body, refusal);
    if (body.failed)
        tn_conn_drop(conn);
    else
        tn_waiting_end(w, conn, body.data, body.n_bytes);
    tn_buf_fini(&body);
    return false;
}
