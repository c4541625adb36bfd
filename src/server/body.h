/* SPDX-License-Identifier: MIT
 *
 * Turns the body of a request into JSON, and accounts for the memory of the request.
 *
 * A small body is parsed at once.  A large one is parsed by the parser thread, because 4 MiB take
 * longer than a health check should wait; its route is taken when the JSON is complete.  Small and
 * large requests become ids on different threads, so no small request waits for a large one, and
 * the engine thread only computes.
 *
 * Memory is held before JSON is parsed (budget.h): a few bytes of text can become a hundred times
 * as many.
 */
#ifndef TN_BODY_H
#define TN_BODY_H

#include "server/conn.h"
#include "server/json_body.h"

struct tn_server;

/* The JSON of a request, and the memory it holds of the server's budget. */
struct tn_body {
    json_t *root;
    struct tn_json_wide seed; /* "seed" of the root, where the JSON number rounded it */
    size_t n_bytes;   /* total */
    size_t n_working; /* of which copies, freed when the texts are tokenized */
    size_t n_tree;    /* of which arrays and objects, without their texts */
    size_t n_out;     /* of which the answer */
};

/* Takes the route now, or once the large body of the request is parsed. */
void tn_body_take_route(struct tn_server *server, struct tn_conn *conn,
                        void (*route)(struct tn_server *server, struct tn_conn *conn));
/* For routes: reads the object in the body; tn_body_free.  false: refused. */
bool tn_body_read(struct tn_server *server, const struct tn_conn *conn, struct tn_body *out,
                  struct tn_refusal *refusal);
/* For routes: the thread on which this request's texts become ids.  is_slow: a grammar is compiled
 * there too. */
struct tn_work *tn_body_thread(struct tn_server *server, bool is_slow);
void tn_body_free(struct tn_server *server, struct tn_body *body);
/* Holds more of the budget: until the body is freed, or until its texts have become ids.  Called on
 * the thread that owns the body.  false: refused. */
bool tn_body_hold(struct tn_server *server, struct tn_body *body, size_t n_bytes,
                  struct tn_refusal *refusal);
bool tn_body_hold_working(struct tn_server *server, struct tn_body *body, size_t n_bytes,
                          struct tn_refusal *refusal);
/* Holds memory for the copies of n_tree bytes of arrays and objects on their way to ids, like
 * tn_body_hold_working. */
bool tn_body_hold_copies(struct tn_server *server, struct tn_body *body, size_t n_tree,
                         struct tn_refusal *refusal);
/* Releases the working memory once the texts have become ids, and holds n_bytes for the answer.
 * false: refused. */
bool tn_body_hold_answer(struct tn_server *server, struct tn_body *body, size_t n_bytes,
                         struct tn_refusal *refusal);
/* Raises the memory held for the answer to n_bytes in total.  Called on the thread that owns the
 * body.  false: refused. */
bool tn_body_hold_out(struct tn_server *server, struct tn_body *body, size_t n_bytes,
                      struct tn_refusal *refusal);
/* Called when the server closes. */
void tn_body_free_all(struct tn_server *server);

#endif
