/* SPDX-License-Identifier: MIT
 *
 * Limits of a connection in bytes and time.
 *
 * Limits of a single request are in http.h, limits of all requests together in budget.h.
 */
#ifndef TN_CONN_LIMITS_H
#define TN_CONN_LIMITS_H

#define TN_CONN_SLOTS 64u /* requests received, computed or sent at once */
/* Connections beyond the slots; each gets TN_CONN_PATIENCE_NS to send the head of a request. */
#define TN_CONN_MAX_EXTRA 128u
#define TN_CONN_MAX (TN_CONN_SLOTS + TN_CONN_MAX_EXTRA)
#define TN_CONN_MAX_PENDING ((size_t)16 << 10)  /* input after the current request */
/* above it no new request is read, and the excess is taken from the budget */
#define TN_CONN_MAX_UNSENT ((size_t)256 << 10)
#define TN_CONN_ANSWERS_PER_TURN 2              /* to pipelined requests */
/* For a stream in progress; a client above it is dropped. */
#define TN_CONN_MAX_STUCK_BYTES ((size_t)8 << 20)

#define TN_SECOND_NS 1000000000u
/* From the first byte to the end of the head.  Checked once a second, so it takes at most 10 s. */
#define TN_CONN_HEAD_NS (17ull * TN_SECOND_NS / 2)
#define TN_CONN_REQUEST_NS (60ull * TN_SECOND_NS) /* and to the end of the body */
/* Checked every 200 ms, so it takes at most 1 s. */
#define TN_CONN_PATIENCE_NS (4ull * TN_SECOND_NS / 5)
/* A client that shut down its side may be gone.  A write shows it; it happens at the latest after
 * this time plus a second. */
#define TN_CONN_PROBE_NS (10ull * TN_SECOND_NS)
#define TN_CONN_IDLE_NS (120ull * TN_SECOND_NS)   /* kept alive without traffic */
#define TN_CONN_STUCK_NS (30ull * TN_SECOND_NS)   /* the client receives less than the next limit */
/* minimum progress in that time, unless all is sent */
#define TN_CONN_MIN_PROGRESS ((size_t)16 << 10)
#define TN_CONN_LINGER_NS (2ull * TN_SECOND_NS)   /* discards input after the last answer */

#endif
