/* SPDX-License-Identifier: MIT
 *
 * Measures the cost of f16 and q8 caches: one session after the other, one per cache type,
 * evaluates the same ids, and the distributions are compared with those of the first, whose cache
 * is f32.
 */
#include "convert/cache_cost.h"

#include <math.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/error.h"

#define N_IDS 32u
#define N_COMPARED 8u /* the last ids, which see the most keys; fewer with more than 2^18 logits */
/* With recurrent layers: less than a chunk of a gated delta rule, so that its matrices, 157 MB for
 * a 27B, are never written. */
#define N_STATE_IDS 15u
/* q8 may cost at most this many times as much as f16, ... */
#define MAX_FACTOR 3.0
/* ... which is counted as at least this: smaller values are rounding noise. */
#define MIN_F16_NATS 0.0005
#define MAX_ROWS_BYTES ((size_t)8 << 20) /* for the logits of one cache type */

struct measurement {
    struct tern_engine *engine;
    const struct tern_model *model;
    struct tern_session_params params;
    uint32_t ids[N_IDS];
    uint32_t n_ids, n_compared, vocab;
    float *exact;   /* [n_compared][vocab] logits with the f32 cache */
    float *other;   /* [n_compared][vocab] with another */
    double nats[3]; /* sums over the compared ids, by enum tern_kv */
};

/* ln of the sum of e^x. */
static double log_sum_exp(const float *x, uint32_t n)
{
    double max = (double)x[0], sum = 0;
    for (uint32_t i = 1; i < n; i++)
        max = fmax(max, (double)x[i]);
    for (uint32_t i = 0; i < n; i++)
        sum += exp((double)x[i] - max);
    return max + log(sum);
}

/* sum over i of p_i ln(p_i / q_i), p and q being the softmax of the logits. */
static double divergence(const float *p, const float *q, uint32_t n)
{
    const double p_total = log_sum_exp(p, n), q_total = log_sum_exp(q, n);
    double nats = 0;
    for (uint32_t i = 0; i < n; i++) {
        const double p_log = (double)p[i] - p_total;
        nats += exp(p_log) * (p_log - ((double)q[i] - q_total));
    }
    return nats;
}

/* Chooses the numbers of ids. */
static tern_status count_ids(struct measurement *m, struct tern_error *err)
{
    struct tern_session *session;
    m->n_ids = TN_MIN(N_IDS, tern_model_config(m->model)->context);
    m->params.n_ctx = m->n_ids;
    tern_status status = tern_session_create(&session, m->engine, m->model, &m->params, err);
    if (status == TERN_OK && tern_session_has_state(session))
        m->params.n_ctx = m->n_ids = TN_MIN(N_STATE_IDS, m->n_ids);
    tern_session_free(session);
    m->params.n_batch = m->n_ids;
    m->n_compared = (uint32_t)TN_MAX(MAX_ROWS_BYTES / (m->vocab * sizeof(float)), (size_t)1);
    m->n_compared = TN_MIN(TN_MIN(m->n_compared, N_COMPARED), m->n_ids);
    return status;
}

static tern_status take_memory(struct measurement *m, struct tern_error *err)
{
    const size_t n = (size_t)m->n_compared * m->vocab;
    m->exact = tn_alloc(2 * n * sizeof(float));
    if (!m->exact)
        return tn_fail(err, TERN_MEMORY, "no memory for %u rows of %u logits", 2 * m->n_compared,
                       m->vocab);
    m->other = m->exact + n;
    return TERN_OK;
}

/* Evaluates the ids.  An f32 cache keeps the logits of the last ones, others compare them. */
static tern_status run_with(struct measurement *m, enum tern_kv kv, struct tern_error *err)
{
    const uint32_t n_before = m->n_ids - m->n_compared;
    float *rows = kv == TERN_KV_F32 ? m->exact : m->other;
    struct tern_session *session;
    m->params.kv = kv;
    tern_status status = tern_session_create(&session, m->engine, m->model, &m->params, err);
    if (status == TERN_OK && n_before > 0)
        status = tern_session_eval(session, m->ids, n_before, NULL, err);
    if (status == TERN_OK)
        status = tern_session_eval(session, m->ids + n_before, m->n_compared, rows, err);
    tern_session_free(session);
    for (size_t i = 0; i < m->n_compared && status == TERN_OK && kv != TERN_KV_F32; i++)
        m->nats[kv] += divergence(m->exact + i * m->vocab, rows + i * m->vocab, m->vocab);
    return status;
}

tern_status tn_cache_cost_measure(struct tn_cache_cost *out, struct tern_engine *engine,
                                  const struct tern_model *model, bool (*should_stop)(void *arg),
                                  void *arg, struct tern_error *err)
{
    struct measurement m = {.engine = engine, .model = model,
                            .vocab = tern_model_config(model)->vocab};
    m.params = (struct tern_session_params){.n_batch = 1, .n_checkpoints = 1, .drop_pages = true,
                                            .should_stop = should_stop, .arg = arg};
    *out = (struct tn_cache_cost){0};
    tern_status status = count_ids(&m, err);
    if (status == TERN_OK)
        status = take_memory(&m, err);
    for (uint32_t i = 0; i < m.n_ids; i++)
        m.ids[i] = (uint32_t)((i + 1) * (uint64_t)7919 % m.vocab);
    for (uint32_t kv = TERN_KV_F32; kv <= TERN_KV_Q8 && status == TERN_OK; kv++)
        status = run_with(&m, (enum tern_kv)kv, err);
    if (status == TERN_OK)
        *out = (struct tn_cache_cost){.f16_nats = m.nats[TERN_KV_F16] / m.n_compared,
                                      .q8_nats = m.nats[TERN_KV_Q8] / m.n_compared};
    tn_free(m.exact);
    return status;
}

bool tn_cache_cost_is_too_high(const struct tn_cache_cost *cost)
{
    return cost->q8_nats > MAX_FACTOR * fmax(cost->f16_nats, MIN_F16_NATS);
}
