/* SPDX-License-Identifier: MIT
 *
 * The mailboxes between the loop thread and a worker thread, and the worker's loop.
 *
 * The engine thread, the reader and the parser are workers; only the engine thread has schedulers.
 */
#include "server/work.h"

#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/error.h"
#include "plat/lock.h"
#include "plat/plat.h"

struct run_queue { /* a scheduler and its jobs */
    struct tern_scheduler *scheduler;
    struct tn_job *jobs;
};

/* Work items in order of arrival. */
struct queue {
    struct tn_work_item *first, **end;
};

struct tn_work {
    struct tn_lock lock;
    struct tn_job *inbox, **inbox_end;       /* locked */
    struct queue items;                      /* locked: submitted since the worker last looked */
    struct tn_message *outbox, **outbox_end; /* locked */
    struct queue queues[2]; /* worker: short items, long items */
    _Atomic uint32_t n_signals; /* the worker sleeps on this */
    _Atomic bool is_stopping;
    bool has_posted; /* worker: messages were posted since the last wake */
    uint32_t n_run_queues;
    struct run_queue run_queues[];
};

static void queue_init(struct queue *queue)
{
    queue->first = NULL;
    queue->end = &queue->first;
}

static void queue_add(struct queue *queue, struct tn_work_item *item)
{
    item->next = NULL;
    *queue->end = item;
    queue->end = &item->next;
}

static struct tn_work_item *queue_take(struct queue *queue)
{
    struct tn_work_item *item = queue->first;
    if (item && !item->next)
        queue_init(queue);
    else if (item)
        queue->first = item->next;
    return item;
}

tern_status tn_work_create(struct tn_work **out, struct tern_scheduler *const *schedulers,
                           uint32_t n_schedulers, struct tern_error *err)
{
    struct tn_work *work =
        tn_alloc_zeroed(1, sizeof *work + n_schedulers * sizeof *work->run_queues);
    *out = work;
    if (!work)
        return tn_fail(err, TERN_MEMORY, "no memory for the server's work");
    work->n_run_queues = n_schedulers;
    for (uint32_t i = 0; i < n_schedulers; i++)
        work->run_queues[i].scheduler = schedulers[i];
    work->inbox_end = &work->inbox;
    work->outbox_end = &work->outbox;
    queue_init(&work->items);
    for (size_t i = 0; i < TN_COUNT_OF(work->queues); i++)
        queue_init(&work->queues[i]);
    return tn_ok(err);
}

void tn_work_free(struct tn_work *work)
{
    if (!work)
        return;
    for (struct tn_message *m = work->outbox, *next; m; m = next) {
        next = m->next;
        if (m->kind != TERN_EVENT_END && !m->item)
            tn_free(m);
    }
    tn_free(work);
}

static void signal_worker(struct tn_work *work)
{
    atomic_fetch_add(&work->n_signals, 1);
    tn_wake_all(&work->n_signals);
}

/* ---- loop thread ---- */

void tn_work_submit(struct tn_work *work, struct tn_job *job)
{
    job->next = NULL;
    tn_lock_take(&work->lock);
    *work->inbox_end = job;
    work->inbox_end = &job->next;
    tn_lock_release(&work->lock);
    signal_worker(work);
}

/* Either the worker sees the flag when it submits the job, or the scheduler's id is set already. */
void tn_work_cancel(struct tn_work *work, struct tn_job *job)
{
    atomic_store(&job->is_cancelled, true);
    uint64_t id = atomic_load(&job->scheduler_id);
    if (id)
        tern_scheduler_cancel(work->run_queues[job->i_model].scheduler, id);
    signal_worker(work);
}

void tn_work_run_item(struct tn_work *work, struct tn_work_item *item)
{
    tn_lock_take(&work->lock);
    queue_add(&work->items, item);
    tn_lock_release(&work->lock);
    signal_worker(work);
}

void tn_work_cancel_item(struct tn_work_item *item)
{
    atomic_store(&item->is_cancelled, true);
}

bool tn_work_item_is_cancelled(const struct tn_work_item *item)
{
    return atomic_load(&item->is_cancelled);
}

