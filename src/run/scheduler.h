/* SPDX-License-Identifier: MIT
 *
 * The insides of a scheduler, for the files that make it:
 *
 *   scheduler.c  creation, submission, a step as a whole
 *   rows.c       the batch of a step
 *   tokens.c     what becomes of its logits
 *   lanes.c      which request runs in which lane, and what of the cache it takes over
 *   events.c     events, and how requests end
 */
#ifndef TN_SCHEDULER_H
#define TN_SCHEDULER_H

#include "run/request.h"
#include "run/workspace.h"
#include "tern/scheduler.h"

struct tn_lane {
    struct tn_sequence sequence; /* of the last request, while there is none */
    struct tern_sampler *sampler;
    uint32_t *head_always;      /* [TN_HEAD_MAX_ALWAYS] */
    struct tn_request *request; /* NULL: free */
    bool is_decoding;           /* next_id was chosen and is to be evaluated; else the prompt is */
    uint32_t next_id;
    uint64_t last_step; /* in which it was used */
    /* In the batch in work: */
    uint32_t n_rows;         /* 0: none */
    uint32_t row;            /* the first */
    const float *logits;     /* [vocab] of its last row; NULL: not wanted */
    const float *all_logits; /* [n_rows][vocab]; NULL: not wanted */
};

struct tern_scheduler {
    struct tn_workspace work;
    struct tern_scheduler_params params; /* what was 0 is filled in */
    struct tn_lane *lanes;               /* [params.n_sequences] */
    uint32_t n_running;
    struct tn_request *first, **last; /* the queue */
    uint32_t n_waiting;
    struct tn_request *ended;    /* freed at the next step: events point to them */
    uint32_t n_places;           /* n_sequences + n_queue */
    bool *is_taken;              /* [n_places] */
    _Atomic uint64_t *cancelled; /* [n_places] the newest id of the place that was cancelled */
    uint64_t n_submitted, n_steps;
    struct tern_event *events;
    size_t n_events;
    float *adjusted;    /* [vocab] a copy of logits */
    uint32_t i_prefill; /* the lane whose prompt came first in the last batch with one */
    double row_s;       /* seconds for each row of it; 0: not known */
    /* The batch in work. */
    uint32_t *ids;         /* [n_batch] */
    struct tn_span *spans; /* [n_sequences] */
    struct tn_batch batch;
    bool has_prompts;
};

/* ---- events.c ---- */

bool tn_is_cancelled(const struct tern_scheduler *s, const struct tn_request *r);
struct tern_event *tn_add_event(struct tern_scheduler *s, enum tern_event_kind kind,
                                const struct tn_request *r);
/* The request of a lane has ended; `why` is NULL or what went wrong. */
void tn_end_lane(struct tern_scheduler *s, struct tn_lane *lane, enum tern_stop stop,
                 const struct tern_error *why);
/* Ends what was cancelled, wherever it is. */
void tn_end_cancelled(struct tern_scheduler *s);

/* ---- lanes.c ---- */

/* Starts requests from the queue while there are free lanes. */
void tn_start_waiting(struct tern_scheduler *s);
/* Takes over from another lane what that has evaluated of this lane's prompt meanwhile. */
void tn_take_over(struct tern_scheduler *s, struct tn_lane *lane);
/* Makes room for n rows more; what ended requests left in the cache goes where memory is short.
 * False when there is not enough. */
bool tn_grow(struct tern_scheduler *s, struct tn_lane *lane, uint32_t n);

/* ---- rows.c ---- */

/* Makes s->batch: a row of every answer that is being written, and parts of prompts. Who finds no
 * memory ends. */
void tn_make_batch(struct tern_scheduler *s);

/* ---- tokens.c ---- */

/* What the logits of a lane's rows give: events, and the next id. */
void tn_finish_rows(struct tern_scheduler *s, struct tn_lane *lane);

#endif
