/* SPDX-License-Identifier: MIT
 *
 * Measures how well a model predicts a text.  Windows of n_ctx ids advance by n_stride:
 *
 *   ids     0 ......................................... n
 *   window  [BOS, 0 ............. n_ctx - 2]
 *                 step  [BOS, n_stride ..................]
 *                        only ids that no earlier window scored are scored
 */
#include <float.h>
#include <math.h>

#include "base/alloc.h"
#include "base/error.h"
#include "engine/session.h"
#include "tern/measure.h"
#include "text/tokenizer.h"

/* Rows of logits held at a time. */
#define SCORE_BATCH 16u

struct scorer {
    struct tern_session *session;
    const struct tern_perplexity_params *params;
    float *logits;    /* [SCORE_BATCH][vocab] */
    uint32_t *window; /* [n_ctx] BOS and ids */
    bool has_bos;
    uint32_t bos;
    size_t n_ids; /* length of the text */
    size_t n_scored;
    double nats;
};

/* A window may take minutes, so the caller is asked within it too. */
static bool should_stop(void *arg)
{
    const struct scorer *sc = arg;
    size_t n_done = sc->n_scored + !sc->has_bos; /* without BOS nothing predicts the first id */
    return sc->params->on_progress &&
           !sc->params->on_progress(sc->params->arg, n_done, sc->n_ids);
}

/* -log softmax(logits)[id], in double precision. */
static double surprise(const float *logits, uint32_t n, uint32_t id)
{
    double max = logits[0], sum = 0;
    for (uint32_t i = 1; i < n; i++)
        max = TN_MAX(max, (double)logits[i]);
    for (uint32_t i = 0; i < n; i++)
        sum += exp((double)logits[i] - max);
    return max + log(sum) - (double)logits[id];
}

/* Evaluates window[0, n); scores window[i] for i >= first_scored by the logits before it. */
static tern_status score_window(struct scorer *sc, uint32_t n, uint32_t first_scored,
                                struct tern_error *err)
{
    uint32_t vocab = sc->session->model->file.spec.config->vocab;
    tern_session_truncate(sc->session, 0);
    /* The logits of the last id predict nothing in this window. */
    for (uint32_t i = 0; i + 1 < n;) {
        bool scoring = i + 1 >= first_scored;
        uint32_t limit = scoring ? n - 1 - i : TN_MIN(n - 1, first_scored - 1) - i;
        uint32_t m = TN_MIN(limit, scoring ? SCORE_BATCH : limit);
        tern_status status = tern_session_eval(sc->session, sc->window + i, m,
                                               scoring ? sc->logits : NULL, err);
        if (status != TERN_OK)
            return status;
        for (uint32_t k = 0; scoring && k < m; k++)
            sc->nats += surprise(sc->logits + (size_t)k * vocab, vocab, sc->window[i + k + 1]);
        sc->n_scored += scoring ? m : 0;
        i += m;
    }
    return TERN_OK;
}

static tern_status score_text(struct scorer *sc, const struct tern_ids *ids, uint32_t n_ctx,
                              uint32_t n_stride, struct tern_error *err)
{
    uint32_t n_bos = sc->has_bos;
    size_t covered = 0; /* ids scored by an earlier window */
    sc->n_ids = ids->n;
    for (size_t start = 0; covered < ids->n; start += n_stride) {
        uint32_t n = (uint32_t)TN_MIN(ids->n - start, (size_t)(n_ctx - n_bos));
        if (n_bos)
            sc->window[0] = sc->bos;
        for (uint32_t i = 0; i < n; i++)
            sc->window[n_bos + i] = ids->ids[start + i];
        uint32_t first_scored = (uint32_t)(covered - start) + n_bos;
        tern_status status = score_window(sc, n + n_bos, TN_MAX(first_scored, 1u), err);
        if (status != TERN_OK)
            return status;
        covered = start + n;
        if (should_stop(sc))
            return tn_fail(err, TERN_INTERRUPTED, "interrupted after %zu of %zu ids", covered,
                           ids->n);
    }
    return tn_ok(err);
}

