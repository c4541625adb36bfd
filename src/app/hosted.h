/* SPDX-License-Identifier: MIT
 *
 * The models of `tern serve`: opened, planned together for the available memory, and given
 * schedulers or embedders, before the server listens.
 */
#ifndef TN_HOSTED_H
#define TN_HOSTED_H

#include "app.h"
#include "planned.h"
#include "server/server.h"
#include "template.h"

struct tn_hosted {
    struct tn_opened opened;
    struct tn_planned *planned;
    struct tn_template template;
    struct tern_scheduler *scheduler; /* NULL: an embedding model */
    struct tern_embedder *embedder;   /* NULL: a model that generates text */
    struct tern_embedder *quick_embedder; /* for short texts; NULL: no memory for it */
    char *id;
};

/* Zero-initialise; tn_hosting_close frees. */
struct tn_hosting {
    const struct tn_options *o;
    struct tern_engine *engine; /* shared by all models: threads depend only on the machine */
    struct tern_watch *watch;
    struct tern_plan machine; /* the values of a plan that depend on no model */
    struct tn_hosted hosted[TN_SERVER_MAX_MODELS];
    struct tn_server_model models[TN_SERVER_MAX_MODELS];
    uint32_t n_models;
    size_t request_bytes; /* the remaining memory for bodies and prompts of requests */
    uint64_t planned_bytes; /* anonymous memory with all sequences filled */
    uint64_t available_bytes;
};

/* Opens the models that the flags name.  TERN_MEMORY, with numbers, if they do not fit together. */
tern_status tn_hosting_open(struct tn_hosting *h, const struct tn_options *o,
                            struct tern_error *err);
void tn_hosting_close(struct tn_hosting *h);

#endif
