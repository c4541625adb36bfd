/* SPDX-License-Identifier: MIT
 *
 * A connection: bytes in, one request at a time, bytes out.
 *
 *   READING  a request comes in, or nothing does (kept alive)
 *   BUSY     it is being answered; what the client sends meanwhile waits.  The end of what it sends
 *            is a half-close: it gets its answer.  A reset or a failed write says that it is gone
 *   CLOSING  the answer goes out, then what still comes is read and thrown away for a moment, so
 *            that the system does not throw the answer away
 *   DEAD     loop.c takes it out
 *
 * A request takes a slot when its head is complete and holds it until its answer is sent; the host
 * says in on_head which requests need one.
 *
 * loop.c owns connections and says when they may read and write; answers are written through
 * tn_reply and tn_stream_*, by whoever answers (struct tn_conn_user), on the loop's thread.
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

/* Who answers; set by tn_conn_hold for the time of one answer. */
struct tn_conn_user {
    void (*on_gone)(void *arg);                    /* the client is gone: stop the work */
    /* The client has ended its side: it waits for its answer, or it is gone.  A write tells which;
     * may be NULL. */
    void (*on_end)(void *arg);
    void (*on_tick)(void *arg, uint64_t now_ns);   /* about once a second */
    void (*on_stop)(void *arg);                    /* the server ends: answer that, now */
    void *arg;
};

/* The program behind the connections. */
struct tn_conn_host {
    /* The head is there.  Returns false when it has answered (a refusal). */
    bool (*on_head)(void *arg, struct tn_conn *conn);
    /* The whole request is there: answer now, or hold the connection. */
    void (*on_request)(void *arg, struct tn_conn *conn);
    /* An answer is complete, or its client is gone (status 0). */
    void (*on_done)(void *arg, const struct tn_conn *conn, int status);
    /* The JSON of an error outside of any request's route, in the shape of the API that the path
     * belongs to. */
    void (*append_error)(void *arg, const struct tn_conn *conn, int status, const char *why,
                         struct tn_buf *out);
    struct tn_ration *ration; /* of all requests; NULL: none */
    void *arg;
};

struct tn_conn {
    tn_socket socket;
    enum tn_conn_state state;
    const struct tn_conn_host *host;
    struct tn_conn_user user;
    struct tn_http_request request;
    struct tn_http_text cors_origin; /* of this request: it is told that it may */
    struct tn_buf pending;           /* came behind the request */
    struct tn_buf out;
    size_t n_sent;                   /* of out */
    size_t n_held;                   /* of the ration, for what out takes above its free part */
    size_t n_progress;               /* bytes that went out since progress_ns */
    uint64_t began_ns;      /* READING: the first byte of this request, or when it began to wait,
                             * all answers taken */
    uint64_t progress_ns;   /* when enough bytes had gone out last, or there were none */
    uint64_t ended_ns;      /* when the client ended its side */
    uint64_t n_out;         /* bytes of the answer, for the log */
    int status;             /* of the answer; 0: none yet */
    const char *code;       /* of a refusal (struct tn_refusal); NULL: none */
    bool closes;            /* behind this answer */
    bool is_chunked;        /* the answer is a stream in chunks */
    bool is_answered;
    bool is_shut;           /* CLOSING: our end is closed */
    bool has_ended;         /* the client sends no more */
    bool has_slot;
    bool was_answered;      /* it is kept alive after an answer */
};

void tn_conn_init(struct tn_conn *conn, tn_socket socket, const struct tn_conn_host *host,
                  uint64_t now_ns);
/* Closes; tells the user, if there is one, that the client is gone. */
void tn_conn_drop(struct tn_conn *conn);
/* The same, and frees. */
void tn_conn_fini(struct tn_conn *conn);

bool tn_conn_wants_read(const struct tn_conn *conn);
bool tn_conn_wants_write(const struct tn_conn *conn);
/* `scratch` is room for n_scratch bytes that nobody keeps. */
void tn_conn_read(struct tn_conn *conn, char *scratch, size_t n_scratch, uint64_t now_ns);
void tn_conn_write(struct tn_conn *conn, uint64_t now_ns);
/* Whatever can go on goes on: finished answers, the next requests, of which a few are taken at a
 * time so that other clients have their turn. */
void tn_conn_advance(struct tn_conn *conn, uint64_t now_ns);
/* A request that has come already may be taken. */
bool tn_conn_is_due(const struct tn_conn *conn);
/* Limits of time; a second apart is enough. */
void tn_conn_tick(struct tn_conn *conn, uint64_t now_ns);
/* No request is complete, and no answer is on its way: nothing is lost when another client gets the
 * connection. */
bool tn_conn_is_waiting(const struct tn_conn *conn);
/* The same, or its answer is out and it is read on for a moment. */
bool tn_conn_is_incomplete(const struct tn_conn *conn);
/* It has a slot, and the body of its request has not arrived for a while. */
bool tn_conn_is_late(const struct tn_conn *conn, uint64_t now_ns);
/* READING: tells the client to come again, in the shape of its API as far as that is known, and
 * closes. */
void tn_conn_tell_busy(struct tn_conn *conn, uint64_t now_ns);

/* ---- answering ---- */

/* Room for n more bytes in `out`, which takes from the ration what is beyond TN_CONN_MAX_UNSENT.
 * false: there is none. */
bool tn_conn_reserve(struct tn_conn *conn, size_t n);

/* The answer comes later; the user hears of the client's end until it does. */
void tn_conn_hold(struct tn_conn *conn, const struct tn_conn_user *user);
/* A whole answer.  `fields`: more head lines, each with CR LF; may be NULL. */
void tn_reply(struct tn_conn *conn, int status, const char *type, const char *fields,
              const char *body, size_t n);
/* The same of a buffer, which is freed.  When there is no memory for an answer the client gets 503
 * from host->append_error. */
void tn_reply_buf(struct tn_conn *conn, int status, const char *type, const char *fields,
                  struct tn_buf *body);
/* An answer in pieces: its head goes out at once. */
void tn_stream_begin(struct tn_conn *conn, int status, const char *type);
void tn_stream_write(struct tn_conn *conn, const char *bytes, size_t n);
void tn_stream_end(struct tn_conn *conn);

#endif
