/* SPDX-License-Identifier: MIT
 *
 * The engine of steps, which tern_generate and the scheduler are fronts of.
 *
 *   front:  a request gets a lane (tn_prepare_lane, tn_start_lane)
 *   step:   rows of all lanes -> one evaluation -> their next tokens -> events -> front
 *
 * A front with one lane writes one answer; with several, answers are written side by side and
 * prompts are read in parts between them.  What a request gets does not depend on the others.
 *
 *   steps.c   a step as a whole
 *   rows.c    the batch of a step
 *   tokens.c  the choice of an id from its logits
 *   draft_check.c, prompt_rows.c   what becomes of rows of answers and of prompts
 *   lanes.c   which request runs in which lane, and what of the cache it takes over
 *   events.c  events, and how requests end
 *
 * Nothing here allocates.
 */
#ifndef TN_STEPS_H
#define TN_STEPS_H

#include "engine/request.h"
#include "engine/workspace.h"
#include "tern/plan.h"

struct tn_lane {
    struct tn_sequence *sequence; /* of the last request, while there is none */
    uint32_t *head_always;        /* [TN_HEAD_MAX_ALWAYS] */
    struct tn_request *request;   /* NULL: free */
    bool is_decoding; /* next_id was chosen and is to be evaluated; else the prompt is */
    uint32_t next_id;
    /* Positions whose rows have had their say.  More than the sequence has where it could not go
     * back to just there: rows up to here are computed again, without events. */
    uint32_t n_text;
    uint64_t last_step; /* in which it was used */
    /* In the batch in work: */
    uint32_t n_rows;     /* 0: none */
    uint32_t row;        /* the first */
    uint32_t n_ids;      /* that were chosen from it */
    bool is_again;       /* they were computed before */
    uint32_t first_wanted;    /* of its rows, the first with logits; all behind have them too */
    struct tn_head_need need; /* of each of them */
    const float *logits;      /* [n_rows - first_wanted][vocab]; NULL: not wanted */
    /* [vocab] of position n_past - 1, in the memory of the workspace; NULL: not there */
    const float *last_logits;
};

struct tn_steps {
    /* set by the front */
    struct tn_workspace *work;
    struct tn_lane *lanes; /* [n_lanes] */
    uint32_t n_lanes;
    uint32_t n_ctx;                 /* positions of a sequence */
    uint32_t *ids;                  /* [n_batch of the workspace] */
    struct tn_span *spans;          /* [n_lanes] */
    float *adjusted;                /* [vocab] room for adjusted logits; NULL: nobody adjusts */
    struct tern_steering *steering; /* may be NULL */
    /* Takes an event; what it points to lasts until the next step.  False: the request ends. */
    bool (*on_event)(void *arg, struct tn_request *request, const struct tern_event *event);
    void *arg;
    /* private */
    uint32_t n_running;
    uint64_t n_steps;
    uint32_t i_prefill; /* the lane whose prompt came first in the last batch with one */
    double row_s;       /* seconds for each row of it; 0: not known */
    struct tn_batch batch; /* in work */
    bool has_prompts;
};

static inline uint32_t tn_steps_vocab(const struct tn_steps *s)
{
    return s->work->model->file.spec.config->vocab;
}

/* ---- steps.c ---- */

/* One step of all lanes.  TERN_INTERRUPTED, TERN_MAPPED_IO: as tn_workspace_eval; what was computed
 * is dropped, and the next step goes on. */
tern_status tn_steps_run(struct tn_steps *s, struct tern_error *err);

/* ---- events.c ---- */

/* Hands an event to the front; its request and arg are filled in. */
bool tn_say_event(struct tn_steps *s, struct tn_request *r, struct tern_event *event);
/* The last event of a request; it does not run any more, or never did.  `why` is NULL or what went
 * wrong. */
void tn_end_request(struct tn_steps *s, struct tn_request *r, enum tern_stop stop,
                    const struct tern_error *why);
/* The same for the request of a lane, which is free then. */
void tn_end_lane(struct tn_steps *s, struct tn_lane *lane, enum tern_stop stop,
                 const struct tern_error *why);

/* ---- lanes.c ---- */

/* A free lane with as much of the prompt in its cache as there is; NULL: all are in use. */
struct tn_lane *tn_prepare_lane(struct tn_steps *s, const struct tern_request *asked);
/* Its prompt is read from the next step on; the sampler of r->generation is set. */
void tn_start_lane(struct tn_steps *s, struct tn_lane *lane, struct tn_request *r);
/* Takes over from another lane what that has evaluated of this lane's prompt meanwhile. */
void tn_take_over(struct tn_steps *s, struct tn_lane *lane);
/* Makes room for n rows more; what ended requests left in the cache goes where memory is short.
 * False when there is not enough. */
bool tn_grow_lane(struct tn_steps *s, struct tn_lane *lane, uint32_t n);

/* ---- rows.c ---- */

/* Makes s->batch: rows of every answer that is being written, and parts of prompts. An answer
 * without memory for its next row ends. */
void tn_make_batch(struct tn_steps *s);

/* ---- tokens.c ---- */

/* Row i of a lane is the next position of its text. */
void tn_keep_row(struct tn_steps *s, struct tn_lane *lane, uint32_t i);
/* Chooses the id after row i, the last of the text, and says its event.  True: the next row of the
 * lane is a draft of this id. */
bool tn_choose_token(struct tn_steps *s, struct tn_lane *lane, uint32_t i);

/* ---- draft_check.c ---- */

/* The rows of an answer: its events, and the drafts that were right. */
void tn_finish_answer(struct tn_steps *s, struct tn_lane *lane);

/* ---- prompt_rows.c ---- */

void tn_finish_prompt(struct tn_steps *s, struct tn_lane *lane);
/* Rows that were computed before and had their events then. */
void tn_finish_again(struct tn_lane *lane);

#endif
