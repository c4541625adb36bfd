/* SPDX-License-Identifier: MIT
 *
 * Starts and stops the server, finds models by name, and connects its parts: connections, guard,
 * routes and threads.
 *
 * The server has four threads (server.h); all of them are started and joined here.
 */
#include "server/server.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/error.h"
#include "plat/plat.h"
#include "server/query.h"
#include "server/conn_limits.h"
#include "server/metrics.h"
#include "server/reasoning.h"
#include "server/task.h"
#include "server/tools.h"

#define IDLE_MS 200u     /* polling interval of should_stop */
#define STOPPING_MS 20u
#define LAST_WRITES 10 /* turns of STOPPING_MS for sending the errors */
#define LAST_ANSWERS_NS (3ull * TN_SECOND_NS / 2) /* leaves time within the two seconds promised */

/* ---- models ---- */

/* "x" and "x:latest" are the same name. */
static bool is_name(const char *id, const char *name)
{
    size_t n = strlen(id);
    return strncmp(id, name, n) == 0 && (name[n] == '\0' || strcmp(name + n, ":latest") == 0);
}

static bool is_for(const struct tn_server_model *model, enum tn_use use)
{
    return use == TN_USE_ANY || (use == TN_USE_VECTORS) == (model->embedder != NULL);
}

static const struct tn_server_model *refuse_use(const struct tn_server_model *model,
                                                struct tn_refusal *refusal)
{
    tn_refuse(refusal, 400, "model",
              model->embedder ? "model '%.100s' makes embeddings, not text: use it with "
                                "/v1/embeddings or /api/embed"
                              : "model '%.100s' makes text, not embeddings: serve an embedding "
                                "model too",
              model->id);
    return NULL;
}

/* Without a name there must be exactly one model for this use. */
static const struct tn_server_model *find_only(const struct tn_server_config *config,
                                               enum tn_use use, struct tn_refusal *refusal)
{
    const struct tn_server_model *found = NULL;
    uint32_t n_found = 0;
    for (uint32_t i = 0; i < config->n_models; i++)
        if (is_for(&config->models[i], use)) {
            found = &config->models[i];
            n_found++;
        }
    if (n_found == 1)
        return found;
    if (n_found == 0)
        return refuse_use(&config->models[0], refusal);
    tn_refuse(refusal, 400, "model", "\"model\" is missing, and the server has several models");
    refusal->code = "model_not_found";
    return NULL;
}

/* Refuses an unknown name and lists the known ones. */
static const struct tn_server_model *refuse_name(const struct tn_server_config *config,
                                                 const char *name, struct tn_refusal *refusal)
{
    struct tn_buf names = {0};
    for (uint32_t i = 0; i < config->n_models; i++)
        tn_buf_printf(&names, i ? ", '%.60s'" : "'%.60s'", config->models[i].id);
    tn_refuse(refusal, 404, "model", "model '%.100s' not found; this server has %.250s", name,
              tn_buf_text(&names));
    refusal->code = "model_not_found";
    tn_buf_fini(&names);
    return NULL;
}

const struct tn_server_model *tn_server_find_model(struct tn_server *server, const char *name,
                                                   enum tn_use use, struct tn_refusal *refusal)
{
    const struct tn_server_config *config = &server->config;
    if (!name || !name[0])
        return find_only(config, use, refusal);
    for (uint32_t i = 0; i < config->n_models; i++)
        if (is_name(config->models[i].id, name))
            return is_for(&config->models[i], use) ? &config->models[i]
                                                   : refuse_use(&config->models[i], refusal);
    return refuse_name(config, name, refusal);
}

bool tn_request_read(struct tn_server *server, const struct tn_conn *conn, enum tn_use use,
                     struct tn_body *body, const struct tn_server_model **model,
                     struct tn_refusal *refusal)
{
    const char *name = NULL;
    *model = NULL;
    if (tn_body_read(server, conn, body, refusal) &&
        tn_json_get_text(body->root, "model", &name, NULL, refusal))
        *model = tn_server_find_model(server, name, use, refusal);
    if (!*model)
        tn_body_free(server, body);
    return *model != NULL;
}

/* ---- callbacks of connections ---- */

