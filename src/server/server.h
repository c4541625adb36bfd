/* SPDX-License-Identifier: MIT
 *
 * tern serve: HTTP in front of one or several models.
 *
 * Four threads: the caller of tn_server_run computes, because the engine's threads belong to it;
 * one talks to all clients; two make prompts of requests, one of them those of large requests.
 * What the server may do is decided here and nowhere else: it opens no file, starts no program and
 * connects to nobody.
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

/* All pointers are borrowed and outlive the server. */
struct tn_server_model {
    const char *id; /* "bonsai-4b" */
    const struct tern_model *model;
    struct tern_scheduler *scheduler; /* NULL: an embedding model */
    uint32_t n_sequences, n_queue;    /* as it was made with */
    struct tern_embedder *embedder;   /* NULL: a model that makes text */
    /* Another one for texts of at most TN_SERVER_QUICK_IDS, which have their turn while a long text
     * is in the first one; NULL: there was no memory for it. */
    struct tern_embedder *quick_embedder;
    const struct tern_chat_template *chat; /* NULL: no conversations */
    struct tern_chat_params chat_params;   /* without a date */
    bool has_fixed_date;                   /* with one: --date */
    uint32_t n_ctx; /* of an answer, or of a text that becomes a vector */
    enum tern_kv kv;
    uint32_t default_new_tokens, cap_new_tokens;
    uint32_t n_draft; /* as struct tern_request */
    uint64_t bytes;     /* anonymous memory with everything filled */
};

struct tn_server_config {
    const struct tn_server_model *models;
    uint32_t n_models; /* 1 ... TN_SERVER_MAX_MODELS */
    const char *host;  /* "localhost" or a numeric address */
    uint16_t port;     /* 0: a free one */
    const char *key;   /* NULL: none */
    const char *const *allow_origins;
    size_t n_allow_origins;
    const char *const *allow_hosts;
    size_t n_allow_hosts;
    size_t request_bytes; /* memory for bodies and prompts in work, as planned */
    /* CPUs of the threads that do not compute; NULL: those of tn_server_run's caller, which may be
     * bound to one. */
    const struct tn_affinity *affinity;
    bool has_page;
    const char *cpu_level;
    /* Asked several times a second, on the loop's thread; true: answers in work get two seconds,
     * then the server ends. */
    bool (*should_stop)(void *arg);
    /* A line about an answered request, without a line end; NULL: none. */
    void (*log)(void *arg, const char *line, size_t n);
    void *arg;
};

struct tn_server;

/* Listens.  TERN_OUTPUT: the port is taken. */
tern_status tn_server_open(struct tn_server **out, const struct tn_server_config *config,
                           struct tern_error *err);
uint16_t tn_server_port(const struct tn_server *server);
/* Serves until should_stop. */
tern_status tn_server_run(struct tn_server *server, struct tern_error *err);
void tn_server_close(struct tn_server *server);

#endif
