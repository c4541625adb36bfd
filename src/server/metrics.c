/* SPDX-License-Identifier: MIT
 *
 * GET /metrics, and the counters of refused requests.
 *
 * Refusals are counted when the answer is sent, so none is missed whichever code made it.
 */
#include "server/metrics.h"

#include <inttypes.h>
#include <string.h>

#include "base/compiler.h"
#include "plat/plat.h"
#include "plat/sandbox.h"
#include "server/json_out.h"

/* ---- refusals ---- */

static const char *const reasons[TN_REFUSED_REASONS] = {
    [TN_REFUSED_BAD] = "bad_request",
    [TN_REFUSED_LONG] = "context_length_exceeded",
    [TN_REFUSED_KEY] = "unauthorized",
    [TN_REFUSED_ORIGIN] = "forbidden",
    [TN_REFUSED_PATH] = "not_found",
    [TN_REFUSED_METHOD] = "method_not_allowed",
    [TN_REFUSED_SLOW] = "timeout",
    [TN_REFUSED_LARGE] = "too_large",
    [TN_REFUSED_UNSUPPORTED] = "unsupported",
    [TN_REFUSED_BUSY] = "busy",
    [TN_REFUSED_FAILED] = "failed",
};

static enum tn_refused reason_of(int status, const char *code)
{
    static const struct {
        int status;
        enum tn_refused reason;
    } by_status[] = {
        {401, TN_REFUSED_KEY}, {403, TN_REFUSED_ORIGIN}, {404, TN_REFUSED_PATH},
        {405, TN_REFUSED_METHOD}, {408, TN_REFUSED_SLOW}, {413, TN_REFUSED_LARGE},
        {414, TN_REFUSED_LARGE}, {415, TN_REFUSED_UNSUPPORTED}, {417, TN_REFUSED_UNSUPPORTED},
        {431, TN_REFUSED_LARGE}, {501, TN_REFUSED_UNSUPPORTED}, {503, TN_REFUSED_BUSY},
        {505, TN_REFUSED_UNSUPPORTED},
    };
    if (code && strcmp(code, reasons[TN_REFUSED_LONG]) == 0)
        return TN_REFUSED_LONG;
    for (size_t i = 0; i < TN_COUNT_OF(by_status); i++)
        if (by_status[i].status == status)
            return by_status[i].reason;
    return status < 500 ? TN_REFUSED_BAD : TN_REFUSED_FAILED;
}

void tn_metrics_count_refusal(struct tn_server *server, int status, const char *code)
{
    server->totals.n_refused[reason_of(status, code)]++;
}

/* ---- exposition ---- */

static void append_metric(struct tn_buf *out, const char *name, const char *kind,
                          const char *help, double value)
{
    tn_buf_printf(out, "# HELP tern_%s %s\n# TYPE tern_%s %s\ntern_%s %.17g\n", name, help, name,
                  kind, name, value);
}

static void append_models(struct tn_buf *out, struct tn_server *server)
{
    tn_buf_append_text(out, "# HELP tern_jobs Answers that are computed or wait.\n"
                            "# TYPE tern_jobs gauge\n");
    for (uint32_t i = 0; i < server->config.n_models; i++) {
        tn_buf_append_text(out, "tern_jobs{model=");
        tn_json_text(out, server->config.models[i].id);
        tn_buf_printf(out, "} %u\n", server->n_jobs[i]);
    }
}

static void append_refusals(struct tn_buf *out, const struct tn_server *server)
{
    tn_buf_append_text(out, "# HELP tern_refused_total Requests that were refused, by reason.\n"
                            "# TYPE tern_refused_total counter\n");
    for (size_t i = 0; i < TN_REFUSED_REASONS; i++)
        tn_buf_printf(out, "tern_refused_total{reason=\"%s\"} %" PRIu64 "\n", reasons[i],
                      server->totals.n_refused[i]);
}

void tn_route_metrics(struct tn_server *server, struct tn_conn *conn)
{
    struct tn_buf out = {0};
    struct tn_usage usage;
    tn_usage_now(&usage);
    append_metric(&out, "uptime_seconds", "gauge", "Time since the start.",
                  tn_seconds_since(server->start_ns));
    append_metric(&out, "connections", "gauge", "Open connections.",
                  tn_loop_n_connections(server->loop));
    append_metric(&out, "requests_total", "counter", "Requests read.",
                  (double)server->totals.n_requests);
    append_refusals(&out, server);
    append_metric(&out, "prompt_tokens_total", "counter", "Tokens of prompts.",
                  (double)server->totals.n_prompt_tokens);
    append_metric(&out, "cached_tokens_total", "counter", "Of these, found in the cache.",
                  (double)server->totals.n_cached_tokens);
    append_metric(&out, "new_tokens_total", "counter", "Tokens of answers.",
                  (double)server->totals.n_new_tokens);
    append_metric(&out, "prompt_seconds_total", "counter", "Time spent reading prompts.",
                  server->totals.prompt_s);
    append_metric(&out, "decode_seconds_total", "counter", "Time spent writing answers.",
                  server->totals.decode_s);
    append_metric(&out, "resident_memory_bytes", "gauge", "Resident memory of the process.",
                  (double)usage.rss_bytes);
    append_metric(&out, "request_memory_bytes", "gauge", "Held for bodies and prompts in progress.",
                  (double)atomic_load(&server->budget.n_held));
    append_metric(&out, "sandboxed", "gauge", "Files and programs are closed off.",
                  tn_sandbox_is_active());
    append_models(&out, server);
    tn_reply_buf(conn, 200, "text/plain; version=0.0.4; charset=utf-8", NULL, &out);
}
