/* SPDX-License-Identifier: MIT
 *
 * Opens the models of the server and divides the memory between them, in two steps.  If the models
 * would take more than is available with their whole contexts, each gets a share for one context,
 * in proportion to its need.  Then all of them get as many sequences as fit together, the same
 * number each; if not even one fits in addition to the requests, contexts that --ctx does not set
 * become shorter.
 */
#include "hosted.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "output.h"
#include "plat/plat.h"

#define QUEUE 64u
#define DEFAULT_SEQUENCES 4u
/* Memory for the bodies and prompts of requests: enough for one of the largest (4 MiB of text take
 * 24 while they become ids) and for usual ones at the same time; at least this much. */
#define MAX_REQUEST_BYTES ((uint64_t)32 << 20)
#define MIN_REQUEST_BYTES ((uint64_t)1 << 20)
#define MIN_MODEL_BYTES ((uint64_t)8 << 20) /* a process and its reserve, for a share of memory */

/* ---- opening ---- */

static tern_status check_id(const struct tn_hosting *h, const char *id, struct tern_error *err)
{
    for (uint32_t i = 0; i < h->n_models; i++)
        if (strcmp(h->hosted[i].id, id) == 0)
            return tn_fail(err, TERN_USAGE, "two models have the name \"%s\"", id);
    return TERN_OK;
}

static tern_status choose_template(struct tn_hosted *m, const struct tn_options *o,
                                   struct tern_error *err)
{
    const struct tern_chat_template *t;
    if (!o->template_name) { /* a model without a template can still continue texts */
        (void)tern_model_chat_template(&t, m->opened.model, NULL);
        if (!t)
            return TERN_OK;
    }
    return tn_template_choose(&m->template, o, m->opened.model, err);
}

static bool makes_vectors(const struct tn_hosted *m)
{
    return tern_model_config(m->opened.model)->pooling != TERN_POOLING_NONE;
}

static tern_status open_model(struct tn_hosting *h, const char *name, struct tern_error *err)
{
    const struct tn_options *o = h->o;
    struct tn_hosted *m = &h->hosted[h->n_models];
    tern_status status =
        tn_open(&m->opened, o, name, TN_OPEN_TOKENIZER | TN_OPEN_MACHINE | TN_OPEN_CONVERT, err);
    if (status != TERN_OK)
        return status;
    const struct tern_model_config *config = tern_model_config(m->opened.model);
    m->id = tn_path_stem(tern_model_path(m->opened.model), ".tern");
    if (!m->id)
        return tn_fail(err, TERN_MEMORY, "no memory for a name");
    if (o->ctx > config->context)
        return tn_fail(err, TERN_USAGE, "--ctx %" PRIu64 ": \"%s\" has a context of %u", o->ctx,
                       m->id, config->context);
    status = check_id(h, m->id, err);
    h->n_models++;
    return status == TERN_OK && !makes_vectors(m) ? choose_template(m, o, err) : status;
}

static tern_status open_models(struct tn_hosting *h, struct tern_error *err)
{
    const struct tn_options *o = h->o;
    tern_status status = TERN_OK;
    if (o->n_positional == 0)
        return open_model(h, NULL, err);
    if (o->n_positional > TN_SERVER_MAX_MODELS)
        return tn_fail(err, TERN_USAGE, "%u models are given, at most %u can be served",
                       o->n_positional, TN_SERVER_MAX_MODELS);
    for (uint32_t i = 0; i < o->n_positional && status == TERN_OK; i++)
        status = open_model(h, o->positional[i], err);
    return status;
}

/* ---- one context per model ---- */

/* The memory of a model without and with its context, for one sequence. */
struct need {
    uint64_t fixed, context;
};

static struct need need_of(const struct tn_hosting *h, const struct tn_hosted *m)
{
    struct tern_plan_model sizes;
    tn_planned_sizes(&sizes, h->o, m->opened.model);
    const uint32_t n_ctx = h->o->ctx ? (uint32_t)h->o->ctx : sizes.n_ctx;
    const enum tern_kv kv = makes_vectors(m) ? TERN_KV_F32
                            : h->o->kv >= 0  ? (enum tern_kv)h->o->kv
                                             : sizes.kv;
    const uint64_t n_draft = makes_vectors(m) ? 0 : (uint64_t)h->o->draft;
    const uint64_t fixed = sizes.base_bytes + n_draft * sizes.draft_bytes +
                           (n_draft ? sizes.draft_head_bytes : 0) + sizes.model_bytes +
                           sizes.sampler_bytes +
                           h->machine.n_threads_prefill * sizes.thread_bytes;
    return (struct need){
        .fixed = fixed + fixed / 4 + MIN_MODEL_BYTES, /* the plan keeps a reserve of each share */
        .context = tern_plan_context_bytes(&sizes, kv, n_ctx)};
}

