/* SPDX-License-Identifier: MIT
 *
 * The scheduler: a request queue in front of the step engine (steps.h), and its events as a list.
 *
 *   submit -> queue -> lane: prompt in chunks -> token by token -> END
 *
 * Submission allocates the memory of a text, creation all other memory; a step only commits pages
 * of the cache.
 */
#include "tern/scheduler.h"

#include <stdatomic.h>

#include "base/alloc.h"
#include "base/error.h"
#include "engine/session.h"
#include "engine/steps.h"
#include "grammar/token_mask.h"

/* Events of a lane in one step: a prompt chunk, its ids and the first token, the end; or a token,
 * drafts and the end. */
#define EVENTS_PER_LANE (TN_MAX(TN_PROMPT_LOGPROB_ROWS, TERN_MAX_DRAFT) + 4)

/* Besides one per sequence for its last turn: for system texts and the newest prompts. */
#define MORE_CHECKPOINTS 4u

struct tern_scheduler {
    struct tn_steps steps;
    struct tn_workspace work;
    struct tern_scheduler_params params; /* with defaults filled in */
    struct tn_sequence *sequences;       /* [params.n_sequences], one per lane */
    struct tern_sampler **samplers;      /* [params.n_sequences] */
    struct tn_request *first, **last;    /* the queue */
    uint32_t n_waiting;
    struct tn_request *ended;    /* freed at the next step, because events point to them */
    uint32_t n_slots;           /* n_sequences + n_queue */
    bool *is_taken;              /* [n_slots] */
    _Atomic uint64_t *cancelled; /* [n_slots] the newest cancelled id of each slot */
    uint64_t n_submitted;
    struct tn_token_list *tokens; /* created for the first request with a grammar */
    struct tern_event *events;
    size_t n_events;
};

void tern_scheduler_params_default(struct tern_scheduler_params *out,
                                   const struct tern_model *model)
{
    *out = (struct tern_scheduler_params){
        .n_sequences = 4, .n_queue = 64, .kv = tern_model_config(model)->kv};
}

/* ---- cancelling ---- */

static bool is_cancelled(const struct tern_scheduler *s, const struct tn_request *r)
{
    return s->cancelled[r->id % s->n_slots] == r->id;
}

void tern_scheduler_cancel(struct tern_scheduler *s, uint64_t request)
{
    _Atomic uint64_t *word = &s->cancelled[request % s->n_slots];
    uint64_t newest = atomic_load(word);
    while (newest < request && !atomic_compare_exchange_weak(word, &newest, request))
        ;
}

/* Has every request in the batch been cancelled?  An empty batch has none: draft heads run before
 * the rows of their answers are added. */
static bool is_batch_cancelled(const struct tern_scheduler *s)
{
    for (uint32_t i = 0; i < s->steps.n_lanes; i++)
        if (s->steps.lanes[i].n_rows > 0 && !is_cancelled(s, s->steps.lanes[i].request))
            return false;
    return s->steps.batch.n_rows > 0;
}

/* Ends all cancelled requests, queued or running. */
static void end_cancelled(struct tern_scheduler *s)
{
    for (uint32_t i = 0; i < s->steps.n_lanes; i++) {
        struct tn_lane *lane = &s->steps.lanes[i];
        if (lane->request && is_cancelled(s, lane->request))
            tn_end_lane(&s->steps, lane, TERN_STOP_INTERRUPT, NULL);
    }
    struct tn_request **at = &s->first;
    for (struct tn_request *r; (r = *at) != NULL;) {
        if (!is_cancelled(s, r)) {
            at = &r->next;
            continue;
        }
        *at = r->next;
        s->n_waiting--;
        tn_end_request(&s->steps, r, TERN_STOP_INTERRUPT, NULL);
    }
    s->last = at;
}

/* ---- events ---- */

static bool on_event(void *arg, struct tn_request *r, const struct tern_event *event)
{
    struct tern_scheduler *s = arg;
    s->events[s->n_events++] = *event;
    if (event->kind == TERN_EVENT_END) {
        s->is_taken[r->id % s->n_slots] = false;
        r->next = s->ended;
        s->ended = r;
    }
    return true;
}

/* ---- creation ---- */

static_assert(TERN_SCHEDULER_MAX_SEQUENCES <= TN_CHECKPOINT_SEQUENCES, "a bit for each");

static tern_status check_params(const struct tern_scheduler_params *p,
                                const struct tern_model *model, struct tern_error *err)
{
    if (p->n_sequences == 0 || p->n_sequences > TERN_SCHEDULER_MAX_SEQUENCES)
        return tn_fail(err, TERN_USAGE, "%u sequences: 1 to %d can run at the same time",
                       p->n_sequences, TERN_SCHEDULER_MAX_SEQUENCES);
    if (p->n_queue > TERN_SCHEDULER_MAX_QUEUE)
        return tn_fail(err, TERN_USAGE, "a queue of %u: at most %d requests can wait", p->n_queue,
                       TERN_SCHEDULER_MAX_QUEUE);
    return tn_check_head(model, err);
}

