/* SPDX-License-Identifier: MIT
 *
 * A client that waits for a whole answer of JSON.  Clients give up after minutes without a byte:
 * after one minute the head of the answer goes out, and from then on a space every 15 s, which
 * JSON allows in front of a value.  What the head said cannot be taken back: an error then comes
 * with status 200.  A client that has ended its side may be gone: its head goes out sooner
 * (TN_CONN_PROBE_NS).
 */
#ifndef TN_WAITING_H
#define TN_WAITING_H

#include "server/serve.h"

#define TN_HEARTBEAT_NS 15000000000u

struct tn_waiting {
    uint64_t began_ns, written_ns;
    bool has_head;
};

/* About once a second. */
void tn_waiting_tick(struct tn_waiting *waiting, struct tn_conn *conn, uint64_t now_ns);
/* The whole answer, with status 200. */
void tn_waiting_end(const struct tn_waiting *waiting, struct tn_conn *conn, const char *json,
                    size_t n);
/* With its status; false: that could not be said any more. */
bool tn_waiting_refuse(const struct tn_waiting *waiting, struct tn_conn *conn,
                       const struct tn_refusal *refusal, tn_error_fn *error);

#endif