/* parts[i]: bytes with which model i may plan; 0: no other model shares the memory. */
static void share_memory(const struct tn_hosting *h, uint64_t *parts)
{
    struct need needs[TN_SERVER_MAX_MODELS];
    uint64_t fixed = 0;
    double context = 0;
    for (uint32_t i = 0; i < h->n_models; i++) {
        needs[i] = need_of(h, &h->hosted[i]);
        fixed += needs[i].fixed;
        context += (double)needs[i].context;
        parts[i] = 0;
    }
    const uint64_t have = h->machine.available_bytes - h->machine.reserve_bytes;
    if (h->n_models == 1 || (double)fixed + context <= (double)have)
        return;
    const double rest = have > fixed ? (double)(have - fixed) : 0;
    const double share = context > 0 ? rest / context : 0; /* some models need none for it */
    for (uint32_t i = 0; i < h->n_models; i++)
        parts[i] = needs[i].fixed + (uint64_t)((double)needs[i].context * share);
}

static tern_status plan_models(struct tn_hosting *h, struct tern_error *err)
{
    uint64_t parts[TN_SERVER_MAX_MODELS];
    tern_status status = TERN_OK;
    share_memory(h, parts);
    for (uint32_t i = 0; i < h->n_models && status == TERN_OK; i++) {
        struct tn_hosted *m = &h->hosted[i];
        struct tn_options o = *h->o;
        if (parts[i])
            o.ram = parts[i];
        if (makes_vectors(m)) {
            o.kv = TERN_KV_F32;
            o.draft = 0;
        }
        status = tn_planned_make(&m->planned, &o, &m->opened, 0, NULL, err);
        if (status != TERN_OK)
            tn_fail_prefix(err, m->id);
    }
    return status;
}

/* ---- sequences ---- */

static bool may_grow(void *arg, uint64_t n_bytes)
{
    return tern_watch_may_grow(((struct tn_hosting *)arg)->watch, n_bytes);
}

static tern_status create_scheduler(struct tn_hosting *h, struct tn_hosted *m,
                                    uint32_t n_sequences, struct tern_error *err)
{
    struct tern_scheduler_params params;
    tern_scheduler_params_default(&params, m->opened.model);
    params.n_sequences = n_sequences;
    params.n_queue = QUEUE;
    params.n_ctx = m->planned->plan.n_ctx;
    params.kv = m->planned->plan.kv;
    params.no_draft_head = h->o->draft == 0;
    params.may_grow = may_grow;
    params.arg = h;
    return tern_scheduler_create(&m->scheduler, h->engine, m->opened.model, &params, err);
}

static void free_schedulers(struct tn_hosting *h)
{
    for (uint32_t i = 0; i < h->n_models; i++) {
        tern_scheduler_free(h->hosted[i].scheduler);
        h->hosted[i].scheduler = NULL;
    }
}

static tern_status create_schedulers(struct tn_hosting *h, uint32_t n_sequences,
                                     struct tern_error *err)
{
    tern_status status = TERN_OK;
    for (uint32_t i = 0; i < h->n_models && status == TERN_OK; i++)
        if (!makes_vectors(&h->hosted[i]))
            status = create_scheduler(h, &h->hosted[i], n_sequences, err);
    return status;
}

/* Memory of a second embedder, whose texts are short. */
static uint64_t quick_bytes(const struct tn_hosted *m)
{
    const struct tern_plan *plan = &m->planned->plan;
    const uint64_t n_ids = TN_MIN(plan->n_ctx, TN_SERVER_QUICK_IDS);
    return plan->memory.scratch_bytes + plan->memory.cache_bytes * n_ids / TN_MAX(plan->n_ctx, 1u);
}