/* Fills in defaults.  A batch has room for at least one row per sequence. */
static tern_status complete_params(struct tern_scheduler *s, const struct tern_scheduler_params *p,
                                   struct tern_error *err)
{
    const struct tern_session_params sp = {.n_ctx = p->n_ctx, .n_batch = p->n_batch, .kv = p->kv,
                                           .n_checkpoints = p->n_checkpoints};
    const struct tern_file_config *c = s->work.model->file.spec.config;
    s->params = *p;
    s->params.n_ctx = p->n_ctx ? p->n_ctx : c->context;
    s->params.n_batch = p->n_batch ? p->n_batch : TN_MIN(TN_DEFAULT_BATCH, s->params.n_ctx);
    s->params.n_batch = TN_MAX(s->params.n_batch, p->n_sequences);
    s->params.n_checkpoints =
        p->n_checkpoints ? p->n_checkpoints
                         : TN_MIN(p->n_sequences + MORE_CHECKPOINTS, TN_MAX_CHECKPOINTS);
    s->n_slots = p->n_sequences + p->n_queue;
    return tn_session_check_params(&sp, c, err);
}

static bool should_stop(void *arg)
{
    const struct tern_scheduler *s = arg;
    return (s->params.should_stop && s->params.should_stop(s->params.arg)) || is_batch_cancelled(s);
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
                                               .n_checkpoints = s->params.n_checkpoints,
                                               .has_drafts = !s->params.no_draft_head,
                                               .kv = s->params.kv,
                                               .drop_pages = s->params.drop_pages,
                                               .may_grow = s->params.may_grow ? may_grow : NULL,
                                               .should_stop = should_stop,
                                               .arg = s};
    return tn_workspace_init(&s->work, engine, s->work.model, &params, err);
}

/* Ids of the longest history: all positions, and a last id without one. */
static uint32_t longest_history(const struct tern_scheduler *s)
{
    return TN_MIN(s->params.n_ctx + 1, TERN_MAX_CONTEXT);
}

static tern_status open_lane(struct tern_scheduler *s, uint32_t i, struct tern_error *err)
{
    struct tern_sampler_params params;
    tern_sampler_params_default(&params);
    params.penalty_last = longest_history(s);
    s->sequences[i] = tn_workspace_sequence(&s->work, i);
    s->steps.lanes[i].sequence = &s->sequences[i];
    s->steps.lanes[i].head_always = s->work.forward.s.sequences[i].head_always;
    s->steps.lanes[i].draft_blocks = s->work.forward.s.sequences[i].draft_blocks;
    return tern_sampler_create(&s->samplers[i], &params, s->work.model->file.spec.config->vocab,
                               err);
}

static size_t n_events(const struct tern_scheduler *s)
{
    return EVENTS_PER_LANE * (size_t)s->params.n_sequences + s->n_slots;
}

static tern_status take_memory(struct tern_scheduler *s, struct tern_error *err)
{
    struct tn_steps *steps = &s->steps;
    const uint32_t n = s->params.n_sequences;
    *steps = (struct tn_steps){.work = &s->work, .n_lanes = n, .n_ctx = s->params.n_ctx,
                               .on_event = on_event, .arg = s};
    steps->lanes = tn_alloc_zeroed(n, sizeof *steps->lanes);
    steps->adjusted =
        tn_alloc_zeroed(s->work.model->file.spec.config->vocab, sizeof *steps->adjusted);
    steps->ids = tn_alloc_zeroed(s->params.n_batch, sizeof *steps->ids);
    steps->spans = tn_alloc_zeroed(n, sizeof *steps->spans);
    s->sequences = tn_alloc_zeroed(n, sizeof *s->sequences);
    s->samplers = tn_alloc_zeroed(n, sizeof *s->samplers);
    s->is_taken = tn_alloc_zeroed(s->n_slots, sizeof *s->is_taken);
    s->cancelled = tn_alloc_zeroed(s->n_slots, sizeof *s->cancelled);
    s->events = tn_alloc_zeroed(n_events(s), sizeof *s->events);
    if (steps->lanes && steps->adjusted && steps->ids && steps->spans && s->sequences &&
        s->samplers && s->is_taken && s->cancelled && s->events)
        return tn_ok(err);
    return tn_fail(err, TERN_MEMORY, "no memory for a scheduler of %u sequences", n);
}

