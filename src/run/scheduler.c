/* SPDX-License-Identifier: MIT
 *
 * The scheduler as its caller sees it: creation, submission, steps, and how requests end.
 *
 *   submit -> queue -> lane: prompt in parts -> token by token -> END
 *
 * Memory for texts is taken at submit, all other at creation: a step takes none but pages of the
 * cache.
 */
#include "run/scheduler.h"

#include <stdatomic.h>

#include "base/alloc.h"
#include "base/log.h"
#include "run/session.h"

/* Events of a lane in a step: of the prompt, its ids and the first, a token, the end. */
#define EVENTS_PER_LANE (TN_PROMPT_LOGPROB_ROWS + 4)

void tern_scheduler_params_default(struct tern_scheduler_params *out)
{
    *out = (struct tern_scheduler_params){.n_sequences = 4, .n_queue = 64, .kv = TERN_KV_F16};
}

/* ---- creation ---- */

static tern_status check_params(const struct tern_scheduler_params *p,
                                const struct tern_model *model, struct tern_error *err)
{
    if (p->n_sequences == 0 || p->n_sequences > TERN_SCHEDULER_MAX_SEQUENCES)
        return tn_fail(err, TERN_USAGE, "%u sequences: 1 to %d can run at the same time",
                       p->n_sequences, TERN_SCHEDULER_MAX_SEQUENCES);
    if (p->n_queue > TERN_SCHEDULER_MAX_QUEUE)
        return tn_fail(err, TERN_USAGE, "a queue of %u: at most %d requests can wait", p->n_queue,
                       TERN_SCHEDULER_MAX_QUEUE);
    if (!model->weights.head.format)
        return tn_fail(err, TERN_UNSUPPORTED,
                       "\"%s\" is an embedding model: it has no head and gives no text",
                       model->path);
    return tn_ok(err);
}

/* What was 0 is filled in. A batch has room for a row of every sequence. */
static tern_status complete_params(struct tern_scheduler *s, const struct tern_scheduler_params *p,
                                   struct tern_error *err)
{
    const struct tern_session_params sp = {.n_ctx = p->n_ctx, .n_batch = p->n_batch, .kv = p->kv};
    const struct tern_file_config *c = s->work.model->file.spec.config;
    s->params = *p;
    s->params.n_ctx = p->n_ctx ? p->n_ctx : c->context;
    s->params.n_batch = p->n_batch ? p->n_batch : TN_MIN(TN_DEFAULT_BATCH, s->params.n_ctx);
    s->params.n_batch = TN_MAX(s->params.n_batch, p->n_sequences);
    s->n_places = p->n_sequences + p->n_queue;
    return tn_session_check_params(&sp, c, err);
}

/* Nobody waits for what is in the batch any more. */
static bool is_in_vain(const struct tern_scheduler *s)
{
    for (uint32_t i = 0; i < s->params.n_sequences; i++)
        if (s->lanes[i].n_rows > 0 && !tn_is_cancelled(s, s->lanes[i].request))
            return false;
    return true;
}

static bool should_stop(void *arg)
{
    const struct tern_scheduler *s = arg;
    return (s->params.should_stop && s->params.should_stop(s->params.arg)) || is_in_vain(s);
}

static bool may_grow(void *arg, uint64_t n_bytes)
{
    const struct tern_scheduler *s = arg;
    return s->params.may_grow(s->params.arg, n_bytes);
}

static tern_status open_workspace(struct tern_scheduler *s, struct tern_engine *engine,
                                  struct tern_error *err)
{
    const struct tn_workspace_params params = {.n_ctx = s->params.n_ctx,
                                               .n_batch = s->params.n_batch,
                                               .n_sequences = s->params.n_sequences,
                                               .n_logits =
                                                   s->params.n_sequences + TN_PROMPT_LOGPROB_ROWS,
                                               .kv = s->params.kv,
                                               .drop_pages = s->params.drop_pages,
                                               .may_grow = s->params.may_grow ? may_grow : NULL,
                                               .should_stop = should_stop,
                                               .arg = s};
    return tn_workspace_init(&s->work, engine, s->work.model, &params, err);
}

