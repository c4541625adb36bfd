/* SPDX-License-Identifier: MIT
 *
 * From the body of a request to its JSON.
 *
 * A small body is parsed at once.  A large one is parsed by a thread for large requests, since 4
 * MiB take longer than clients that only ask how the server is should wait; its route is taken when
 * the JSON is there.  Texts become prompts and ids on that thread too, those of small requests on
 * another one: the engine's thread only computes, and no small request waits for a large one.
 * What the JSON takes is counted before it is made (ration.h): some bytes of text can become a
 * hundred times as many.
 */
#ifndef TN_BODY_H
#define TN_BODY_H

#include "server/conn.h"
#include "server/json_body.h"

struct tn_server;

/* The JSON of a request and what it holds of the server's ration. */
struct tn_body {
    json_t *root;
    struct tn_json_wide seed; /* of the root, where that has rounded it */
    size_t n_bytes;   /* all of it */
    size_t n_working; /* of these, copies while the text is parsed and becomes ids */
    size_t n_tree;    /* of these, lists and objects without the texts in them */
    size_t n_out;     /* of these, the answer */
};

/* Takes the route now, or when the large body of the request is parsed. */
void tn_body_take_route(struct tn_server *server, struct tn_conn *conn,
                        void (*route)(struct tn_server *server, struct tn_conn *conn));
/* For routes: the object that the body holds; tn_body_free.  false: refused. */
bool tn_body_read(struct tn_server *server, const struct tn_conn *conn, struct tn_body *out,
                  struct tn_refusal *refusal);
/* For routes: the thread on which the texts of this request become ids; is_slow: a grammar is
 * compiled there too. */
struct tn_work *tn_body_thread(struct tn_server *server, bool is_slow);
void tn_body_free(struct tn_server *server, struct tn_body *body);
/* More of the ration for a request: until its body is freed; until its texts have become ids.  Any
 * thread that owns the body.  false: refused. */
bool tn_body_hold(struct tn_server *server, struct tn_body *body, size_t n_bytes,
                  struct tn_refusal *refusal);
bool tn_body_hold_working(struct tn_server *server, struct tn_body *body, size_t n_bytes,
                          struct tn_refusal *refusal);
/* Before n_tree bytes of lists and objects become a conversation: their copies on the way to ids,
 * held as tn_body_hold_working does. */
bool tn_body_hold_copies(struct tn_server *server, struct tn_body *body, size_t n_tree,
                         struct tn_refusal *refusal);
/* Its texts have become ids: what they took on the way is given back, and what the answer takes is
 * held instead.  false: refused. */
bool tn_body_hold_answer(struct tn_server *server, struct tn_body *body, size_t n_bytes,
                         struct tn_refusal *refusal);
/* The answer takes n_bytes in all by now.  Any thread that owns the body.  false: refused. */
bool tn_body_hold_out(struct tn_server *server, struct tn_body *body, size_t n_bytes,
                      struct tn_refusal *refusal);
/* The server ends. */
void tn_body_free_all(struct tn_server *server);

#endif
