/* SPDX-License-Identifier: MIT
 *
 * Embeddings: states are evaluated batch by batch and pooled in double precision, so only the cache
 * grows with the text.
 *
 * The session is sized for the longest text so far, rounded up to a power of two: memory follows
 * the texts, not a context of 32,768 that nobody fills.  Short texts share a second workspace with
 * a sequence each, so that one batch reads the weights once for all of them.
 */
#include "tern/embed.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "arch/arch.h"
#include "base/alloc.h"
#include "base/bits.h"
#include "base/error.h"
#include "engine/session.h"

#define MIN_CONTEXT 256u

/* Texts per batch; each takes at least one block of the cache (cache_pool.h). */
#define MAX_TOGETHER 8u

struct tern_embedder {
    struct tern_engine *engine;
    const struct tern_model *model;
    struct tern_embed_params params;
    struct tern_session *session; /* NULL before the first text */
    uint32_t hidden;
    float *states; /* [TN_DEFAULT_BATCH][hidden] */
    double *sum;   /* [hidden] */
    const uint32_t *ids; /* [n_ids] the current text; its first `at` ids are in the sum */
    size_t n_ids, at;
    /* Workspace for short texts; n_sequences 0: not created yet, or out of memory. */
    struct tn_workspace *together;
    uint32_t n_sequences;
    bool is_alone; /* not enough memory for two texts at once */
};

const char *tern_pooling_text(enum tern_pooling pooling)
{
    const char *name = tn_pooling_name((uint32_t)pooling);
    return name ? name : "unknown";
}

/* ---- creation ---- */

static tern_status check_dim(uint32_t n_dim, const struct tern_model *model, struct tern_error *err)
{
    const uint32_t hidden = tern_model_config(model)->hidden;
    if (n_dim > hidden)
        return tn_fail(err, TERN_USAGE, "%u components of a vector: the model has %u", n_dim,
                       hidden);
    return tn_ok(err);
}

static tern_status check_params(const struct tern_embed_params *p, const struct tern_model *model,
                                struct tern_error *err)
{
    if (!tn_pooling_name((uint32_t)p->pooling))
        return tn_fail(err, TERN_USAGE, "pooling %d does not exist", (int)p->pooling);
    return check_dim(p->n_dim, model, err);
}

tern_status tern_embedder_create(struct tern_embedder **out, struct tern_engine *engine,
                                 const struct tern_model *model,
                                 const struct tern_embed_params *params, struct tern_error *err)
{
    static const struct tern_embed_params defaults;
    const struct tern_model_config *c = tern_model_config(model);
    *out = NULL;
    if (!params)
        params = &defaults;
    tern_status status = check_params(params, model, err);
    if (status != TERN_OK)
        return status;
    struct tern_embedder *e = tn_alloc_zeroed(1, sizeof *e);
    if (!e)
        return tn_fail(err, TERN_MEMORY, "no memory for embeddings");
    e->engine = engine;
    e->model = model;
    e->params = *params;
    if (e->params.pooling == TERN_POOLING_NONE)
        e->params.pooling = c->pooling != TERN_POOLING_NONE ? c->pooling : TERN_POOLING_MEAN;
    e->hidden = c->hidden;
    e->states = tn_alloc((size_t)TN_DEFAULT_BATCH * c->hidden * sizeof *e->states);
    e->sum = tn_alloc(c->hidden * sizeof *e->sum);
    if (!e->states || !e->sum) {
        tern_embedder_free(e);
        return tn_fail(err, TERN_MEMORY, "no memory for %u states of %u numbers", TN_DEFAULT_BATCH,
                       c->hidden);
    }
    *out = e;
    return tn_ok(err);
}

static void free_together(struct tern_embedder *e)
{
    if (e->together)
        tn_workspace_fini(e->together);
    tn_free(e->together);
    e->together = NULL;
    e->n_sequences = 0;
}

void tern_embedder_free(struct tern_embedder *e)
{
    if (!e)
        return;
    tern_session_free(e->session);
    free_together(e);
    tn_free(e->states);
    tn_free(e->sum);
    tn_free(e);
}

enum tern_pooling tern_embedder_pooling(const struct tern_embedder *e)
{
    return e->params.pooling;
}

uint32_t tern_embedder_dim(const struct tern_embedder *e)
{
    return e->params.n_dim ? e->params.n_dim : e->hidden;
}

tern_status tern_embedder_set_dim(struct tern_embedder *e, uint32_t n_dim, struct tern_error *err)
{
    tern_status status = check_dim(n_dim, e->model, err);
    if (status == TERN_OK)
        e->params.n_dim = n_dim;
    return status;
}

/* ---- one text ---- */