/* A history of all positions and the id that has none any more. */
static uint32_t longest_history(const struct tern_scheduler *s)
{
    return TN_MIN(s->params.n_ctx + 1, TERN_MAX_CONTEXT);
}

static tern_status open_lane(struct tern_scheduler *s, uint32_t i, struct tern_error *err)
{
    struct tn_lane *lane = &s->lanes[i];
    struct tern_sampler_params params;
    tern_sampler_params_default(&params);
    params.penalty_last = longest_history(s);
    lane->sequence = tn_workspace_sequence(&s->work, i);
    lane->head_always = s->work.forward.s.sequences[i].head_always;
    return tern_sampler_create(&lane->sampler, &params, s->work.model->file.spec.config->vocab,
                               err);
}

static size_t n_events(const struct tern_scheduler *s)
{
    return EVENTS_PER_LANE * (size_t)s->params.n_sequences + s->n_places;
}

static tern_status take_memory(struct tern_scheduler *s, struct tern_error *err)
{
    const uint32_t n = s->params.n_sequences;
    s->lanes = tn_alloc_zeroed(n, sizeof *s->lanes);
    s->is_taken = tn_alloc_zeroed(s->n_places, sizeof *s->is_taken);
    s->cancelled = tn_alloc_zeroed(s->n_places, sizeof *s->cancelled);
    s->events = tn_alloc_zeroed(n_events(s), sizeof *s->events);
    s->adjusted = tn_alloc_zeroed(s->work.model->file.spec.config->vocab, sizeof *s->adjusted);
    s->ids = tn_alloc_zeroed(s->params.n_batch, sizeof *s->ids);
    s->spans = tn_alloc_zeroed(n, sizeof *s->spans);
    if (s->lanes && s->is_taken && s->cancelled && s->events && s->adjusted && s->ids && s->spans)
        return tn_ok(err);
    return tn_fail(err, TERN_MEMORY, "no memory for a scheduler of %u sequences", n);
}

/* What take_memory and the samplers hold. */
static uint64_t heap_bytes(const struct tern_scheduler *s)
{
    const uint32_t n = s->params.n_sequences, vocab = s->work.model->file.spec.config->vocab;
    return sizeof *s + n * (sizeof *s->lanes + sizeof *s->spans) +
           n * tern_sampler_bytes(vocab, longest_history(s)) +
           s->n_places * (sizeof *s->is_taken + sizeof *s->cancelled) +
           n_events(s) * sizeof *s->events + vocab * sizeof *s->adjusted +
           s->params.n_batch * sizeof *s->ids;
}

tern_status tern_scheduler_create(struct tern_scheduler **out, struct tern_engine *engine,
                                  const struct tern_model *model,
                                  const struct tern_scheduler_params *params,
                                  struct tern_error *err)
{
    struct tern_scheduler_params defaults;
    *out = NULL;
    tern_scheduler_params_default(&defaults);
    params = params ? params : &defaults;
    tern_status status = check_params(params, model, err);
    if (status != TERN_OK)
        return status;
    struct tern_scheduler *s = tn_alloc_zeroed(1, sizeof *s);
    if (!s)
        return tn_fail(err, TERN_MEMORY, "no memory for a scheduler");
    s->work.model = model;
    s->last = &s->first;
    status = complete_params(s, params, err);
    if (status == TERN_OK)
        status = take_memory(s, err);
    if (status == TERN_OK)
        status = open_workspace(s, engine, err);
    for (uint32_t i = 0; i < params->n_sequences && status == TERN_OK; i++)
        status = open_lane(s, i, err);
    if (status == TERN_OK)
        *out = s;
    else
        tern_scheduler_free(s);
    return status;
}

static void free_requests(struct tn_request *r)
{
    for (struct tn_request *next; r; r = next) {
        next = r->next;
        tn_request_free(r);
    }
}

