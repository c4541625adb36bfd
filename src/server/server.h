/* SPDX-License-Identifier: MIT
 *
 * tern serve: HTTP in front of one or several models.
 *
 * Four threads: the caller of tn_server_run becomes the engine thread, because the engine's team
 * belongs to it; the loop thread handles all clients; the reader and the parser thread turn
 * requests into prompts, the parser only large ones.
 *
 * The server's privileges are decided here and nowhere else: it opens no file, starts no program
 * and connects to nobody.
 */
#ifndef TN_SERVER_H
#define TN_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/embed.h"
#include "tern/scheduler.h"
#include "tern/tern.h"

#define TN_SERVER_MAX_MODELS 8u
#define TN_SERVER_QUICK_IDS 512u

struct tn_affinity; /* plat/plat.h */

/* All pointers are borrowed and must outlive the server. */
struct tn_server_model {
    const char *id; /* "bonsai-4b" */
    const struct tern_model *model;
    struct tern_scheduler *scheduler; /* NULL: an embedding model */
    uint32_t n_sequences, n_queue;    /* parameters it was created with */
    struct tern_embedder *embedder;   /* NULL: a model that generates text */
    /* A second embedder for texts of up to TN_SERVER_QUICK_IDS, which need not wait for long texts
     * in the first one; NULL: there was no memory for it. */
    struct tern_embedder *quick_embedder;
    const struct tern_chat_template *chat; /* NULL: no conversations */
    struct tern_chat_params chat_params;   /* without a date */
    bool has_fixed_date;                   /* --date was given */
    uint32_t n_ctx; /* maximum context of an answer or an embedded text */
    enum tern_kv kv;
    uint32_t default_new_tokens, cap_new_tokens;
    uint32_t n_draft; /* as struct tern_request */
    uint64_t bytes;     /* anonymous memory with all caches filled */
};

struct tn_server_config {
    const struct tn_server_model *models;
    uint32_t n_models; /* 1 ... TN_SERVER_MAX_MODELS */
    const char *host;  /* "localhost" or a numeric address */
    uint16_t port;     /* 0: any free one */
    const char *key;   /* NULL: none */
    const char *const *allow_origins;
    size_t n_allow_origins;
    const char *const *allow_hosts;
    size_t n_allow_hosts;
    /* memory budget for bodies, prompts and answers in progress, from the plan */
    size_t request_bytes;
    /* CPUs of the threads that do not compute; NULL: those of the caller of tn_server_run, which
     * may be bound to one. */
    const struct tn_affinity *affinity;
    bool has_page;
    /* Called several times a second on the loop thread; true: answers in progress get two seconds,
     * then the server stops. */
    bool (*should_stop)(void *arg);
    /* Logs an answered request as a line without a line ending; NULL: no log. */
    void (*log)(void *arg, const char *line, size_t n);
    void *arg;
};

struct tn_server;

/* Listens.  TERN_OUTPUT: the port is taken. */
tern_status tn_server_open(struct tn_server **out, const struct tn_server_config *config,
                           struct tern_error *err);
uint16_t tn_server_port(const struct tn_server *server);
/* Serves until should_stop returns true. */
tern_status tn_server_run(struct tn_server *server, struct tern_error *err);
void tn_server_close(struct tn_server *server);

#endif
