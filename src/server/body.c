/* SPDX-License-Identifier: MIT
 *
 * Bodies and their JSON.
 */
#include "server/body.h"

#include "base/alloc.h"
#include "server/serve.h"

struct tn_reading {
    struct tn_reading *next; /* of the server's */
    struct tn_server *server;
    struct tn_conn *conn; /* NULL: the client is gone */
    tn_route_fn *route;
    struct tn_http_pages text;
    struct tn_errand errand;
    struct tn_body body;
    struct tn_refusal refusal;
};

/* The reader holds the longest string up to three times while its buffer grows, encoding has it as
 * text, as a conversation and as ids. */
#define WORKING_COPIES 4u
/* Lists and objects of a conversation: a copy, read again from its text, the template's values. */
#define TREES 3u

bool tn_body_hold(struct tn_server *server, struct tn_body *body, size_t n_bytes,
                  struct tn_refusal *r)
{
    const size_t all = server->ration.n_bytes, n_whole = body->n_bytes + n_bytes;
    if (tn_ration_take(&server->ration, n_bytes)) {
        body->n_bytes = n_whole;
        return true;
    }
    if (n_whole > all)
        return tn_refuse(r, 413, NULL,
                         "the request takes %zu KiB of memory, all requests together may take %zu",
                         n_whole >> 10, all >> 10);
    return tn_refuse(r, 503, NULL, "the server is busy: others hold the memory for requests");
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
    tn_ration_give(&server->ration, body->n_bytes);
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
    tn_ration_give(&server->ration, body->n_working);
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
    struct tn_reading *reading = server->reading;
    if (!reading)
        return parse(server, conn->request.body.data, conn->request.body.n, out, r);
    *out = reading->body;
    reading->body = (struct tn_body){0};
    if (!out->root)
        *r = reading->refusal;
    return out->root != NULL;
}

struct tn_work *tn_body_thread(struct tn_server *server, bool is_slow)
{
    return server->reading || is_slow ? server->parser : server->reader;
}

/* ---- large ones ---- */

static void free_reading(struct tn_reading *reading)
{
    tn_http_free_pages(&reading->text);
    tn_body_free(reading->server, &reading->body);
    tn_free(reading);
}

static void forget(struct tn_reading *reading)
{
    for (struct tn_reading **p = &reading->server->readings; *p; p = &(*p)->next)
        if (*p == reading) {
            *p = reading->next;
            break;
        }
    free_reading(reading);
}

void tn_body_free_all(struct tn_server *server)
{
    while (server->readings)
        forget(server->readings);
}

static enum tn_part run(void *owner)
{
    struct tn_reading *reading = owner;
    (void)parse(reading->server, reading->text.data, reading->text.n, &reading->body,
                &reading->refusal);
    tn_http_free_pages(&reading->text);
    return TN_PART_LAST;
}

static void done(void *owner)
{
    struct tn_reading *reading = owner;
    struct tn_server *server = reading->server;
    if (reading->conn) {
        reading->conn->user = (struct tn_conn_user){0};
        server->reading = reading;
        reading->route(server, reading->conn);
        server->reading = NULL;
    }
    forget(reading);
}

static void on_gone(void *arg)
{
    struct tn_reading *reading = arg;
    reading->conn = NULL;
    tn_work_cancel_errand(&reading->errand);
}

static void on_stop(void *arg)
{
    struct tn_reading *reading = arg;
    struct tn_refusal refusal;
    tn_refuse_end(&refusal);
    reading->conn->user = (struct tn_conn_user){0};
    tn_reply_error(reading->conn, tn_error_of(reading->conn), &refusal);
    on_gone(reading);
}

void tn_body_take_route(struct tn_server *server, struct tn_conn *conn, tn_route_fn *route)
{
    struct tn_reading *reading =
        conn->request.pages.data ? tn_alloc_zeroed(1, sizeof *reading) : NULL;
    if (!reading) { /* short of memory a large one is parsed here */
        route(server, conn);
        return;
    }
    reading->server = server;
    reading->conn = conn;
    reading->route = route;
    reading->text = tn_http_take_pages(&conn->request);
    reading->errand = (struct tn_errand){.run = run, .done = done, .owner = reading};
    reading->next = server->readings;
    server->readings = reading;
    tn_conn_hold(conn, &(struct tn_conn_user){
                           .on_gone = on_gone, .on_stop = on_stop, .arg = reading});
    tn_work_run_errand(server->parser, &reading->errand);
}
