/* SPDX-License-Identifier: MIT
 *
 * A request whose whole answer is made by an errand: vectors on the engine's thread, ids of a text
 * on one of those that read requests.
 *
 * A call begins and ends on the loop's thread; in between it is that other thread's.  It outlives
 * its connection: when the client is gone it ends with the part that runs.
 */
#ifndef TN_CALL_H
#define TN_CALL_H

#include "server/serve.h"
#include "server/waiting.h"

struct tn_call;

struct tn_call_kind {
    size_t n_bytes; /* of the structure whose first member is the call; the rest begins as zeros */
    enum tn_use use;
    tn_error_fn *error;
    /* On a thread that reads requests: makes of the request what `run` needs, or refuses, and sets
     * is_long.  NULL: `run` needs no engine and runs on that thread. */
    void (*prepare)(struct tn_call *call);
    /* A part of the answer, into call->out, or a refusal. */
    enum tn_part (*run)(struct tn_call *call);
    void (*fini)(struct tn_call *call); /* loop's thread; may be NULL */
};

struct tn_call {
    struct tn_call *next; /* of the server's */
    struct tn_server *server;
    struct tn_conn *conn; /* NULL: the client is gone */
    const struct tn_call_kind *kind;
    const struct tn_server_model *model;
    struct tn_body request;
    json_t *body; /* its JSON */
    struct tn_errand errand;
    bool is_long; /* it has many parts: it does not delay those that have few */
    struct tn_waiting waiting;
    struct tn_buf out; /* the answer: JSON */
    struct tn_refusal refusal; /* status 0: none */
    uint64_t n_prompt_tokens;  /* computed so far, for /metrics, and the time that it took */
    double prompt_s;
};

/* Answers the request of this connection, now or later. */
void tn_call_start(struct tn_server *server, struct tn_conn *conn,
                   const struct tn_call_kind *kind);
/* For `run`: ends with a refusal of an error of the library. */
enum tn_part tn_call_fail(struct tn_call *call, const struct tern_error *err);
/* The server ends. */
void tn_call_free_all(struct tn_server *server);

#endif