static bool on_head(void *arg, struct tn_conn *conn)
{
    struct tn_server *server = arg;
    struct tn_guard_result look;
    struct tn_refusal refusal;
    tn_guard_look(&server->guard, &conn->request, &look);
    conn->cors_origin = look.origin;
    if (look.status == 0 &&
        (tn_route_needs_no_slot(conn) || tn_loop_take_slot(server->loop, conn)))
        return true;
    conn->closes = conn->closes || conn->request.has_body;
    if (look.status)
        tn_refuse(&refusal, look.status, NULL, "%s", look.why);
    else
        tn_refuse(&refusal, 503, NULL, "the server is busy: %u requests are in progress",
                  TN_CONN_SLOTS);
    tn_reply_error(conn, tn_error_of(conn), &refusal);
    return false;
}

static void append_error(void *arg, const struct tn_conn *conn, int status, const char *why,
                         struct tn_buf *out)
{
    struct tn_refusal refusal;
    (void)arg;
    tn_refuse(&refusal, status, NULL, "%s", why);
    tn_error_of(conn)(out, &refusal);
}

static void on_request(void *arg, struct tn_conn *conn)
{
    struct tn_server *server = arg;
    server->totals.n_requests++;
    tn_route(server, conn);
}

/* Writes bytes other than plain letters as \xNN, so that no request can forge a line of the log. */
static void append_escaped(struct tn_buf *out, const char *text, size_t n)
{
    for (size_t i = 0; i < n && i < 200; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c > 0x20 && c < 0x7F && c != '"' && c != '\\')
            tn_buf_append(out, text + i, 1);
        else
            tn_buf_printf(out, "\\x%02X", c);
    }
}

static void on_done(void *arg, const struct tn_conn *conn, int status)
{
    struct tn_server *server = arg;
    const struct tn_http_request *r = &conn->request;
    struct tn_buf line = {0};
    time_t now = time(NULL);
    const struct tm *t = gmtime(&now);
    if (status >= 400)
        tn_metrics_count_refusal(server, status, conn->code);
    if (!server->config.log || !t)
        return;
    tn_buf_printf(&line, "%04d-%02d-%02dT%02d:%02d:%02dZ ", t->tm_year + 1900, t->tm_mon + 1,
                  t->tm_mday, t->tm_hour, t->tm_min, t->tm_sec);
    append_escaped(&line, r->method_name.data ? r->method_name.data : "-",
                   r->method_name.data ? r->method_name.n : 1);
    tn_buf_append_text(&line, " ");
    append_escaped(&line, r->path.data ? r->path.data : "-", r->path.data ? r->path.n_bytes : 1);
    if (status)
        tn_buf_printf(&line, " %d", status);
    else
        tn_buf_append_text(&line, " gone");
    tn_buf_printf(&line, " %" PRIu64 " bytes %.1f ms", conn->n_out,
                  (double)(tn_now_ns() - conn->reading_since_ns) * 1e-6);
    if (!line.failed)
        server->config.log(server->config.arg, line.data, line.n_bytes);
    tn_buf_fini(&line);
}

/* ---- start and stop ---- */

tern_status tn_server_open(struct tn_server **out, const struct tn_server_config *config,
                           struct tern_error *err)
{
    struct tern_scheduler *schedulers[TN_SERVER_MAX_MODELS];
    struct tn_server *server = tn_alloc_zeroed(1, sizeof *server);
    *out = NULL;
    if (!server)
        return tn_fail(err, TERN_MEMORY, "no memory for the server");
    server->config = *config;
    server->guard = (struct tn_guard){
        .hosts = config->allow_hosts, .n_hosts = config->n_allow_hosts,
        .origins = config->allow_origins, .n_origins = config->n_allow_origins,
        .key = config->key, .has_page = config->has_page};
    server->conn_host = (struct tn_conn_host){
        .on_head = on_head, .on_request = on_request, .on_done = on_done,
        .append_error = append_error, .budget = &server->budget, .arg = server};
    server->budget.n_bytes = config->request_bytes;
    server->start_ns = tn_now_ns();
    server->start_s = (int64_t)time(NULL);
    server->random = tn_random_seed();
    json_object_seed(0); /* before the sandbox forbids reading random bytes from a file */
    for (uint32_t i = 0; i < config->n_models; i++) {
        schedulers[i] = config->models[i].scheduler;
        server->has_tools[i] = tn_tools_are_known(&config->models[i]);
        server->reasoning[i] = tn_reasoning_of(&config->models[i]);
    }
    tern_status status = tn_work_create(&server->work, schedulers, config->n_models, err);
    if (status == TERN_OK)
        status = tn_work_create(&server->parser, NULL, 0, err);
    if (status == TERN_OK)
        status = tn_work_create(&server->reader, NULL, 0, err);
    if (status == TERN_OK)
        status = tn_loop_open(&server->loop, config->host, config->port, &server->conn_host, err);
    if (status == TERN_OK)
        *out = server;
    else
        tn_server_close(server);
    return status;
}