/* Anonymous memory of a model with all sequences filled. */
static uint64_t bytes_of(const struct tn_hosted *m)
{
    const struct tern_plan_memory *memory = &m->planned->plan.memory;
    struct tern_scheduler_state state;
    if (!m->scheduler)
        return memory->scratch_bytes + memory->cache_bytes + memory->checkpoint_bytes +
               (m->quick_embedder ? quick_bytes(m) : 0);
    tern_scheduler_get_state(m->scheduler, &state);
    return state.bytes_full;
}

static bool fit(const struct tn_hosting *h, uint64_t *need, uint64_t *have)
{
    *need = h->hosted[0].planned->plan.memory.process_bytes + MIN_REQUEST_BYTES;
    for (uint32_t i = 0; i < h->n_models; i++)
        *need += bytes_of(&h->hosted[i]) + h->hosted[i].planned->plan.memory.model_bytes;
    *have = h->machine.available_bytes - h->machine.reserve_bytes;
    return *need <= *have;
}

static tern_status refuse_sizes(const struct tn_hosting *h, uint32_t n, uint64_t need,
                                uint64_t have, struct tern_error *err)
{
    struct tn_buf list = {0};
    for (uint32_t i = 0; i < h->n_models; i++)
        tn_buf_printf(&list, "%s\"%.60s\" (context %u) %s", i ? ", " : "", h->hosted[i].id,
                      h->hosted[i].planned->plan.n_ctx,
                      tn_size_binary((double)bytes_of(&h->hosted[i])).text);
    tn_fail(err, TERN_MEMORY,
            "%u answer%s at once need%s %s, %s may be used; lower --parallel or --ctx%s: %s", n,
            n == 1 ? "" : "s", n == 1 ? "s" : "", tn_size_binary((double)need).text,
            tn_size_binary((double)have).text, h->n_models > 1 ? ", or serve fewer models" : "",
            tn_buf_text(&list));
    tn_buf_fini(&list);
    return TERN_MEMORY;
}

/* Gives embedding models a second embedder if there is memory for it; increases *need. */
static tern_status add_quick_embedders(struct tn_hosting *h, uint64_t *need, uint64_t have,
                                       struct tern_error *err)
{
    tern_status status = TERN_OK;
    for (uint32_t i = 0; i < h->n_models && status == TERN_OK; i++) {
        struct tn_hosted *m = &h->hosted[i];
        if (!m->embedder || *need + quick_bytes(m) > have)
            continue;
        *need += quick_bytes(m);
        status =
            tern_embedder_create(&m->quick_embedder, h->engine, m->opened.model, NULL, err);
    }
    return status;
}

static uint64_t file_bytes(const struct tn_hosted *m)
{
    const struct tern_plan *plan = &m->planned->plan;
    return plan->predicted_hot_bytes - plan->predicted_anonymous_bytes;
}

/* Files that do not stay in memory are read while answers are written: of experts, only those that
 * tokens choose. */
static void plan_paging(struct tn_hosting *h, uint64_t need, uint64_t have)
{
    uint64_t files = 0, experts = 0;
    for (uint32_t i = 0; i < h->n_models; i++) {
        files += file_bytes(&h->hosted[i]);
        experts += h->hosted[i].planned->plan.unread_bytes;
    }
    if (need + files <= have)
        return;
    tn_note_say("model files of %s and %s for answers do not fit into %s: %s",
                tn_size_binary((double)files).text, tn_size_binary((double)need).text,
                tn_size_binary((double)have).text,
                experts ? "experts are read from the disk as tokens choose them"
                        : "the disk is read while answers are written, which is slow");
    for (uint32_t i = 0; i < h->n_models; i++)
        tern_model_page_experts(h->hosted[i].opened.model);
}

/* Shortens planned contexts, which leave no memory for requests, by an eighth.  False: --ctx sets
 * them, or none can be shortened. */
static bool shorten_contexts(struct tn_hosting *h)
{
    bool is_shorter = false;
    for (uint32_t i = 0; i < h->n_models && h->o->ctx == 0; i++) {
        uint32_t *n_ctx = &h->hosted[i].planned->plan.n_ctx;
        if (makes_vectors(&h->hosted[i]) || *n_ctx < 2 * TERN_PLAN_KV_BLOCK)
            continue;
        *n_ctx -= TN_MAX(*n_ctx / 8, 1u);
        *n_ctx -= *n_ctx % TERN_PLAN_KV_BLOCK;
        is_shorter = true;
    }
    return is_shorter;
}