struct tn_message *tn_work_take(struct tn_work *work)
{
    tn_lock_take(&work->lock);
    struct tn_message *first = work->outbox;
    work->outbox = NULL;
    work->outbox_end = &work->outbox;
    tn_lock_release(&work->lock);
    return first;
}

void tn_work_stop(struct tn_work *work)
{
    atomic_store(&work->is_stopping, true);
    signal_worker(work);
}

/* ---- messages ---- */

static void post(struct tn_work *work, struct tn_message *m)
{
    m->next = NULL;
    tn_lock_take(&work->lock);
    *work->outbox_end = m;
    work->outbox_end = &m->next;
    tn_lock_release(&work->lock);
    work->has_posted = true;
}

/* Copies an event and the data it points to into one block. */
static struct tn_message *copy_event(const struct tern_event *e, struct tn_job *job)
{
    size_t n_logprob_bytes = e->n_logprobs * sizeof *e->logprobs;
    struct tn_message *m = tn_alloc(sizeof *m + n_logprob_bytes + e->n_text);
    if (!m)
        return NULL;
    char *logprobs = (char *)(m + 1), *text = logprobs + n_logprob_bytes;
    if (n_logprob_bytes)
        memcpy(logprobs, e->logprobs, n_logprob_bytes);
    if (e->n_text)
        memcpy(text, e->text, e->n_text);
    *m = (struct tn_message){.job = job, .kind = e->kind, .id = e->id,
                             .text = text, .n_text = e->n_text,
                             .logprobs = (const struct tern_token_logprob *)(void *)logprobs,
                             .n_logprobs = e->n_logprobs,
                             .n_done = e->n_done, .n_total = e->n_total};
    return m;
}

static void post_event(struct tn_work *work, const struct tern_event *e, struct tn_job *job)
{
    struct tn_message *m = job->is_short ? NULL : copy_event(e, job);
    if (m) {
        post(work, m);
    } else if (!job->is_short) { /* an answer with a gap is worse than none */
        job->is_short = true;
        tern_scheduler_cancel(work->run_queues[job->i_model].scheduler, e->request);
    }
}

static void post_end(struct tn_work *work, struct tn_job *job)
{
    if (job->is_short)
        job->status = tn_fail(&job->error, TERN_MEMORY, "no memory for the answer");
    job->end = (struct tn_message){.job = job, .kind = TERN_EVENT_END};
    post(work, &job->end); /* the job belongs to the loop thread again */
}

/* ---- jobs ---- */

static void adjust(void *arg, float *logits, uint32_t n_vocab)
{
    struct tn_job *job = arg;
    for (uint32_t i = 0; i < job->n_biases; i++)
        if (job->biases[i].id < n_vocab)
            logits[job->biases[i].id] += job->biases[i].bias;
}

static void start(struct tn_work *work, struct tn_job *job)
{
    struct run_queue *run_queue = &work->run_queues[job->i_model];
    uint64_t id = 0;
    if (job->n_biases > 0)
        job->request.adjust = adjust;
    job->request.arg = job;
    if (atomic_load(&job->is_cancelled)) {
        job->result.stop = TERN_STOP_INTERRUPT;
        post_end(work, job);
        return;
    }
    job->status = tern_scheduler_submit(run_queue->scheduler, &job->request, &id, &job->error);
    if (job->status != TERN_OK) {
        post_end(work, job);
        return;
    }
    job->next = run_queue->jobs;
    run_queue->jobs = job;
    atomic_store(&job->scheduler_id, id);
    if (atomic_load(&job->is_cancelled))
        tern_scheduler_cancel(run_queue->scheduler, id);
}

static void remove_job(struct run_queue *run_queue, const struct tn_job *job)
{
    for (struct tn_job **p = &run_queue->jobs; *p; p = &(*p)->next)
        if (*p == job) {
            *p = job->next;
            return;
        }
}

