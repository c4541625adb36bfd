/* SPDX-License-Identifier: MIT
 *
 * Between the loop's thread, which talks to clients, and the engine's thread, which computes.
 *
 *   loop                                          engine
 *   tn_work_submit  ->  inbox of jobs         ->  tern_scheduler_submit, _step, _step, ...
 *   tn_work_run_errand  -> inbox of errands   ->  a part of one, a step of all jobs, a part, ...
 *   tn_work_take    <-  outbox of messages    <-  text, log-probabilities, the end
 *
 * A job or an errand belongs to the loop, but between its submit and its last message the engine's
 * thread uses it; the loop may only cancel it then.  No thread waits for the other while it has
 * work.
 */
#ifndef TN_WORK_H
#define TN_WORK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/scheduler.h"

struct tn_job;

/* What the engine says; tn_free, but for an end, which is part of its job or errand. */
struct tn_message {
    struct tn_message *next;
    struct tn_job *job;
    struct tn_errand *errand; /* it has ended; NULL: this is about a job */
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
    struct tern_request request; /* `adjust` and `arg` are work.c's */
    const struct tn_bias *biases;
    uint32_t n_biases;
    void *owner;                      /* the loop's */
    uint32_t i_choice;                /* the loop's */

    /* At the end, when the message with kind TERN_EVENT_END is taken: */
    struct tern_generate_result result;
    tern_status status;
    struct tern_error error;

    /* private */
    struct tn_job *next;
    struct tn_message end;
    _Atomic uint64_t scheduler_id;
    _Atomic bool is_cancelled;
    bool is_short; /* a message was lost: no memory */
};

enum tn_part {
    TN_PART_LAST,  /* the errand has ended */
    TN_PART_YIELDS, /* other errands may have a part first */
    TN_PART_STAYS, /* it holds something that others would use too */
};

/* What else the thread does, because it takes long or needs the engine: ids of a text, a vector.
 * Between two steps of the jobs a part of one errand is done, so that an errand of any
 * length delays an answer's next token by one part. */
struct tn_errand {
    enum tn_part (*run)(void *owner); /* engine's thread: does a part */
    void (*done)(void *owner); /* loop's thread, behind the last part or behind a cancel */
    void *owner;
    bool is_long; /* has many parts: those that have one are not kept waiting by it */

    /* private */
    struct tn_errand *next;
    struct tn_message end;
    _Atomic bool is_cancelled;
};

struct tn_work;

/* Schedulers outlive the work.  Their threads and those of the engine are not started here. */
tern_status tn_work_create(struct tn_work **out, struct tern_scheduler *const *schedulers,
                           uint32_t n_schedulers, struct tern_error *err);
void tn_work_free(struct tn_work *work);

/* ---- the loop's thread ---- */

void tn_work_submit(struct tn_work *work, struct tn_job *job);
/* Its end comes within a token or a part of its prompt. */
void tn_work_cancel(struct tn_work *work, struct tn_job *job);
void tn_work_run_errand(struct tn_work *work, struct tn_errand *errand);
/* It has no more parts than the one that runs. */
void tn_work_cancel_errand(struct tn_errand *errand);
/* Any thread: a part that takes long looks. */
bool tn_work_errand_is_cancelled(const struct tn_errand *errand);
/* All messages since the last call, oldest first; NULL: none. */
struct tn_message *tn_work_take(struct tn_work *work);

/* ---- the engine's thread ---- */

/* Computes until tn_work_stop.  `wake` is called when there are messages.  TERN_MAPPED_IO: a
 * model's file has changed; all jobs have ended with that. */
tern_status tn_work_run(struct tn_work *work, void (*wake)(void), struct tern_error *err);

/* ---- any thread ---- */

/* Jobs that have not ended get no more messages. */
void tn_work_stop(struct tn_work *work);

#endif