/* Provides an empty session with room for n_ids. */
static tern_status make_room(struct tern_embedder *e, size_t n_ids, struct tern_error *err)
{
    const uint32_t context = tern_model_config(e->model)->context;
    if (n_ids > context)
        return tn_fail(err, TERN_LIMIT, "a text of %zu tokens: the model's context is %u", n_ids,
                       context);
    if (e->session && n_ids <= tern_session_n_ctx(e->session)) {
        (void)tern_session_truncate(e->session, 0); /* position 0 is always reachable */
        return TERN_OK;
    }
    uint32_t n_ctx = MIN_CONTEXT;
    while (n_ctx < n_ids)
        n_ctx *= 2;
    const struct tern_session_params params = {
        .n_ctx = TN_MIN(n_ctx, context),
        .kv = TERN_KV_F32,
        .n_batch = TN_MIN(TN_DEFAULT_BATCH, TN_MIN(n_ctx, context)),
        .n_checkpoints = 1, /* texts are read from the beginning */
        .should_stop = e->params.should_stop,
        .arg = e->params.arg,
    };
    tern_session_free(e->session);
    e->session = NULL;
    return tern_session_create(&e->session, e->engine, e->model, &params, err);
}

/* Adds the states [n][hidden] of positions [at, at + n) of a text of n_ids, according to the
 * pooling. */
static void pool_states(struct tern_embedder *e, const float *states, size_t at, size_t n,
                        size_t n_ids)
{
    size_t begin = 0, end = n;
    if (e->params.pooling == TERN_POOLING_CLS)
        end = at == 0;
    if (e->params.pooling == TERN_POOLING_LAST)
        begin = at + n == n_ids ? n - 1 : n;
    for (size_t row = begin; row < end; row++)
        for (uint32_t i = 0; i < e->hidden; i++)
            e->sum[i] += (double)states[row * e->hidden + i];
}

/* Scales the sum to length 1; dividing by n first would give the same vector. */
static tern_status write_normalised(const struct tern_embedder *e, float *dst,
                                    struct tern_error *err)
{
    const uint32_t n_dim = tern_embedder_dim(e);
    double square = 0;
    for (uint32_t i = 0; i < n_dim; i++)
        square += e->sum[i] * e->sum[i];
    if (!(square <= DBL_MAX))
        return tn_fail(err, TERN_INTERNAL,
                       "the states are not finite numbers; is the model file intact?");
    const double factor = square > 0 ? 1.0 / sqrt(square) : 0.0;
    for (uint32_t i = 0; i < n_dim; i++)
        dst[i] = (float)(e->sum[i] * factor);
    return tn_ok(err);
}

tern_status tern_embed_begin(struct tern_embedder *e, const uint32_t *ids, size_t n_ids,
                             struct tern_error *err)
{
    e->n_ids = 0;
    if (n_ids == 0)
        return tn_fail(err, TERN_USAGE, "no ids to embed");
    tern_status status = make_room(e, n_ids, err);
    if (status != TERN_OK)
        return status;
    memset(e->sum, 0, e->hidden * sizeof *e->sum);
    e->ids = ids;
    e->n_ids = n_ids;
    e->at = 0;
    return tn_ok(err);
}

tern_status tern_embed_step(struct tern_embedder *e, float *dst, bool *is_done,
                            struct tern_error *err)
{
    const size_t n = TN_MIN(e->n_ids - e->at, (size_t)TN_DEFAULT_BATCH);
    *is_done = false;
    if (e->n_ids == 0)
        return tn_fail(err, TERN_USAGE, "no vector was begun");
    tern_status status = tern_session_eval_states(e->session, e->ids + e->at, n, e->states, err);
    if (status == TERN_OK) {
        pool_states(e, e->states, e->at, n, e->n_ids);
        e->at += n;
    }
    if (status == TERN_OK && e->at < e->n_ids)
        return status;
    *is_done = status == TERN_OK;
    e->n_ids = e->at = 0;
    return status == TERN_OK ? write_normalised(e, dst, err) : status;
}

tern_status tern_embed(struct tern_embedder *e, const uint32_t *ids, size_t n_ids, float *dst,
                       struct tern_error *err)
{
    bool is_done = false;
    tern_status status = tern_embed_begin(e, ids, n_ids, err);
    while (status == TERN_OK && !is_done)
        status = tern_embed_step(e, dst, &is_done, err);
    return status;
}

/* ---- several texts ---- */

/* Creates a workspace for as many short texts as memory allows; without it texts go one at a time.
 */
static void make_together(struct tern_embedder *e)
{
    const uint32_t context = tern_model_config(e->model)->context;
    for (uint32_t n = MAX_TOGETHER; n >= 2 && !e->together && !e->is_alone; n /= 2) {
        const struct tn_workspace_params params = {
            .n_ctx = TN_MIN(TN_DEFAULT_BATCH, context),
            .n_batch = TN_MIN(TN_DEFAULT_BATCH, context),
            .n_sequences = n,
            .n_logits = 1,
            .kv = TERN_KV_F32,
            .should_stop = e->params.should_stop,
            .arg = e->params.arg,
        };
        struct tern_error ignored;
        e->together = tn_alloc_zeroed(1, sizeof *e->together);
        e->n_sequences = e->together ? n : 0;
        if (e->together &&
            tn_workspace_init(e->together, e->engine, e->model, &params, &ignored) != TERN_OK)
            free_together(e);
    }
    e->is_alone = !e->together;
}

