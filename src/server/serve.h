/* SPDX-License-Identifier: MIT
 *
 * The internal struct of the server: configuration, threads, limits, and work in progress.
 *
 * Included by the files of this folder only; programs include server.h.
 */
#ifndef TN_SERVE_H
#define TN_SERVE_H

#include "server/body.h"
#include "server/conn.h"
#include "server/guard.h"
#include "server/json_body.h"
#include "server/loop.h"
#include "server/budget.h"
#include "server/server.h"
#include "server/work.h"
#include "tern/thinking.h"

/* Reasons for refusing a request, as labels of /metrics. */
enum tn_refused {
    TN_REFUSED_BAD,
    TN_REFUSED_LONG,
    TN_REFUSED_KEY,
    TN_REFUSED_ORIGIN,
    TN_REFUSED_PATH,
    TN_REFUSED_METHOD,
    TN_REFUSED_SLOW,
    TN_REFUSED_LARGE,
    TN_REFUSED_UNSUPPORTED,
    TN_REFUSED_BUSY,
    TN_REFUSED_FAILED,
    TN_REFUSED_REASONS, /* number of reasons */
};

struct tn_server {
    struct tn_server_config config;
    struct tn_guard guard;
    struct tn_loop *loop;
    struct tn_work *work;
    struct tn_conn_host conn_host;
    struct tn_work *parser;     /* thread for large requests and grammars */
    struct tn_work *reader;     /* thread for all other requests */
    struct tn_budget budget;    /* shared by all requests */
    struct tn_large_body *large_bodies; /* large bodies being parsed */
    struct tn_large_body *current_body; /* the one whose route is being taken; NULL: none */
    _Atomic bool engine_failed;
    _Atomic bool is_stopping; /* no new answers are started */
    uint64_t start_ns;
    int64_t start_s;          /* start time, seconds since 1970 */
    struct tn_task *tasks; /* in progress */
    struct tn_query *queries;   /* in progress */
    uint64_t n_ids;           /* answers so far; part of their ids */
    uint64_t random;          /* part of the answers' ids */
    uint32_t n_jobs[TN_SERVER_MAX_MODELS]; /* jobs in progress per model */
    bool has_tools[TN_SERVER_MAX_MODELS];  /* the chat template supports tools */
    struct tern_chat_reasoning reasoning[TN_SERVER_MAX_MODELS]; /* what the template supports */
    struct {                  /* counters of /metrics */
        uint64_t n_requests, n_prompt_tokens, n_cached_tokens, n_new_tokens;
        uint64_t n_refused[TN_REFUSED_REASONS];
        double prompt_s, decode_s;
    } totals;
};

/* Index of a model of the configuration, for the arrays above. */
static inline uint32_t tn_server_index(const struct tn_server *server,
                                       const struct tn_server_model *model)
{
    return (uint32_t)(model - server->config.models);
}

/* What a request needs a model for. */
enum tn_use { TN_USE_ANY, TN_USE_TEXT, TN_USE_VECTORS };

/* Finds the model that a request names; "" or NULL: the only one for this use.  NULL: refused, with
 * 404 for an unknown name, with 400 for a model of another use. */
const struct tn_server_model *tn_server_find_model(struct tn_server *server, const char *name,
                                                   enum tn_use use, struct tn_refusal *refusal);
/* Reads the JSON of a request and finds the model that it names.  false: refused. */
bool tn_request_read(struct tn_server *server, const struct tn_conn *conn, enum tn_use use,
                     struct tn_body *body, const struct tn_server_model **model,
                     struct tn_refusal *refusal);

/* ---- immediate answers ---- */

/* Frees `body`. */
void tn_reply_json(struct tn_conn *conn, int status, struct tn_buf *body);
/* Writes an error as the JSON of an API. */
typedef void tn_error_fn(struct tn_buf *out, const struct tn_refusal *refusal);
tn_error_fn tn_openai_error; /* also for llama.cpp */
tn_error_fn tn_ollama_error; /* {"error":"text"} */
tn_error_fn tn_anthropic_error;
/* The format of the API that the path belongs to; OpenAI's without a path. */
tn_error_fn *tn_error_of(const struct tn_conn *conn);
void tn_reply_error(struct tn_conn *conn, tn_error_fn *error, const struct tn_refusal *refusal);
/* Refuses answers in progress when the server stops. */
static inline void tn_refuse_end(struct tn_refusal *refusal)
{
    tn_refuse(refusal, 503, NULL, "the server is stopping");
}

/* ---- routes: each answers, or holds the connection ---- */

typedef void tn_route_fn(struct tn_server *server, struct tn_conn *conn);
void tn_route(struct tn_server *server, struct tn_conn *conn);
/* GET /health and /metrics are answered even when all slots are taken. */
bool tn_route_needs_no_slot(const struct tn_conn *conn);

tn_route_fn tn_route_health, tn_route_metrics;
tn_route_fn tn_route_models, tn_route_model, tn_route_chat, tn_route_chat_count,
    tn_route_completions, tn_route_embeddings;
tn_route_fn tn_route_responses, tn_route_responses_count, tn_route_messages,
    tn_route_messages_count;
tn_route_fn tn_route_ollama_version, tn_route_ollama_tags, tn_route_ollama_ps,
    tn_route_ollama_show, tn_route_ollama_chat, tn_route_ollama_generate, tn_route_ollama_embed,
    tn_route_ollama_embeddings, tn_route_ollama_pull, tn_route_not_here, tn_route_root;
tn_route_fn tn_route_tokenize, tn_route_detokenize, tn_route_completion, tn_route_infill,
    tn_route_apply_template, tn_route_props, tn_route_slots; /* llama.cpp */
tn_route_fn tn_route_tokenizer_info; /* vLLM */
tn_route_fn tn_route_page, tn_route_page_json, tn_route_checksum; /* page.c */

#endif
