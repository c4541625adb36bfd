/* SPDX-License-Identifier: MIT
 *
 * Parses request bodies: small ones at once, large ones on the parser thread.
 *
 * Accounts for the memory of a request from its body to its answer.
 */
#include "server/body.h"

#include "base/alloc.h"
#include "server/serve.h"

struct tn_large_body {
    struct tn_large_body *next; /* next in the server's list */
    struct tn_server *server;
    struct tn_conn *conn; /* NULL: the client is gone */
    tn_route_fn *route;
    struct tn_http_pages text;
    struct tn_work_item item;
    struct tn_body body;
    struct tn_refusal refusal;
};

/* The parser holds the longest string up to three times while its buffer grows; encoding holds it
 * as text, as a conversation and as ids. */
#define WORKING_COPIES 4u
/* Arrays and objects of a conversation: a copy, the parse of its text, the template's values. */
#define TREES 3u

bool tn_body_hold(struct tn_server *server, struct tn_body *body, size_t n_bytes,
                  struct tn_refusal *r)
{
    const size_t all = server->budget.n_bytes, n_whole = body->n_bytes + n_bytes;
    if (tn_budget_take(&server->budget, n_bytes)) {
        body->n_bytes = n_whole;
        return true;
    }
    if (n_whole > all)
        return tn_refuse(r, 413, NULL,
                         "the request takes %zu KiB of memory; the limit for all requests "
                         "together is %zu",
                         n_whole >> 10, all >> 10);
    return tn_refuse(r, 503, NULL,
                     "the server is busy: other requests use all of the memory for requests");
}

bool tn_body_hold_working(struct tn_server *server, struct tn_body *body, size_t n_bytes,
                          struct tn_refusal *r)
{
    if (!tn_body_hold(server, body, n_bytes, r))
        return false;
    body->n_working += n_bytes;
    return true;
}

static bool parse(struct tn_server *server, const char *text, size_t n, struct tn_body *out,
                  struct tn_refusal *r)
{
    const size_t n_working = WORKING_COPIES * n;
    const size_t n_json = tn_json_body_bound(text, n);
    *out = (struct tn_body){.n_tree = n_json - n};
    if (!tn_body_hold_working(server, out, n_working, r) ||
        !tn_body_hold(server, out, n_json, r)) {
        tn_body_free(server, out);
        return false;
    }
    out->root = tn_json_body_read(text, n, &out->seed, r);
    if (!out->root)
        tn_body_free(server, out);
    return out->root != NULL;
}

void tn_body_free(struct tn_server *server, struct tn_body *body)
{
    json_decref(body->root);
    tn_budget_release(&server->budget, body->n_bytes);
    *body = (struct tn_body){0};
}

bool tn_body_hold_copies(struct tn_server *server, struct tn_body *body, size_t n_tree,
                         struct tn_refusal *r)
{
    return tn_body_hold_working(server, body, TREES * n_tree, r);
}

bool tn_body_hold_answer(struct tn_server *server, struct tn_body *body, size_t n_bytes,
                         struct tn_refusal *r)
{
    tn_budget_release(&server->budget, body->n_working);
    body->n_bytes -= body->n_working;
    body->n_working = 0;
    return tn_body_hold(server, body, n_bytes, r);
}

bool tn_body_hold_out(struct tn_server *server, struct tn_body *body, size_t n_bytes,
                      struct tn_refusal *r)
{
    const size_t n_more = n_bytes - TN_MIN(n_bytes, body->n_out);
    if (!tn_body_hold(server, body, n_more, r))
        return false;
    body->n_out += n_more;
    return true;
}

bool tn_body_read(struct tn_server *server, const struct tn_conn *conn, struct tn_body *out,
                  struct tn_refusal *r)
{
    struct tn_large_body *large = server->current_body;
    if (!large)
        return parse(server, conn->request.body.data, conn->request.body.n, out, r);
    *out = large->body;
    large->body = (struct tn_body){0};
    if (!out->root)
        *r = large->refusal;
    return out->root != NULL;
}

struct tn_work *tn_body_thread(struct tn_server *server, bool is_slow)
{
    return server->current_body || is_slow ? server->parser : server->reader;
}

/* ---- large bodies ---- */

static void free_large_body(struct tn_large_body *large)
{
    tn_http_free_pages(&large->text);
    tn_body_free(large->server, &large->body);
    tn_free(large);
}

static void remove_large_body(struct tn_large_body *large)
{
    for (struct tn_large_body **p = &large->server->large_bodies; *p; p = &(*p)->next)
        if (*p == large) {
            *p = large->next;
            break;
        }
    free_large_body(large);
}

void tn_body_free_all(struct tn_server *server)
{
    while (server->large_bodies)
        remove_large_body(server->large_bodies);
}

static enum tn_slice run(void *owner)
{
    struct tn_large_body *large = owner;
    (void)parse(large->server, large->text.data, large->text.n, &large->body,
                &large->refusal);
    tn_http_free_pages(&large->text);
    return TN_SLICE_LAST;
}

static void done(void *owner)
{
    struct tn_large_body *large = owner;
    struct tn_server *server = large->server;
    if (large->conn) {
        large->conn->user = (struct tn_conn_user){0};
        server->current_body = large;
        large->route(server, large->conn);
        server->current_body = NULL;
    }
    remove_large_body(large);
}

static void on_gone(void *arg)
{
    struct tn_large_body *large = arg;
    large->conn = NULL;
    tn_work_cancel_item(&large->item);
}

static void on_stop(void *arg)
{
    struct tn_large_body *large = arg;
    struct tn_refusal refusal;
    tn_refuse_end(&refusal);
    large->conn->user = (struct tn_conn_user){0};
    tn_reply_error(large->conn, tn_error_of(large->conn), &refusal);
    on_gone(large);
}

void tn_body_take_route(struct tn_server *server, struct tn_conn *conn, tn_route_fn *route)
{
    struct tn_large_body *large =
        conn->request.pages.data ? tn_alloc_zeroed(1, sizeof *large) : NULL;
    if (!large) { /* out of memory: parse it here instead */
        route(server, conn);
        return;
    }
    large->server = server;
    large->conn = conn;
    large->route = route;
    large->text = tn_http_take_pages(&conn->request);
    large->item = (struct tn_work_item){.run = run, .done = done, .owner = large};
    large->next = server->large_bodies;
    server->large_bodies = large;
    tn_conn_hold(conn, &(struct tn_conn_user){
                           .on_gone = on_gone, .on_stop = on_stop, .arg = large});
    tn_work_run_item(server->parser, &large->item);
}
