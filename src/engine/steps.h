/* SPDX-License-Identifier: MIT
 *
 * The step engine below tern_generate and the scheduler, its two fronts.
 *
 *   front:  a request gets a lane (tn_prepare_lane, tn_start_lane)
 *   step:   rows of all lanes -> one evaluation -> their next tokens -> events -> front
 *
 * A front with one lane writes one answer; with several, answers are written concurrently and
 * prompts are read in chunks between them.  The result of a request does not depend on the others.
 * Nothing here allocates.
 *
 *   steps.c  a whole step      rows.c    its batch          tokens.c  choice of an id from logits
 *   lanes.c  lanes, prefixes   events.c  events, endings    draft_check.c, prompt_rows.c  results
 *   draft_head.h  drafts of the model itself
 */
#ifndef TN_STEPS_H
#define TN_STEPS_H

#include "engine/request.h"
#include "engine/workspace.h"
#include "tern/plan.h"

struct tn_lane {
    struct tn_sequence *sequence; /* kept from the last request while the lane is free */
    uint32_t *head_always;        /* [TN_HEAD_MAX_ALWAYS] */
    unsigned char **draft_blocks; /* cache of the draft head (draft_head.h); NULL: none */
    struct tn_request *request;   /* NULL: free */
    /* next_id is chosen and to be evaluated; otherwise the prompt is being read */
    bool is_decoding;
    uint32_t next_id;
    /* Positions whose events were emitted.  Exceeds the sequence's n_past if a rollback went
     * further than necessary: the rows in between are computed again without events. */
    uint32_t n_text;
    uint64_t last_step; /* number of the last step that used it */
    uint32_t n_drafted; /* positions in the cache of the draft head */
    /* Rows of the last batch whose final states are still in the workspace, from row i_fresh on:
     * the last n_fresh positions of the text. */
    uint32_t i_fresh, n_fresh;
    /* in the current batch: */
    uint32_t n_rows;     /* 0: none */
    uint32_t row;        /* index of the first */
    uint32_t n_ids;      /* ids chosen from them */
    bool is_recomputed;       /* after a rollback: no events */
    uint32_t first_wanted;    /* first row with logits; all later ones have them too */
    struct tn_head_need need; /* of each of those rows */
    const float *logits;      /* [n_rows - first_wanted][vocab]; NULL: not requested */
    /* [vocab] of position n_past - 1, in the workspace; NULL: not available */
    const float *last_logits;
};

struct tn_steps {
    /* set by the front */
    struct tn_workspace *work;
    struct tn_lane *lanes; /* [n_lanes] */
    uint32_t n_lanes;
    uint32_t n_ctx;                 /* positions per sequence */
    uint32_t *ids;                  /* [n_batch of the workspace] */
    struct tn_span *spans;          /* [n_lanes] */
    float *adjusted; /* [vocab] buffer for adjusted logits; NULL: no request adjusts them */
    struct tern_steering *steering; /* may be NULL */
    /* Consumes an event; its pointers are valid until the next step.  false: end the request. */
    bool (*on_event)(void *arg, struct tn_request *request, const struct tern_event *event);
    void *arg;
    /* private */
    uint32_t n_running;
    uint64_t n_steps;
    uint32_t i_prefill; /* lane whose prompt came first in the last batch that had one */
    double row_s;       /* seconds per row of that batch; 0: unknown */
    struct tn_batch batch; /* the current one */
    bool has_prompts;
    double made_s; /* time of draft heads for this batch */
};

static inline uint32_t tn_steps_vocab(const struct tn_steps *s)
{
    return s->work->model->file.spec.config->vocab;
}

/* ---- steps.c ---- */

/* Runs one step of all lanes.  TERN_INTERRUPTED, TERN_MAPPED_IO: as tn_workspace_eval; the batch is
 * rolled back, and the next step repeats it. */
tern_status tn_steps_run(struct tn_steps *s, struct tern_error *err);

/* ---- events.c ---- */

/* Emits an event to the front; fills in its request and arg. */
bool tn_emit_event(struct tn_steps *s, struct tn_request *r, struct tern_event *event);
/* Emits the last event of a request that no longer runs, or never did.  `why`: an error, or NULL.
 */
void tn_end_request(struct tn_steps *s, struct tn_request *r, enum tern_stop stop,
                    const struct tern_error *why);
/* The same for the request of a lane, which becomes free. */
void tn_end_lane(struct tn_steps *s, struct tn_lane *lane, enum tern_stop stop,
                 const struct tern_error *why);

/* ---- lanes.c ---- */

/* A free lane with as long a cached prefix of the prompt as possible; NULL: all are in use. */
struct tn_lane *tn_prepare_lane(struct tn_steps *s, const struct tern_request *asked);
/* Starts reading the prompt with the next step; the sampler of r->generation must be set. */
void tn_start_lane(struct tn_steps *s, struct tn_lane *lane, struct tn_request *r);
/* Reuses the part of this lane's prompt that another lane has evaluated meanwhile. */
void tn_take_over(struct tn_steps *s, struct tn_lane *lane);
/* Makes room for n more rows, evicting caches of ended requests if memory is short.  false: not
 * enough. */
bool tn_grow_lane(struct tn_steps *s, struct tn_lane *lane, uint32_t n);

/* ---- rows.c ---- */

/* Composes s->batch: rows of every answer in progress, and chunks of prompts.  An answer without
 * memory for its next row ends. */
void tn_make_batch(struct tn_steps *s);

/* ---- tokens.c ---- */

/* Adds row i of a lane to its text. */
void tn_keep_row(struct tn_steps *s, struct tn_lane *lane, uint32_t i);
/* Chooses the id after row i, the last of the text, and emits its event.  true: the lane's next row
 * is a draft of this id. */
bool tn_choose_token(struct tn_steps *s, struct tn_lane *lane, uint32_t i);

/* ---- draft_check.c ---- */

/* Handles the rows of an answer: its events, and the accepted drafts. */
void tn_finish_answer(struct tn_steps *s, struct tn_lane *lane);

/* ---- prompt_rows.c ---- */

void tn_finish_prompt(struct tn_steps *s, struct tn_lane *lane);
/* Handles rows that were recomputed; their events were emitted before. */
void tn_finish_recomputed(struct tn_lane *lane);

#endif