static void take_event(struct tn_work *work, struct run_queue *run_queue,
                       const struct tern_event *e)
{
    struct tn_job *job = e->arg;
    if (e->kind != TERN_EVENT_END) {
        post_event(work, e, job);
        return;
    }
    if (e->n_text > 0) {
        struct tern_event rest = *e;
        rest.kind = TERN_EVENT_TOKEN;
        rest.id = TERN_NO_ID;
        rest.n_logprobs = 0;
        post_event(work, &rest, job);
    }
    job->result = e->result;
    job->status = e->status;
    job->error = e->error;
    remove_job(run_queue, job);
    post_end(work, job);
}

/* Ends all jobs of a scheduler with this error. */
static void fail_all(struct tn_work *work, struct run_queue *run_queue,
                     const struct tern_error *why)
{
    while (run_queue->jobs) {
        struct tn_job *job = run_queue->jobs;
        run_queue->jobs = job->next;
        job->status = why->status;
        job->error = *why;
        post_end(work, job);
    }
}

static tern_status step(struct tn_work *work, struct run_queue *run_queue, struct tern_error *err)
{
    const struct tern_event *events;
    size_t n_events;
    bool is_idle;
    tern_status status =
        tern_scheduler_step(run_queue->scheduler, &events, &n_events, &is_idle, err);
    for (size_t i = 0; i < n_events; i++)
        take_event(work, run_queue, &events[i]);
    if (status == TERN_INTERRUPTED)
        return tn_ok(err);
    if (status != TERN_OK)
        fail_all(work, run_queue, err);
    return status;
}

/* ---- work items ---- */

/* Runs one slice of the first item. */
static void run_slice(struct tn_work *work, struct queue *queue)
{
    struct tn_work_item *item = queue->first;
    if (!item)
        return;
    const enum tn_slice slice =
        tn_work_item_is_cancelled(item) ? TN_SLICE_LAST : item->run(item->owner);
    if (slice == TN_SLICE_STAYS)
        return;
    (void)queue_take(queue);
    if (slice == TN_SLICE_YIELDS) {
        queue_add(queue, item);
        return;
    }
    item->end = (struct tn_message){.item = item};
    post(work, &item->end); /* the item belongs to the loop thread again */
}

static void run_slices(struct tn_work *work)
{
    for (size_t i = 0; i < TN_COUNT_OF(work->queues); i++)
        run_slice(work, &work->queues[i]);
}

/* ---- worker thread ---- */

static void take_inbox(struct tn_work *work)
{
    struct tn_work_item *item;
    tn_lock_take(&work->lock);
    struct tn_job *job = work->inbox;
    work->inbox = NULL;
    work->inbox_end = &work->inbox;
    while ((item = queue_take(&work->items)) != NULL)
        queue_add(&work->queues[item->is_long], item);
    tn_lock_release(&work->lock);
    while (job) {
        struct tn_job *next = job->next;
        start(work, job);
        job = next;
    }
}

static bool has_work(const struct tn_work *work)
{
    for (size_t i = 0; i < TN_COUNT_OF(work->queues); i++)
        if (work->queues[i].first)
            return true;
    for (uint32_t i = 0; i < work->n_run_queues; i++)
        if (work->run_queues[i].jobs)
            return true;
    return false;
}

static tern_status step_all(struct tn_work *work, struct tern_error *err)
{
    tern_status status = TERN_OK;
    for (uint32_t i = 0; i < work->n_run_queues && status == TERN_OK; i++)
        if (work->run_queues[i].jobs)
            status = step(work, &work->run_queues[i], err);
    return status;
}

tern_status tn_work_run(struct tn_work *work, void (*wake)(void), struct tern_error *err)
{
    tern_status status = tn_ok(err);
    while (status == TERN_OK && !atomic_load(&work->is_stopping)) {
        uint32_t seen = atomic_load(&work->n_signals);
        take_inbox(work);
        run_slices(work);
        status = step_all(work, err);
        if (work->has_posted)
            wake();
        work->has_posted = false;
        if (status == TERN_OK && !has_work(work) && !atomic_load(&work->is_stopping))
            tn_wait_on(&work->n_signals, seen, 0);
    }
    return status;
}
