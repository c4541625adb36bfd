/* SPDX-License-Identifier: MIT
 *
 * Measures the cost of f16 and q8 caches: three sessions, one per cache type, evaluate the same ids
 * in steps, and the distributions of each step are compared before the next one begins.
 */
#include "convert/cache_cost.h"

#include <math.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/error.h"

/* Memory for rows of logits of two sessions. */
#define MAX_ROWS_BYTES ((size_t)16 << 20)

struct measurement {
    struct tern_session *sessions[3]; /* by enum tern_kv */
    uint32_t n_ids, n_step, vocab;
    float *exact, *other; /* [n_step][vocab] logits with the f32 cache, and with another */
    double nats[3];       /* sums over the ids, by enum tern_kv */
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

static tern_status compare_step(struct measurement *m, const uint32_t *ids, uint32_t n,
                                struct tern_error *err)
{
    tern_status status = tern_session_eval(m->sessions[TERN_KV_F32], ids, n, m->exact, err);
    for (uint32_t kv = TERN_KV_F16; kv <= TERN_KV_Q8 && status == TERN_OK; kv++) {
        status = tern_session_eval(m->sessions[kv], ids, n, m->other, err);
        for (uint32_t i = 0; i < n && status == TERN_OK; i++)
            m->nats[kv] += divergence(m->exact + (size_t)i * m->vocab,
                                      m->other + (size_t)i * m->vocab, m->vocab);
    }
    return status;
}

static tern_status compare(struct measurement *m, struct tern_error *err)
{
    uint32_t ids[TN_CACHE_COST_IDS];
    tern_status status = TERN_OK;
    for (uint32_t i = 0; i < m->n_ids; i++)
        ids[i] = (uint32_t)((i + 1) * (uint64_t)7919 % m->vocab);
    for (uint32_t i = 0; i < m->n_ids && status == TERN_OK; i += m->n_step)
        status = compare_step(m, ids + i, TN_MIN(m->n_step, m->n_ids - i), err);
    return status;
}

static tern_status open_sessions(struct measurement *m, struct tern_engine *engine,
                                 const struct tern_model *model, bool (*should_stop)(void *arg),
                                 void *arg, struct tern_error *err)
{
    struct tern_session_params params = {.n_ctx = m->n_ids, .n_batch = m->n_step,
                                         .drop_pages = true, .should_stop = should_stop,
                                         .arg = arg};
    tern_status status = TERN_OK;
    for (uint32_t kv = TERN_KV_F32; kv <= TERN_KV_Q8 && status == TERN_OK; kv++) {
        params.kv = (enum tern_kv)kv;
        status = tern_session_create(&m->sessions[kv], engine, model, &params, err);
    }
    return status;
}

tern_status tn_cache_cost_measure(struct tn_cache_cost *out, struct tern_engine *engine,
                                  const struct tern_model *model, bool (*should_stop)(void *arg),
                                  void *arg, struct tern_error *err)
{
    const struct tern_model_config *c = tern_model_config(model);
    const size_t row_bytes = 2 * (size_t)c->vocab * sizeof(float);
    struct measurement m = {.n_ids = TN_MIN(TN_CACHE_COST_IDS, c->context), .vocab = c->vocab};
    m.n_step = (uint32_t)TN_MIN(TN_MAX(MAX_ROWS_BYTES / row_bytes, (size_t)1), (size_t)m.n_ids);
    *out = (struct tn_cache_cost){0};
    m.exact = tn_alloc(m.n_step * row_bytes);
    if (!m.exact)
        return tn_fail(err, TERN_MEMORY, "no memory for %u rows of %u logits", m.n_step, m.vocab);
    m.other = m.exact + (size_t)m.n_step * m.vocab;
    tern_status status = open_sessions(&m, engine, model, should_stop, arg, err);
    if (status == TERN_OK)
        status = compare(&m, err);
    if (status == TERN_OK)
        *out = (struct tn_cache_cost){.f16_nats = m.nats[TERN_KV_F16] / m.n_ids,
                                      .q8_nats = m.nats[TERN_KV_Q8] / m.n_ids};
    for (uint32_t kv = TERN_KV_F32; kv <= TERN_KV_Q8; kv++)
        tern_session_free(m.sessions[kv]);
    tn_free(m.exact);
    return status;
}

bool tn_cache_cost_is_too_high(const struct tn_cache_cost *cost)
{
    return cost->q8_nats > TN_CACHE_COST_FACTOR * fmax(cost->f16_nats, TN_CACHE_COST_LEAST);
}
