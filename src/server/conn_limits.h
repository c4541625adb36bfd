/* SPDX-License-Identifier: MIT
 *
 * What a connection may take, in bytes and in time; those of a request are in http.h.
 */
#ifndef TN_CONN_LIMITS_H
#define TN_CONN_LIMITS_H

#define TN_CONN_SLOTS 64u /* requests that are received, computed or being sent at once */
/* Connections beyond that: each gets TN_CONN_PATIENCE_NS for the head of a request. */
#define TN_CONN_MAX_EXTRA 128u
#define TN_CONN_MAX (TN_CONN_SLOTS + TN_CONN_MAX_EXTRA)
#define TN_CONN_MAX_PENDING ((size_t)16 << 10)  /* bytes behind a request that is answered */
#define TN_CONN_MAX_UNSENT ((size_t)256 << 10)  /* above it no new request is read, and
                                                 * what is beyond comes from the ration */
#define TN_CONN_ANSWERS_PER_TURN 2              /* to requests that came at once */
/* Of a stream that goes on: above it the client is dropped. */
#define TN_CONN_MAX_STUCK_BYTES ((size_t)8 << 20)

#define TN_SECOND_NS 1000000000u
/* From the first byte to the end of the head. Looked at once a second: 10 s at most. */
#define TN_CONN_HEAD_NS (17ull * TN_SECOND_NS / 2)
#define TN_CONN_REQUEST_NS (60ull * TN_SECOND_NS) /* and to the end of the body */
/* The loop looks every 200 ms: 1 s at most. */
#define TN_CONN_PATIENCE_NS (4ull * TN_SECOND_NS / 5)
/* A client that has ended its side may be gone: a write to it tells, at the latest this much later,
 * and a second more. */
#define TN_CONN_PROBE_NS (10ull * TN_SECOND_NS)
#define TN_CONN_IDLE_NS (120ull * TN_SECOND_NS)   /* kept alive: nothing comes or goes */
#define TN_CONN_STUCK_NS (30ull * TN_SECOND_NS)   /* the client takes less than the next line */
#define TN_CONN_MIN_PROGRESS ((size_t)16 << 10)   /* bytes that it takes in that time, or all */
#define TN_CONN_LINGER_NS (2ull * TN_SECOND_NS)   /* reading on behind the last answer */

#endif
