/* SPDX-License-Identifier: MIT
 *
 * Passes work from the loop thread to a worker thread: the engine thread, which computes, or one of
 * those that read requests.
 *
 *   loop                                          worker
 *   tn_work_submit    ->  inbox of jobs       ->  tern_scheduler_submit, _step, _step, ...
 *   tn_work_run_item  ->  inbox of items      ->  a slice of one, a step of all jobs, a slice, ...
 *   tn_work_take      <-  outbox of messages  <-  text, log-probabilities, the end
 *
 * The worker uses a job or item from its submission to its last message; meanwhile the loop may
 * only cancel it.  Neither thread waits for the other while it has work.
 */
#ifndef TN_WORK_H
#define TN_WORK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/scheduler.h"

struct tn_job;

/* A message of the worker.  Free with tn_free, except an end, which is embedded in its job or item.
 */
struct tn_message {
    struct tn_message *next;
    struct tn_job *job;
    struct tn_work_item *item; /* the item has ended; NULL: about a job */
    enum tern_event_kind kind;
    uint32_t id;
    const char *text;
    size_t n_text;
    const struct tern_token_logprob *logprobs;
    uint32_t n_logprobs;
    uint32_t n_done, n_total;
};

/* Added to a logit before each choice. */
struct tn_bias {
    uint32_t id;
    float bias;
};

struct tn_job {
    uint32_t i_model;
    struct tern_request request; /* `adjust` and `arg` are set by work.c */
    const struct tn_bias *biases;
    uint32_t n_biases;
    void *owner;       /* for the loop thread */
    uint32_t i_choice; /* for the loop thread */

    /* Valid when the message with kind TERN_EVENT_END is taken: */
    struct tern_generate_result result;
    tern_status status;
    struct tern_error error;

    /* private */
    struct tn_job *next;
    struct tn_message end;
    _Atomic uint64_t scheduler_id;
    _Atomic bool is_cancelled;
    bool is_short; /* a message was lost: out of memory */
};

enum tn_slice {
    TN_SLICE_LAST,   /* the item is finished */
    TN_SLICE_YIELDS, /* other items may run first */
    TN_SLICE_STAYS,  /* it holds a resource that others need, so it continues next */
};

/* A work item: anything else that takes long or needs the engine, such as encoding or embedding a
 * text.  The worker alternates between a step of the jobs and a slice of one item, so an item of
 * any length delays an answer's next token by one slice only. */
struct tn_work_item {
    enum tn_slice (*run)(void *owner); /* worker: runs one slice */
    void (*done)(void *owner); /* loop thread, after the last slice or a cancellation */
    void *owner;
    bool is_long; /* has many slices; short items run before it */

    /* private */
    struct tn_work_item *next;
    struct tn_message end;
    _Atomic bool is_cancelled;
};

struct tn_work;

/* Schedulers must outlive the work.  Starts no threads. */
tern_status tn_work_create(struct tn_work **out, struct tern_scheduler *const *schedulers,
                           uint32_t n_schedulers, struct tern_error *err);
void tn_work_free(struct tn_work *work);

/* ---- loop thread ---- */

void tn_work_submit(struct tn_work *work, struct tn_job *job);
/* Its end arrives within one step. */
void tn_work_cancel(struct tn_work *work, struct tn_job *job);
void tn_work_run_item(struct tn_work *work, struct tn_work_item *item);
/* It ends after the current slice. */
void tn_work_cancel_item(struct tn_work_item *item);
/* Any thread; for long slices. */
bool tn_work_item_is_cancelled(const struct tn_work_item *item);
/* Takes all messages since the last call, oldest first; NULL: none. */
struct tn_message *tn_work_take(struct tn_work *work);

/* ---- worker thread ---- */

/* Computes until tn_work_stop.  Calls `wake` when there are messages.  TERN_MAPPED_IO: a model's
 * file has changed; all of its jobs have ended with that error. */
tern_status tn_work_run(struct tn_work *work, void (*wake)(void), struct tern_error *err);

/* ---- any thread ---- */

/* Jobs in progress get no further messages. */
void tn_work_stop(struct tn_work *work);

#endif
