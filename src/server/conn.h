/* SPDX-License-Identifier: MIT
 *
 * A connection: bytes in, one request at a time, bytes out.
 *
 *   READING  waits for a request or receives one
 *   BUSY     a request is being answered; further input waits.  Half-close: the client still gets
 *            its answer.  A reset or a failed write means that it is gone
 *   CLOSING  the answer is being sent; then input is discarded for a moment, because closing a
 *            socket with unread input would discard the answer
 *   DEAD     loop.c removes it
 *
 * A request takes a slot when its head is complete and holds it until its answer is sent.  loop.c
 * owns connections; struct tn_conn_user writes answers, on the loop thread.
 */
#ifndef TN_CONN_H
#define TN_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "plat/net.h"
#include "server/http.h"

enum tn_conn_state { TN_CONN_READING, TN_CONN_BUSY, TN_CONN_CLOSING, TN_CONN_DEAD };

struct tn_conn;

/* The owner of one answer, set by tn_conn_hold. */
struct tn_conn_user {
    void (*on_gone)(void *arg);                    /* the client is gone: stop the work */
    /* The client has shut down its side: it waits for the answer, or is gone; a write will show
     * which.  May be NULL. */
    void (*on_end)(void *arg);
    void (*on_tick)(void *arg, uint64_t now_ns);   /* about once a second */
    void (*on_stop)(void *arg);                    /* the server is stopping: answer that now */
    void *arg;
};

/* Callbacks of the program that owns the connections. */
struct tn_conn_host {
    /* The head is complete.  false: it was answered already (refused). */
    bool (*on_head)(void *arg, struct tn_conn *conn);
    /* The request is complete: answer now, or call tn_conn_hold. */
    void (*on_request)(void *arg, struct tn_conn *conn);
    /* An answer is complete, or its client is gone (status 0). */
    void (*on_done)(void *arg, const struct tn_conn *conn, int status);
    /* Appends the JSON of an error outside any route, in the format of the API that the path
     * belongs to. */
    void (*append_error)(void *arg, const struct tn_conn *conn, int status, const char *why,
                         struct tn_buf *out);
    struct tn_budget *budget; /* shared by all requests; NULL: none */
    void *arg;
};

struct tn_conn {
    tn_socket socket;
    enum tn_conn_state state;
    const struct tn_conn_host *host;
    struct tn_conn_user user;
    struct tn_http_request request;
    struct tn_http_text cors_origin; /* origin to allow in the answer */
    struct tn_buf pending;           /* input after the current request */
    struct tn_buf out;
    size_t n_sent;                   /* bytes of out */
    size_t n_held; /* of the budget, for the excess of out over TN_CONN_MAX_UNSENT */
    size_t n_progress;               /* bytes sent since progress_ns */
    /* READING: time of the request's first byte, or of the start of waiting */
    uint64_t reading_since_ns;
    uint64_t progress_ns;   /* time when enough bytes had been sent, or none were pending */
    uint64_t ended_ns;      /* when the client shut down its side */
    uint64_t n_out;         /* bytes of the answer, for the log */
    int status;             /* of the answer; 0: none yet */
    const char *code;       /* of a refusal (struct tn_refusal); NULL: none */
    bool closes;            /* after this answer */
    bool is_chunked;        /* the answer is a stream of chunks */
    bool is_answered;
    bool is_shut;           /* CLOSING: our side is shut down */
    bool has_ended;         /* the client has shut down its side */
    bool has_slot;
    bool was_answered;      /* kept alive after an answer */
};

void tn_conn_init(struct tn_conn *conn, tn_socket socket, const struct tn_conn_host *host,
                  uint64_t now_ns);
/* Closes; calls on_gone of the user, if any. */
void tn_conn_drop(struct tn_conn *conn);
/* The same, and frees. */
void tn_conn_fini(struct tn_conn *conn);

bool tn_conn_wants_read(const struct tn_conn *conn);
bool tn_conn_wants_write(const struct tn_conn *conn);
/* `scratch` [n_scratch] is a temporary buffer. */
void tn_conn_read(struct tn_conn *conn, char *scratch, size_t n_scratch, uint64_t now_ns);
void tn_conn_write(struct tn_conn *conn, uint64_t now_ns);
/* Advances as far as possible: finished answers, then the next requests, a few at a time so that
 * other clients get their turn. */
void tn_conn_advance(struct tn_conn *conn, uint64_t now_ns);
/* Has a complete request arrived that may be handled now? */
bool tn_conn_is_due(const struct tn_conn *conn);
/* Enforces the time limits; once a second is enough. */
void tn_conn_tick(struct tn_conn *conn, uint64_t now_ns);
/* Neither a complete request nor an answer in progress: dropping it loses nothing. */
bool tn_conn_is_waiting(const struct tn_conn *conn);
/* The same, or its answer is sent and it lingers. */
bool tn_conn_is_incomplete(const struct tn_conn *conn);
/* Does it hold a slot although its body has not arrived for a while? */
bool tn_conn_is_late(const struct tn_conn *conn, uint64_t now_ns);
/* READING: answers 503 in the format of the API, as far as known, and closes. */
void tn_conn_tell_busy(struct tn_conn *conn, uint64_t now_ns);

/* ---- answering ---- */

/* Makes room for n more bytes in `out`; the excess over TN_CONN_MAX_UNSENT is taken from the
 * budget.  false: out of memory. */
bool tn_conn_reserve(struct tn_conn *conn, size_t n);

/* The answer comes later; until then the user is notified when the client shuts down or is gone. */
void tn_conn_hold(struct tn_conn *conn, const struct tn_conn_user *user);
/* Writes a complete answer.  `fields`: further header lines, each with CR LF; may be NULL. */
void tn_reply(struct tn_conn *conn, int status, const char *type, const char *fields,
              const char *body, size_t n);
/* The same for a buffer, which is freed.  If there is no memory for the answer, the client gets 503
 * from host->append_error. */
void tn_reply_buf(struct tn_conn *conn, int status, const char *type, const char *fields,
                  struct tn_buf *body);
/* An answer in pieces; its head is sent at once. */
void tn_stream_begin(struct tn_conn *conn, int status, const char *type);
void tn_stream_write(struct tn_conn *conn, const char *bytes, size_t n);
void tn_stream_end(struct tn_conn *conn);

#endif
