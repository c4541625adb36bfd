/* SPDX-License-Identifier: MIT
 *
 * A query: a request whose complete answer is computed by one work item.  Embeddings run on the
 * engine thread, tokenization on a reader thread.
 *
 * A query starts and ends on the loop thread and belongs to the other thread in between.  It
 * outlives its connection: when the client is gone, it ends after the current slice.
 */
#ifndef TN_QUERY_H
#define TN_QUERY_H

#include "server/serve.h"
#include "server/waiting.h"

struct tn_query;

struct tn_query_kind {
    /* size of the struct whose first member is the query; its other members start as zeros */
    size_t n_bytes;
    enum tn_use use;
    tn_error_fn *error;
    /* Reader thread: prepares the input of `run` or refuses, and sets is_long.  NULL: `run` needs
     * no engine and runs on the reader thread. */
    void (*prepare)(struct tn_query *query);
    /* Runs one slice of the work; appends to query->out, or refuses. */
    enum tn_slice (*run)(struct tn_query *query);
    void (*fini)(struct tn_query *query); /* loop thread; may be NULL */
};

struct tn_query {
    struct tn_query *next; /* next in the server's list */
    struct tn_server *server;
    struct tn_conn *conn; /* NULL: the client is gone */
    const struct tn_query_kind *kind;
    const struct tn_server_model *model;
    struct tn_body request;
    json_t *body; /* JSON of the request */
    struct tn_work_item item;
    bool is_long; /* has many slices and must not delay short queries */
    struct tn_waiting waiting;
    struct tn_buf out; /* the answer as JSON */
    struct tn_refusal refusal; /* status 0: none */
    uint64_t n_prompt_tokens;  /* computed so far and the time it took, for /metrics */
    double prompt_s;
};

/* Answers the request of this connection, now or later. */
void tn_query_start(struct tn_server *server, struct tn_conn *conn,
                   const struct tn_query_kind *kind);
/* For `run`: ends the query with an error of the library. */
enum tn_slice tn_query_fail(struct tn_query *query, const struct tern_error *err);
/* Called when the server closes. */
void tn_query_free_all(struct tn_server *server);

#endif
