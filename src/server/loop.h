/* SPDX-License-Identifier: MIT
 *
 * Listens, accepts, and advances each connection when it is ready: one thread, one wait for all.
 *
 * TN_CONN_SLOTS requests are received, computed or sent at once; further ones get 503, except
 * health checks.  While there are more connections than slots, one whose head does not arrive
 * within TN_CONN_PATIENCE_NS gets 503 too.  With TN_CONN_MAX open, the one that has waited longest
 * for its head is dropped (slow attackers hold the oldest connections).  A client that is receiving
 * its answer is never dropped for another.
 */
#ifndef TN_LOOP_H
#define TN_LOOP_H

#include "server/conn.h"
#include "tern/status.h"

struct tn_loop; /* freed by tn_loop_close */

/* Listens on a numeric address, or, for "localhost", on 127.0.0.1 and ::1 with the same port. Port
 * 0: any free one.  `conn_host` must outlive the loop.  TERN_OUTPUT: the port is taken. */
tern_status tn_loop_open(struct tn_loop **out, const char *host, uint16_t port,
                         const struct tn_conn_host *conn_host, struct tern_error *err);
void tn_loop_close(struct tn_loop *loop);
uint16_t tn_loop_port(const struct tn_loop *loop);
uint32_t tn_loop_n_connections(const struct tn_loop *loop);
/* Takes a slot for a request whose head is complete; if none is free, that of a client whose body
 * is late.  false: none. */
bool tn_loop_take_slot(struct tn_loop *loop, struct tn_conn *conn);
/* Is any request being answered, or any answer being sent? */
bool tn_loop_is_busy(const struct tn_loop *loop);
/* The server is stopping: refuses requests in progress, and ends streams with an error. */
void tn_loop_end_answers(struct tn_loop *loop);
/* Stops accepting and closes idle connections. */
void tn_loop_stop_listening(struct tn_loop *loop);
/* Waits up to timeout_ms for the network or tn_net_wake, and handles the events. */
void tn_loop_turn(struct tn_loop *loop, uint32_t timeout_ms);
/* Sends answers that were written outside the callbacks of tn_conn_host. */
void tn_loop_flush(struct tn_loop *loop);

#endif
