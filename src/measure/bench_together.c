/* SPDX-License-Identifier: MIT
 *
 * Decodes several sequences together and then each of them alone: the ids must be the same.
 *
 * The number of tokens per second counts only the time during which all sequences decode.
 */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/error.h"
#include "measure/bench.h"
#include "plat/plat.h"
#include "tern/scheduler.h"

/* The output of a sequence. */
struct answer {
    uint32_t *ids; /* [n_new] the first ids */
    uint32_t n;    /* total number of ids */
    uint64_t request;
};

struct together {
    struct tern_scheduler *scheduler;
    uint32_t vocab, n_prompt, n_new;
    /* above n_new: the first sequence continues until the last has n_new ids */
    uint32_t max_tokens;
    uint32_t *prompt;    /* [n_prompt] of the current sequence */
    struct answer answers[TERN_BENCH_MAX_TOGETHER];
    uint32_t n;          /* answers in progress */
    bool has_end;        /* one of them has ended */
};

static uint32_t fewest(const struct together *t)
{
    uint32_t n = t->answers[0].n;
    for (uint32_t i = 1; i < t->n; i++)
        n = TN_MIN(n, t->answers[i].n);
    return n;
}

static uint64_t all_ids(const struct together *t)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < t->n; i++)
        n += t->answers[i].n;
    return n;
}

static tern_status submit(struct together *t, struct answer *answer, uint32_t sequence,
                          struct tern_error *err)
{
    const struct tern_request request = {.ids = t->prompt,
                                         .n_ids = t->n_prompt,
                                         .sampler = {.top_p = 1.0f, .repeat_penalty = 1.0f},
                                         .max_tokens = t->max_tokens,
                                         .ignore_eos = true,
                                         .arg = answer};
    tn_bench_prompt(t->prompt, t->n_prompt, sequence, t->vocab);
    answer->n = 0;
    return tern_scheduler_submit(t->scheduler, &request, &answer->request, err);
}

static tern_status step(struct together *t, bool *is_idle, struct tern_error *err)
{
    const struct tern_event *events;
    size_t n_events;
    tern_status status = tern_scheduler_step(t->scheduler, &events, &n_events, is_idle, err);
    if (status != TERN_OK)
        return status;
    for (size_t i = 0; i < n_events; i++) {
        struct answer *answer = events[i].arg;
        if (events[i].kind == TERN_EVENT_TOKEN) {
            if (answer->n < t->n_new)
                answer->ids[answer->n] = events[i].id;
            answer->n++;
        } else if (events[i].kind == TERN_EVENT_END) {
            t->has_end = true;
            if (events[i].status != TERN_OK) {
                *err = events[i].error;
                return events[i].status;
            }
        }
    }
    return TERN_OK;
}

static tern_status end_all(struct together *t, struct tern_error *err)
{
    tern_status status = TERN_OK;
    bool is_idle = false;
    for (uint32_t i = 0; i < t->n; i++)
        tern_scheduler_cancel(t->scheduler, t->answers[i].request);
    while (status == TERN_OK && !is_idle)
        status = step(t, &is_idle, err);
    return status;
}

/* Decodes sequences [first, first + n) until each has n_new ids.  *tok_s: ids per second of all,
 * while all of them decode. */
static tern_status decode(struct together *t, uint32_t first, uint32_t n, double *tok_s,
                          struct tern_error *err)
{
    tern_status status = TERN_OK;
    uint64_t start = 0, n_before = 0;
    bool is_idle = false;
    t->n = n;
    t->has_end = false;
    *tok_s = 0;
    for (uint32_t i = 0; i < n && status == TERN_OK; i++)
        status = submit(t, &t->answers[i], first + i, err);
    while (status == TERN_OK && fewest(t) < t->n_new) {
        if (is_idle)
            return tn_fail(err, TERN_INTERNAL, "a sequence ended after %u of %u ids", fewest(t),
                           t->n_new);
        status = step(t, &is_idle, err);
        if (start == 0 && fewest(t) > 0) {
            start = tn_now_ns();
            n_before = all_ids(t);
        } else if (start > 0 && *tok_s == 0 && (t->has_end || fewest(t) == t->n_new)) {
            *tok_s = (double)(all_ids(t) - n_before) / tn_seconds_since(start);
        }
    }
    return status == TERN_OK ? end_all(t, err) : status;
}

static uint64_t hash_of(const struct together *t, uint32_t i)
{
    return XXH3_64bits(t->answers[i].ids, t->n_new * sizeof *t->answers[i].ids);
}

/* `alone`: hashes of the sequences decoded alone. */
static tern_status measure(struct tn_bench_together *out, struct together *t, uint32_t n,
                           const uint64_t *alone, struct tern_error *err)
{
    double tok_s;
    tern_status status = decode(t, 0, n, &tok_s, err);
    if (status != TERN_OK)
        return status;
    out->n = n;
    tn_samples_add(&out->decode, tok_s);
    for (uint32_t i = 0; i < n; i++) {
        out->hashes[i] = hash_of(t, i);
        out->hashes_differ = out->hashes_differ || out->hashes[i] != alone[i];
    }
    return TERN_OK;
}

static tern_status measure_all(struct tn_bench_together *out, struct together *t,
                               const struct tern_bench_params *p, uint32_t n_most,
                               struct tern_error *err)
{
    uint64_t alone[TERN_BENCH_MAX_TOGETHER];
    tern_status status = TERN_OK;
    double tok_s;
    for (uint32_t i = 0; i < n_most && status == TERN_OK; i++) {
        status = decode(t, i, 1, &tok_s, err);
        if (status == TERN_OK)
            alone[i] = hash_of(t, 0);
    }
    for (uint32_t k = 0; k < p->n_repeats && status == TERN_OK; k++)
        for (uint32_t i = 0; i < p->n_together && status == TERN_OK; i++)
            status = measure(&out[i], t, p->together[i], alone, err);
    return status;
}

tern_status tn_bench_together(struct tn_bench_together *out, struct tern_engine *engine,
                              const struct tern_model *model, const struct tern_bench_params *p,
                              struct tern_error *err)
{
    const struct tern_file_config *c = model->file.spec.config;
    struct together t = {.vocab = c->vocab, .n_prompt = p->prompts[0], .n_new = p->n_new};
    const uint32_t n_most = tn_bench_largest(p->together, p->n_together);
    /* Prompts are read one after the other, at least 64 ids per step in which others decode. */
    const uint32_t n_ahead = n_most * (t.n_prompt / 64 + 1);
    t.max_tokens = t.n_new + TN_MIN(n_ahead, c->context - t.n_prompt - t.n_new);
    const struct tern_scheduler_params sp = {.n_sequences = n_most,
                                             .n_ctx = t.n_prompt + t.max_tokens,
                                             .kv = p->kv,
                                             .should_stop = p->should_stop,
                                             .arg = p->arg};
    uint32_t *ids = tn_alloc((t.n_prompt + (size_t)n_most * t.n_new) * sizeof *ids);
    if (!ids)
        return tn_fail(err, TERN_MEMORY, "no memory for the ids of %u sequences", n_most);
    t.prompt = ids;
    for (uint32_t i = 0; i < n_most; i++)
        t.answers[i].ids = ids + t.n_prompt + (size_t)i * t.n_new;
    tern_status status = tern_scheduler_create(&t.scheduler, engine, model, &sp, err);
    if (status == TERN_OK)
        status = measure_all(out, &t, p, n_most, err);
    tern_scheduler_free(t.scheduler);
    tn_free(ids);
    return status;
}