/* How many of n texts fit into one batch; 0: the first is too long, or invalid. */
static uint32_t count_together(struct tern_embedder *e, const struct tern_embed_ids *texts,
                               size_t n)
{
    size_t n_rows = 0;
    uint32_t k = 0;
    while (k < n && k < e->n_sequences && texts[k].n_ids > 0 &&
           texts[k].n_ids <= e->together->params.n_batch - n_rows &&
           tn_check_ids(e->model, texts[k].ids, texts[k].n_ids, NULL) == TERN_OK)
        n_rows += texts[k++].n_ids;
    return k;
}

/* Evaluates n texts in one batch, their ids concatenated in `ids`. */
static tern_status eval_together(struct tern_embedder *e, const struct tern_embed_ids *texts,
                                 uint32_t n, uint32_t *ids, struct tern_error *err)
{
    struct tn_sequence sequences[MAX_TOGETHER];
    struct tn_span spans[MAX_TOGETHER];
    struct tn_batch batch = {.ids = ids, .spans = spans, .n_spans = n, .states = e->states};
    tern_status status = TERN_OK;
    for (uint32_t i = 0; i < n; i++)
        sequences[i] = tn_workspace_sequence(e->together, i);
    for (uint32_t i = 0; i < n && status == TERN_OK; i++) {
        const uint32_t n_ids = (uint32_t)texts[i].n_ids;
        if (!tn_sequence_grow(&sequences[i], n_ids))
            status = tn_fail(err, TERN_MEMORY, "no memory for the cache of %u texts", n);
        spans[i] = (struct tn_span){
            .blocks = sequences[i].blocks, .state = sequences[i].state, .row = batch.n_rows,
            .n_rows = n_ids};
        memcpy(ids + batch.n_rows, texts[i].ids, n_ids * sizeof *ids);
        batch.n_rows += n_ids;
    }
    if (status == TERN_OK)
        status = tn_workspace_eval(e->together, &batch, err);
    for (uint32_t i = 0; i < n; i++)
        (void)tn_sequence_truncate(&sequences[i], 0); /* position 0 is always reachable */
    return status;
}

/* Adds the number of finished texts to *n_done. */
static tern_status embed_together(struct tern_embedder *e, const struct tern_embed_ids *texts,
                                  uint32_t n, float *dst, size_t *n_done, struct tern_error *err)
{
    uint32_t ids[TN_DEFAULT_BATCH];
    const float *states = e->states;
    tern_status status = eval_together(e, texts, n, ids, err);
    for (uint32_t i = 0; i < n && status == TERN_OK; i++) {
        memset(e->sum, 0, e->hidden * sizeof *e->sum);
        pool_states(e, states, 0, texts[i].n_ids, texts[i].n_ids);
        states += texts[i].n_ids * e->hidden;
        status = write_normalised(e, dst + (size_t)i * tern_embedder_dim(e), err);
        *n_done += status == TERN_OK;
    }
    return status;
}

tern_status tern_embed_list(struct tern_embedder *e, const struct tern_embed_ids *texts,
                            size_t n_texts, float *dst, size_t *n_done, struct tern_error *err)
{
    tern_status status = tn_ok(err);
    size_t i = 0;
    e->n_ids = 0;
    if (n_texts > 1)
        make_together(e);
    while (i < n_texts && status == TERN_OK) {
        const uint32_t n = count_together(e, texts + i, n_texts - i);
        float *to = dst + i * tern_embedder_dim(e);
        if (n > 1) {
            status = embed_together(e, texts + i, n, to, &i, err);
        } else {
            status = tern_embed(e, texts[i].ids, texts[i].n_ids, to, err);
            i += status == TERN_OK;
        }
    }
    if (n_done)
        *n_done = i;
    return status;
}

tern_status tern_embed_text(struct tern_embedder *e, const char *text, size_t n_bytes, float *dst,
                            size_t *n_tokens, struct tern_error *err)
{
    const struct tern_tokenizer *tokenizer = tern_model_tokenizer(e->model);
    struct tern_ids ids = {0};
    if (!tokenizer)
        return tn_fail(err, TERN_INPUT, "\"%s\" has no tokenizer: text cannot be encoded",
                       tern_model_path(e->model));
    tern_status status =
        tern_tokenizer_encode(tokenizer, text, n_bytes, TERN_ENCODE_ADD_SPECIAL, &ids, err);
    if (status == TERN_OK && ids.n == 0)
        status = tn_fail(err, TERN_INPUT, "an empty text has no tokens, so it has no vector");
    if (status == TERN_OK)
        status = tern_embed(e, ids.ids, ids.n, dst, err);
    if (n_tokens)
        *n_tokens = ids.n;
    tern_ids_free(&ids);
    return status;
}

double tern_embed_similarity(const float *a, const float *b, uint32_t n_dim)
{
    double sum = 0;
    for (uint32_t i = 0; i < n_dim; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}