void tern_scheduler_free(struct tern_scheduler *s)
{
    if (!s)
        return;
    for (uint32_t i = 0; s->lanes && i < s->params.n_sequences; i++) {
        tn_request_free(s->lanes[i].request);
        tern_sampler_free(s->lanes[i].sampler);
    }
    free_requests(s->first);
    free_requests(s->ended);
    tn_workspace_fini(&s->work);
    tn_free(s->lanes);
    tn_free(s->is_taken);
    tn_free(s->cancelled);
    tn_free(s->events);
    tn_free(s->adjusted);
    tn_free(s->ids);
    tn_free(s->spans);
    tn_free(s);
}

uint32_t tern_scheduler_n_ctx(const struct tern_scheduler *s)
{
    return s->params.n_ctx;
}

void tern_scheduler_get_state(const struct tern_scheduler *s, struct tern_scheduler_state *out)
{
    *out = (struct tern_scheduler_state){
        .n_running = s->n_running,
        .n_waiting = s->n_waiting,
        .bytes = heap_bytes(s) + tn_workspace_bytes(&s->work),
        .bytes_full = heap_bytes(s) + tn_workspace_bytes_full(&s->work),
    };
}

/* ---- coming and going ---- */

/* The first place that nobody has; there is one. */
static uint32_t take_place(struct tern_scheduler *s)
{
    uint32_t i = 0;
    while (s->is_taken[i])
        i++;
    s->is_taken[i] = true;
    return i;
}

tern_status tern_scheduler_submit(struct tern_scheduler *s, const struct tern_request *asked,
                                  uint64_t *id, struct tern_error *err)
{
    struct tn_request *r;
    *id = 0;
    if (s->n_running + s->n_waiting == s->n_places)
        return tn_fail(err, TERN_BUSY, "%u requests run and %u wait: no more are taken",
                       s->n_running, s->n_waiting);
    tern_status status = tn_request_check(asked, s->work.model, s->params.n_ctx, err);
    if (status == TERN_OK)
        status = tn_request_create(&r, asked, s->work.model, err);
    if (status != TERN_OK)
        return status;
    /* The place is part of the id, so that one that has ended is recognised. */
    r->id = ++s->n_submitted * s->n_places + take_place(s);
    *s->last = r;
    s->last = &r->next;
    s->n_waiting++;
    *id = r->id;
    return tn_ok(err);
}

void tern_scheduler_cancel(struct tern_scheduler *s, uint64_t request)
{
    _Atomic uint64_t *word = &s->cancelled[request % s->n_places];
    uint64_t newest = atomic_load(word);
    while (newest < request && !atomic_compare_exchange_weak(word, &newest, request))
        ;
}

/* ---- a step ---- */

/* Evaluates the batch; nothing of it is kept when that fails. */
static tern_status evaluate(struct tern_scheduler *s, struct tern_error *err)
{
    const uint64_t start_ns = tn_now_ns();
    const tern_status status = tn_workspace_eval(&s->work, &s->batch, err);
    if (status == TERN_OK && s->has_prompts)
        s->row_s = tn_seconds_since(start_ns) / s->batch.n_rows;
    if (status != TERN_INTERRUPTED || !is_in_vain(s))
        return status;
    tn_end_cancelled(s);
    return TERN_OK;
}

static tern_status run_batch(struct tern_scheduler *s, struct tern_error *err)
{
    tn_make_batch(s);
    if (s->batch.n_rows == 0)
        return TERN_OK;
    const tern_status status = evaluate(s, err);
    for (uint32_t i = 0; i < s->params.n_sequences && status == TERN_OK; i++)
        if (s->lanes[i].n_rows > 0)
            tn_finish_rows(s, &s->lanes[i]);
    return status;
}

tern_status tern_scheduler_step(struct tern_scheduler *s, const struct tern_event **events,
                                size_t *n, bool *is_idle, struct tern_error *err)
{
    free_requests(s->ended);
    s->ended = NULL;
    s->n_events = 0;
    s->n_steps++;
    tn_end_cancelled(s);
    tn_start_waiting(s);
    const tern_status status = run_batch(s, err);
    *events = s->events;
    *n = s->n_events;
    *is_idle = s->n_running + s->n_waiting == 0;
    return status == TERN_OK ? tn_ok(err) : status;
}
