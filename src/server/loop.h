/* SPDX-License-Identifier: MIT
 *
 * Listens, accepts, and lets each connection go on when it can: one thread, one wait for all.
 *
 * TN_CONN_SLOTS requests are received, computed or sent at once; one beyond them gets 503, unless
 * it only asks how the server is.  While there are more connections than slots, a connection whose
 * head does not come in TN_CONN_PATIENCE_NS is told 503 too.  When even TN_CONN_MAX are open, the
 * one that has waited longest for its head makes room (slow attackers hold the oldest connections,
 * real clients are quick).  A client that takes its answer is never cut for others.
 */
#ifndef TN_LOOP_H
#define TN_LOOP_H

#include "server/conn.h"
#include "tern/status.h"

#define TN_LOOP_MAX_LISTENERS 2u

struct tn_loop; /* tn_loop_close frees */

/* Listens at a numeric address, or, for "localhost", at 127.0.0.1 and ::1 with the same port.
 * Port 0: a free one.  `host` must outlive the loop.  TERN_OUTPUT when the port is taken. */
tern_status tn_loop_open(struct tn_loop **out, const char *host, uint16_t port,
                         const struct tn_conn_host *conn_host, struct tern_error *err);
void tn_loop_close(struct tn_loop *loop);
uint16_t tn_loop_port(const struct tn_loop *loop);
uint32_t tn_loop_n_connections(const struct tn_loop *loop);
/* A slot for the request whose head has come; that of a client whose body is late if no other is
 * free.  false: there is none. */
bool tn_loop_take_slot(struct tn_loop *loop, struct tn_conn *conn);
/* Has somebody to be answered or sent to? */
bool tn_loop_is_busy(const struct tn_loop *loop);
/* The server ends: requests that are still answered are refused, streams end with an error. */
void tn_loop_end_answers(struct tn_loop *loop);
/* From now on nobody is accepted, and connections that wait are closed. */
void tn_loop_stop_listening(struct tn_loop *loop);
/* Waits for the network or tn_net_wake, at most timeout_ms, and does what can be done. */
void tn_loop_turn(struct tn_loop *loop, uint32_t timeout_ms);
/* Answers were written outside of the calls of tn_conn_host: they go out. */
void tn_loop_flush(struct tn_loop *loop);

#endif
