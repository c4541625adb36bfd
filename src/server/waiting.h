/* SPDX-License-Identifier: MIT
 *
 * A client that waits for a complete JSON answer.
 *
 * Clients time out after minutes without a byte.  After one minute the head of the answer is sent,
 * and from then on a space every 15 s, which JSON allows before a value.  The status is then 200,
 * even if an error follows.  For a client that shut down its side the head is sent sooner
 * (TN_CONN_PROBE_NS), to find out whether it is gone.
 */
#ifndef TN_WAITING_H
#define TN_WAITING_H

#include "server/serve.h"

#define TN_HEARTBEAT_NS 15000000000u

struct tn_waiting {
    uint64_t request_ns, written_ns;
    bool has_head;
};

/* Call about once a second. */
void tn_waiting_tick(struct tn_waiting *waiting, struct tn_conn *conn, uint64_t now_ns);
/* Sends the complete answer with status 200. */
void tn_waiting_end(const struct tn_waiting *waiting, struct tn_conn *conn, const char *json,
                    size_t n);
/* Sends a refusal with its status.  false: the head was already sent. */
bool tn_waiting_refuse(const struct tn_waiting *waiting, struct tn_conn *conn,
                       const struct tn_refusal *refusal, tn_error_fn *error);

#endif