/* Heap memory of take_memory and the samplers. */
static uint64_t heap_bytes(const struct tern_scheduler *s)
{
    const struct tn_steps *steps = &s->steps;
    const uint32_t n = s->params.n_sequences, vocab = tn_steps_vocab(steps);
    return sizeof *s +
           n * (sizeof *steps->lanes + sizeof *steps->spans + sizeof *s->sequences +
                sizeof *s->samplers + tern_sampler_bytes(vocab, longest_history(s))) +
           s->n_slots * (sizeof *s->is_taken + sizeof *s->cancelled + tn_matcher_bytes(0)) +
           n_events(s) * sizeof *s->events + vocab * sizeof *steps->adjusted +
           s->params.n_batch * sizeof *steps->ids +
           (s->tokens ? tn_token_list_bytes(s->tokens) : 0);
}

tern_status tern_scheduler_create(struct tern_scheduler **out, struct tern_engine *engine,
                                  const struct tern_model *model,
                                  const struct tern_scheduler_params *params,
                                  struct tern_error *err)
{
    struct tern_scheduler_params defaults;
    *out = NULL;
    tern_scheduler_params_default(&defaults, model);
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
    for (uint32_t i = 0; s->steps.lanes && i < s->params.n_sequences; i++)
        tn_request_free(s->steps.lanes[i].request);
    for (uint32_t i = 0; s->samplers && i < s->params.n_sequences; i++)
        tern_sampler_free(s->samplers[i]);
    free_requests(s->first);
    free_requests(s->ended);
    tn_workspace_fini(&s->work);
    tn_token_list_free(s->tokens);
    tn_free(s->steps.lanes);
    tn_free(s->steps.adjusted);
    tn_free(s->steps.ids);
    tn_free(s->steps.spans);
    tn_free(s->sequences);
    tn_free(s->samplers);
    tn_free(s->is_taken);
    tn_free(s->cancelled);
    tn_free(s->events);
    tn_free(s);
}

uint32_t tern_scheduler_n_ctx(const struct tern_scheduler *s)
{
    return s->params.n_ctx;
}

void tern_scheduler_get_state(const struct tern_scheduler *s, struct tern_scheduler_state *out)
{
    *out = (struct tern_scheduler_state){
        .n_running = s->steps.n_running,
        .n_waiting = s->n_waiting,
        .bytes = heap_bytes(s) + tn_workspace_bytes(&s->work),
        .bytes_full = heap_bytes(s) + tn_workspace_bytes_full(&s->work),
    };
}

/* ---- submission ---- */

/* The first free slot; there must be one. */
static uint32_t take_slot(struct tern_scheduler *s)
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
    if (s->steps.n_running + s->n_waiting == s->n_slots)
        return tn_fail(err, TERN_BUSY, "%u requests run and %u wait: no more are taken",
                       s->steps.n_running, s->n_waiting);
    tern_status status = tn_sampler_check(&asked->sampler, err);
    if (status == TERN_OK)
        status = tn_request_check(asked, s->work.model, s->params.n_ctx, err);
    if (status == TERN_OK)
        status = tn_request_create(&r, asked, s->work.model, s->params.n_ctx, err);
    if (status != TERN_OK)
        return status;
    status = tn_request_bind(r, s->work.model, &s->tokens, err);
    if (status != TERN_OK) {
        tn_request_free(r);
        return status;
    }
    /* The id contains the slot, so that a stale id is recognised. */
    r->id = ++s->n_submitted * s->n_slots + take_slot(s);
    *s->last = r;
    s->last = &r->next;
    s->n_waiting++;
    *id = r->id;
    return tn_ok(err);
}

/* Moves requests from the queue to free lanes. */
static void start_waiting(struct tern_scheduler *s)
{
    while (s->first) {
        struct tn_request *r = s->first;
        struct tn_lane *lane = tn_prepare_lane(&s->steps, &r->asked);
        if (!lane)
            return;
        s->first = r->next;
        s->last = s->first ? s->last : &s->first;
        r->next = NULL;
        s->n_waiting--;
        r->generation.sampler = s->samplers[lane - s->steps.lanes];
        tn_sampler_configure(r->generation.sampler, &r->asked.sampler);
        tn_start_lane(&s->steps, lane, r);
    }
}

/* ---- steps ---- */

tern_status tern_scheduler_step(struct tern_scheduler *s, const struct tern_event **events,
                                size_t *n, bool *is_idle, struct tern_error *err)
{
    free_requests(s->ended);
    s->ended = NULL;
    s->n_events = 0;
    end_cancelled(s);
    start_waiting(s);
    tern_status status = tn_steps_run(&s->steps, err);
    if (status == TERN_INTERRUPTED && is_batch_cancelled(s)) {
        end_cancelled(s);
        status = TERN_OK;
    }
    *events = s->events;
    *n = s->n_events;
    *is_idle = s->steps.n_running + s->n_waiting == 0;
    return status == TERN_OK ? tn_ok(err) : status;
}