/* As many sequences per model as the user requests; else four, or as many as fit. */
static tern_status fit_sequences(struct tn_hosting *h, uint32_t *n, struct tern_error *err)
{
    uint64_t need, have;
    *n = h->o->parallel ? (uint32_t)h->o->parallel : DEFAULT_SEQUENCES;
    for (;;) {
        const bool is_last = h->o->parallel || *n == 1;
        tern_status status = create_schedulers(h, *n, err);
        if (status == TERN_OK && fit(h, &need, &have)) {
            status = add_quick_embedders(h, &need, have, err);
            plan_paging(h, need, have);
            need -= MIN_REQUEST_BYTES;
            h->request_bytes = (size_t)TN_MIN(have - need, MAX_REQUEST_BYTES);
            h->planned_bytes = need + h->request_bytes;
            h->available_bytes = have;
            return status;
        }
        const bool is_shorter = status == TERN_OK && *n == 1 && shorten_contexts(h);
        if (status == TERN_OK && is_last && !is_shorter)
            status = refuse_sizes(h, *n, need, have, err);
        free_schedulers(h);
        if ((is_last && !is_shorter) || (status != TERN_OK && status != TERN_MEMORY))
            return status;
        *n -= !is_last;
    }
}

/* ---- opening all models ---- */

static tern_status create_embedders(struct tn_hosting *h, struct tern_error *err)
{
    tern_status status = TERN_OK;
    for (uint32_t i = 0; i < h->n_models && status == TERN_OK; i++) {
        struct tn_hosted *m = &h->hosted[i];
        if (makes_vectors(m))
            status = tern_embedder_create(&m->embedder, h->engine, m->opened.model, NULL, err);
    }
    return status;
}

static tern_status plan_machine(struct tn_hosting *h, struct tern_error *err)
{
    struct tern_plan_limits limits;
    tn_planned_limits(&limits, h->o);
    limits.n_ctx = limits.max_tokens = 0;
    return tern_plan_make(&h->machine, h->hosted[0].opened.machine, NULL, &limits, err);
}

static void describe(struct tn_hosting *h, uint32_t i, uint32_t n_sequences)
{
    const struct tn_hosted *m = &h->hosted[i];
    const struct tern_plan *plan = &m->planned->plan;
    h->models[i] = (struct tn_server_model){
        .id = m->id, .model = m->opened.model, .scheduler = m->scheduler,
        .n_sequences = m->scheduler ? n_sequences : 0, .n_queue = QUEUE,
        .embedder = m->embedder, .quick_embedder = m->quick_embedder,
        .chat = m->template.t, .chat_params = m->template.params,
        .has_fixed_date = h->o->date != NULL,
        .n_ctx = plan->n_ctx, .kv = plan->kv,
        .default_new_tokens = plan->default_new_tokens, .cap_new_tokens = plan->cap_new_tokens,
        .n_draft = (uint32_t)h->o->draft,
        .bytes = bytes_of(m)};
}

tern_status tn_hosting_open(struct tn_hosting *h, const struct tn_options *o,
                            struct tern_error *err)
{
    uint32_t n_sequences = 0;
    h->o = o;
    tern_status status = open_models(h, err);
    if (status == TERN_OK)
        status = plan_machine(h, err);
    if (status == TERN_OK)
        status = plan_models(h, err);
    if (status == TERN_OK)
        status = tn_planned_create_engine(&h->engine, h->hosted[0].planned, err);
    if (status == TERN_OK)
        status = tern_watch_create(&h->watch, &h->machine, NULL, err);
    if (status == TERN_OK)
        status = create_embedders(h, err);
    if (status == TERN_OK)
        status = fit_sequences(h, &n_sequences, err);
    for (uint32_t i = 0; i < h->n_models && status == TERN_OK; i++)
        describe(h, i, n_sequences);
    return status;
}

void tn_hosting_close(struct tn_hosting *h)
{
    for (uint32_t i = 0; i < TN_SERVER_MAX_MODELS; i++) {
        struct tn_hosted *m = &h->hosted[i];
        tern_scheduler_free(m->scheduler);
        tern_embedder_free(m->embedder);
        tern_embedder_free(m->quick_embedder);
        tn_template_fini(&m->template);
        tn_free(m->planned);
        tn_free(m->id);
    }
    tern_watch_free(h->watch);
    tern_engine_free(h->engine);
    for (uint32_t i = 0; i < TN_SERVER_MAX_MODELS; i++)
        tn_close(&h->hosted[i].opened);
}