void tn_server_close(struct tn_server *server)
{
    if (!server)
        return;
    tn_loop_close(server->loop); /* clients first: closing them cancels their jobs */
    tn_work_free(server->work);
    tn_work_free(server->parser);
    tn_work_free(server->reader);
    tn_body_free_all(server);
    tn_task_free_all(server);
    tn_query_free_all(server);
    tn_free(server);
}

uint16_t tn_server_port(const struct tn_server *server)
{
    return tn_loop_port(server->loop);
}

static void take_messages(struct tn_server *server, struct tn_work *work)
{
    for (struct tn_message *m = tn_work_take(work), *next; m; m = next) {
        next = m->next;
        if (m->item)
            m->item->done(m->item->owner);
        else
            tn_task_take(server, m);
    }
}

static bool must_stop(const struct tn_server *server)
{
    return atomic_load(&server->engine_failed) || server->config.should_stop(server->config.arg);
}

/* Threads inherit the CPU affinity of their creator, which may be bound to one core. */
static void leave_core(const struct tn_server *server)
{
    if (server->config.affinity)
        (void)tn_thread_set_affinity(server->config.affinity);
}

/* Ends answers that did not finish in time. */
static void end_answers(struct tn_server *server)
{
    tn_loop_end_answers(server->loop);
    for (int i = 0; i < LAST_WRITES && tn_loop_is_busy(server->loop); i++)
        tn_loop_turn(server->loop, STOPPING_MS);
}

static void run_loop(void *arg)
{
    struct tn_server *server = arg;
    uint64_t stopping_ns = 0;
    leave_core(server);
    for (;;) {
        if (!stopping_ns && must_stop(server)) {
            stopping_ns = tn_now_ns();
            atomic_store(&server->is_stopping, true);
            tn_loop_stop_listening(server->loop);
        }
        if (stopping_ns && (!tn_loop_is_busy(server->loop) ||
                            tn_now_ns() - stopping_ns > LAST_ANSWERS_NS))
            break;
        tn_loop_turn(server->loop, stopping_ns ? STOPPING_MS : IDLE_MS);
        take_messages(server, server->parser);
        take_messages(server, server->reader);
        take_messages(server, server->work);
        tn_loop_flush(server->loop);
    }
    end_answers(server);
    tn_work_stop(server->work);
}

/* Runs items; without models there is nothing that could fail. */
static void run_items(const struct tn_server *server, struct tn_work *work)
{
    struct tern_error err;
    leave_core(server);
    (void)tn_work_run(work, tn_net_wake, &err);
}

static void run_parser(void *arg)
{
    const struct tn_server *server = arg;
    run_items(server, server->parser);
}

static void run_reader(void *arg)
{
    const struct tn_server *server = arg;
    run_items(server, server->reader);
}

/* Runs the engine on this thread until the loop thread ends. */
static tern_status compute(struct tn_server *server, struct tern_error *err)
{
    struct tn_thread *loop = tn_thread_start(run_loop, server);
    if (!loop)
        return tn_fail(err, TERN_MEMORY, "the system refuses a thread for the server");
    tern_status status = tn_work_run(server->work, tn_net_wake, err);
    if (status != TERN_OK) {
        atomic_store(&server->engine_failed, true);
        tn_net_wake();
    }
    tn_thread_join(loop);
    return status;
}

tern_status tn_server_run(struct tn_server *server, struct tern_error *err)
{
    struct tn_thread *parser = tn_thread_start(run_parser, server);
    struct tn_thread *reader = parser ? tn_thread_start(run_reader, server) : NULL;
    tern_status status = reader ? compute(server, err)
                                : tn_fail(err, TERN_MEMORY,
                                          "the system refuses a thread for the server");
    tn_work_stop(server->parser);
    tn_work_stop(server->reader);
    if (parser)
        tn_thread_join(parser);
    if (reader)
        tn_thread_join(reader);
    return status;
}
