/* SPDX-License-Identifier: MIT
 *
 * Calls: from a request to an errand to an answer.
 */
#include "server/call.h"

#include <string.h>

#include "base/alloc.h"
#include "plat/plat.h"
#include "server/metrics.h"

static void free_call(struct tn_call *call)
{
    if (call->kind->fini)
        call->kind->fini(call);
    tn_buf_fini(&call->out);
    tn_body_free(call->server, &call->request);
    tn_free(call);
}

static void forget(struct tn_call *call)
{
    for (struct tn_call **p = &call->server->calls; *p; p = &(*p)->next)
        if (*p == call) {
            *p = call->next;
            break;
        }
    free_call(call);
}

void tn_call_free_all(struct tn_server *server)
{
    while (server->calls)
        forget(server->calls);
}

enum tn_part tn_call_fail(struct tn_call *call, const struct tern_error *err)
{
    tn_refuse_error(&call->refusal, err);
    return TN_PART_LAST;
}

static void on_gone(void *arg)
{
    struct tn_call *call = arg;
    call->conn = NULL;
    tn_work_cancel_errand(&call->errand);
}

/* The client gets nothing else. */
static void refuse(struct tn_call *call, const struct tn_refusal *refusal)
{
    call->conn->user = (struct tn_conn_user){0};
    if (!tn_waiting_refuse(&call->waiting, call->conn, refusal, call->kind->error))
        tn_metrics_count_refusal(call->server, refusal->status, refusal->code);
}

static void on_stop(void *arg)
{
    struct tn_call *call = arg;
    struct tn_refusal refusal;
    tn_refuse_end(&refusal);
    refuse(call, &refusal);
    on_gone(call);
}

static void on_tick(void *arg, uint64_t now_ns)
{
    struct tn_call *call = arg;
    tn_waiting_tick(&call->waiting, call->conn, now_ns);
}

static enum tn_part run(void *owner)
{
    struct tn_call *call = owner;
    const enum tn_part part = call->kind->run(call);
    if (call->refusal.status == 0 &&
        !tn_body_hold_out(call->server, &call->request, call->out.capacity, &call->refusal))
        return TN_PART_LAST;
    return part;
}

static void answer(struct tn_call *call)
{
    struct tn_conn *conn = call->conn;
    if (call->out.failed && call->refusal.status == 0)
        tn_refuse(&call->refusal, 503, NULL, "no memory for the answer");
    if (call->refusal.status == 0) {
        conn->user = (struct tn_conn_user){0};
        tn_body_free(call->server, &call->request); /* the connection holds the answer now */
        tn_waiting_end(&call->waiting, conn, call->out.data, call->out.n_bytes);
    } else {
        refuse(call, &call->refusal);
    }
}

static void done(void *owner)
{
    struct tn_call *call = owner;
    call->server->totals.n_prompt_tokens += call->n_prompt_tokens;
    call->server->totals.prompt_s += call->prompt_s;
    if (call->conn)
        answer(call);
    forget(call);
}

static enum tn_part run_prepare(void *owner)
{
    struct tn_call *call = owner;
    call->kind->prepare(call);
    return TN_PART_LAST;
}

static void on_prepared(void *owner)
{
    struct tn_call *call = owner;
    if (!call->conn || call->refusal.status != 0) {
        done(call);
        return;
    }
    call->errand = (struct tn_errand){
        .run = run, .done = done, .owner = call, .is_long = call->is_long};
    tn_work_run_errand(call->server->work, &call->errand);
}

static struct tn_call *new_call(struct tn_server *server, struct tn_conn *conn,
                                const struct tn_call_kind *kind, struct tn_refusal *refusal)
{
    const struct tn_server_model *model;
    struct tn_body body;
    if (!tn_request_read(server, conn, kind->use, &body, &model, refusal))
        return NULL;
    struct tn_call *call = tn_alloc_zeroed(1, kind->n_bytes);
    if (!call) {
        tn_refuse(refusal, 503, NULL, "no memory for the request");
        tn_body_free(server, &body);
        return NULL;
    }
    call->server = server;
    call->conn = conn;
    call->kind = kind;
    call->model = model;
    call->request = body;
    call->body = body.root;
    call->waiting.began_ns = call->waiting.written_ns = tn_now_ns();
    call->errand = kind->prepare
                       ? (struct tn_errand){.run = run_prepare, .done = on_prepared, .owner = call}
                       : (struct tn_errand){.run = run, .done = done, .owner = call};
    return call;
}

void tn_call_start(struct tn_server *server, struct tn_conn *conn,
                   const struct tn_call_kind *kind)
{
    struct tn_refusal refusal;
    struct tn_call *call = new_call(server, conn, kind, &refusal);
    if (!call) {
        tn_reply_error(conn, kind->error, &refusal);
        return;
    }
    call->next = server->calls;
    server->calls = call;
    tn_conn_hold(conn,
                 &(struct tn_conn_user){
                     .on_gone = on_gone, .on_tick = on_tick, .on_stop = on_stop, .arg = call});
    tn_work_run_errand(tn_body_thread(server, false), &call->errand);
}
