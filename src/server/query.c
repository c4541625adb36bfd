/* SPDX-License-Identifier: MIT
 *
 * Runs queries: from the request to a work item to the answer.
 *
 * The client gets a complete answer or an error, never a partial one.
 */
#include "server/query.h"

#include <string.h>

#include "base/alloc.h"
#include "plat/plat.h"
#include "server/metrics.h"

static void free_query(struct tn_query *query)
{
    if (query->kind->fini)
        query->kind->fini(query);
    tn_buf_fini(&query->out);
    tn_body_free(query->server, &query->request);
    tn_free(query);
}

static void forget(struct tn_query *query)
{
    for (struct tn_query **p = &query->server->queries; *p; p = &(*p)->next)
        if (*p == query) {
            *p = query->next;
            break;
        }
    free_query(query);
}

void tn_query_free_all(struct tn_server *server)
{
    while (server->queries)
        forget(server->queries);
}

enum tn_slice tn_query_fail(struct tn_query *query, const struct tern_error *err)
{
    tn_refuse_error(&query->refusal, err);
    return TN_SLICE_LAST;
}

static void on_gone(void *arg)
{
    struct tn_query *query = arg;
    query->conn = NULL;
    tn_work_cancel_item(&query->item);
}

/* The error is the whole answer. */
static void refuse(struct tn_query *query, const struct tn_refusal *refusal)
{
    query->conn->user = (struct tn_conn_user){0};
    if (!tn_waiting_refuse(&query->waiting, query->conn, refusal, query->kind->error))
        tn_metrics_count_refusal(query->server, refusal->status, refusal->code);
}

static void on_stop(void *arg)
{
    struct tn_query *query = arg;
    struct tn_refusal refusal;
    tn_refuse_end(&refusal);
    refuse(query, &refusal);
    on_gone(query);
}

static void on_tick(void *arg, uint64_t now_ns)
{
    struct tn_query *query = arg;
    tn_waiting_tick(&query->waiting, query->conn, now_ns);
}

static enum tn_slice run(void *owner)
{
    struct tn_query *query = owner;
    const enum tn_slice slice = query->kind->run(query);
    if (query->refusal.status == 0 &&
        !tn_body_hold_out(query->server, &query->request, query->out.capacity, &query->refusal))
        return TN_SLICE_LAST;
    return slice;
}

static void answer(struct tn_query *query)
{
    struct tn_conn *conn = query->conn;
    if (query->out.failed && query->refusal.status == 0)
        tn_refuse(&query->refusal, 503, NULL, "no memory for the answer");
    if (query->refusal.status == 0) {
        conn->user = (struct tn_conn_user){0};
        /* the connection holds the answer's memory now */
        tn_body_free(query->server, &query->request);
        tn_waiting_end(&query->waiting, conn, query->out.data, query->out.n_bytes);
    } else {
        refuse(query, &query->refusal);
    }
}

static void done(void *owner)
{
    struct tn_query *query = owner;
    query->server->totals.n_prompt_tokens += query->n_prompt_tokens;
    query->server->totals.prompt_s += query->prompt_s;
    if (query->conn)
        answer(query);
    forget(query);
}

static enum tn_slice run_prepare(void *owner)
{
    struct tn_query *query = owner;
    query->kind->prepare(query);
    return TN_SLICE_LAST;
}

static void on_prepared(void *owner)
{
    struct tn_query *query = owner;
    if (!query->conn || query->refusal.status != 0) {
        done(query);
        return;
    }
    query->item = (struct tn_work_item){
        .run = run, .done = done, .owner = query, .is_long = query->is_long};
    tn_work_run_item(query->server->work, &query->item);
}

static struct tn_query *new_query(struct tn_server *server, struct tn_conn *conn,
                                  const struct tn_query_kind *kind, struct tn_refusal *refusal)
{
    const struct tn_server_model *model;
    struct tn_body body;
    if (!tn_request_read(server, conn, kind->use, &body, &model, refusal))
        return NULL;
    struct tn_query *query = tn_alloc_zeroed(1, kind->n_bytes);
    if (!query) {
        tn_refuse_memory(refusal);
        tn_body_free(server, &body);
        return NULL;
    }
    query->server = server;
    query->conn = conn;
    query->kind = kind;
    query->model = model;
    query->request = body;
    query->body = body.root;
    query->waiting.request_ns = query->waiting.written_ns = tn_now_ns();
    query->item = (struct tn_work_item){.run = kind->prepare ? run_prepare : run,
                                        .done = kind->prepare ? on_prepared : done,
                                        .owner = query};
    return query;
}

void tn_query_start(struct tn_server *server, struct tn_conn *conn,
                   const struct tn_query_kind *kind)
{
    struct tn_refusal refusal;
    struct tn_query *query = new_query(server, conn, kind, &refusal);
    if (!query) {
        tn_reply_error(conn, kind->error, &refusal);
        return;
    }
    query->next = server->queries;
    server->queries = query;
    tn_conn_hold(conn,
                 &(struct tn_conn_user){
                     .on_gone = on_gone, .on_tick = on_tick, .on_stop = on_stop, .arg = query});
    tn_work_run_item(tn_body_thread(server, false), &query->item);
}