static tern_status check_windows(const struct scorer *sc, const struct tern_ids *ids,
                                 uint32_t n_ctx, uint32_t n_stride, struct tern_error *err)
{
    if (n_ctx < 2)
        return tn_fail(err, TERN_USAGE, "windows of %u id: at least 2 are needed", n_ctx);
    if (n_stride > n_ctx - sc->has_bos)
        return tn_fail(err, TERN_USAGE,
                       "windows of %u ids and a stride of %u: the stride must be 1 to %u", n_ctx,
                       n_stride, n_ctx - sc->has_bos);
    if (ids->n + sc->has_bos < 2)
        return tn_fail(err, TERN_INPUT, "the text has %zu tokens: too short to predict anything",
                       ids->n);
    return tn_ok(err);
}

static tern_status open_scorer(struct scorer *sc, struct tern_engine *engine,
                               const struct tern_model *model, uint32_t n_ctx,
                               struct tern_error *err)
{
    struct tern_session_params p = {
        .n_ctx = n_ctx, .kv = sc->params->kv, .should_stop = should_stop, .arg = sc};
    tern_status status = tern_session_create(&sc->session, engine, model, &p, err);
    if (status != TERN_OK)
        return status;
    sc->logits = tn_alloc((size_t)SCORE_BATCH * model->file.spec.config->vocab * sizeof(float));
    sc->window = tn_alloc(n_ctx * sizeof(uint32_t));
    if (!sc->logits || !sc->window)
        return tn_fail(err, TERN_MEMORY, "no memory for %u rows of logits", SCORE_BATCH);
    return tn_ok(err);
}

void tern_perplexity_params_default(struct tern_perplexity_params *out)
{
    *out = (struct tern_perplexity_params){.kv = TERN_KV_F32};
}

tern_status tern_perplexity(struct tern_engine *engine, const struct tern_model *model,
                            const char *text, size_t n_bytes,
                            const struct tern_perplexity_params *params,
                            struct tern_perplexity_result *result, struct tern_error *err)
{
    *result = (struct tern_perplexity_result){0};
    if (!model->tokenizer)
        return tn_fail(err, TERN_INPUT, "\"%s\" has no tokenizer: text cannot be encoded",
                       model->path);
    struct scorer sc = {.params = params};
    struct tern_ids ids = {0};
    uint32_t n_ctx = params->n_ctx ? params->n_ctx : model->file.spec.config->context;
    uint32_t n_stride = params->n_stride ? params->n_stride : TN_MAX(n_ctx / 2, 1u);
    uint32_t n_prefix;
    const uint32_t *prefix = tn_tokenizer_prefix(model->tokenizer, &n_prefix);
    sc.has_bos = n_prefix > 0;
    sc.bos = n_prefix > 0 ? prefix[0] : TERN_NO_ID;
    tern_status status = tern_tokenizer_encode(model->tokenizer, text, n_bytes, 0, &ids, err);
    if (status == TERN_OK)
        status = check_windows(&sc, &ids, n_ctx, n_stride, err);
    if (status == TERN_OK)
        status = open_scorer(&sc, engine, model, n_ctx, err);
    if (status == TERN_OK)
        status = score_text(&sc, &ids, n_ctx, n_stride, err);
    if (status == TERN_OK && !(fabs(sc.nats) <= DBL_MAX))
        status = tn_fail(err, TERN_INTERNAL,
                         "the logits are not finite numbers; is the model file intact?");
    if (status == TERN_OK) {
        result->n_scored = sc.n_scored;
        result->nats_per_token = sc.nats / (double)sc.n_scored;
        result->perplexity = exp(result->nats_per_token);
    }
    tn_free(sc.logits);
    tn_free(sc.window);
    tern_session_free(sc.session);
    tern_ids_free(&ids);
    return status;
}
