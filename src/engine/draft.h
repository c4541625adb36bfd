/* SPDX-License-Identifier: MIT
 *
 * Drafts: guesses of the next ids, verified several at a time in one evaluation.  They change when
 * an id is known, never which: each is chosen as it would be without drafts.
 *
 *   tn_drafter      drafts for the steps of one answer, from the parts below or from a callback
 *   tn_matcher      finds the previous occurrence of the last ids and proposes their continuation
 *   tn_draft_odds   acceptance rate of this answer's drafts
 *   tn_draft_costs  measured times of evaluations by number of rows
 *
 * Drafts come from the text, or from the model's draft head (draft_head.h), which takes time to
 * make them; the source with the higher acceptance rate is asked first.
 *
 * Drafts from the text that are not verified are still compared with the chosen ids, so their
 * acceptance rate is known without cost.  An account limits the loss: time spent on evaluations
 * with drafts, compared with what their ids would have cost one by one.  While more than
 * TN_DRAFT_LOSS of all time is lost, nothing is drafted.
 */
#ifndef TN_DRAFT_H
#define TN_DRAFT_H

#include <stdbool.h>

#include "tern/tern.h"

/* ---- matcher ---- */

struct tn_matcher {
    uint32_t *ids;    /* [capacity] the text so far */
    /* [capacity] 1 + end of the previous occurrence of the pair that ends here; 0: unknown */
    uint32_t *before;
    uint32_t *last;   /* [TN_MATCHER_BUCKETS] 1 + end of the last pair with this hash */
    uint32_t n;
    uint32_t capacity;
};
#define TN_MATCHER_BUCKETS 4096u

/* Memory for a text of up to `capacity` ids, bytes. */
size_t tn_matcher_bytes(uint32_t capacity);
/* TERN_MEMORY. */
tern_status tn_matcher_init(struct tn_matcher *out, uint32_t capacity, struct tern_error *err);
void tn_matcher_fini(struct tn_matcher *m);
/* Appends an id; beyond the capacity it is ignored. */
void tn_matcher_add(struct tn_matcher *m, uint32_t id);
/* Writes up to n_max ids that followed the longest earlier match of the last ids, the latest of
 * several.  Returns their number.  *n_match: length of the match, at least 2 if there is one. */
uint32_t tn_matcher_draft(const struct tn_matcher *m, uint32_t *ids, uint32_t n_max,
                          uint32_t *n_match);

/* ---- costs ---- */

#define TN_DRAFT_MAX_ROWS 8u
#define TN_DRAFT_LOSS 0.01

struct tn_draft_costs {
    double step_s[TN_DRAFT_MAX_ROWS + 1]; /* [i] seconds of an evaluation of i rows; 0: unknown */
    double made_s;           /* seconds in which a draft head makes an id; 0: unknown */
    double lost_s, total_s;  /* the account; older time counts less */
    uint32_t n_since_plain;  /* evaluations since the last one without drafts */
    uint32_t n_steps;
};

/* Records an evaluation of n_rows, of which n_answers were no drafts, that yielded n_ids; before it
 * a draft head made drafts for made_s. */
void tn_draft_costs_record(struct tn_draft_costs *costs, uint32_t n_answers, uint32_t n_rows,
                           uint32_t n_ids, double seconds, double made_s);
/* Records that a draft head made n ids. */
void tn_draft_costs_record_made(struct tn_draft_costs *costs, uint32_t n, double seconds);

/* ---- number of drafts ---- */

/* A step under construction; its answers decide on their drafts one after the other. */
struct tn_draft_step {
    uint32_t n_answers; /* rows that are not drafts */
    uint32_t n_rows;    /* those and the drafts added so far */
    double n_ids;       /* expected number of ids */
    double made_s;      /* time in which draft heads make them */
};

#define TN_DRAFT_OF_HEAD 4u /* the class of a draft head; before it: matches of 2, 3 to 4, 5 to 8,
                             * more ids */
#define TN_DRAFT_CLASSES 5u

/* A draft being compared with the chosen ids. */
struct tn_draft_trial {
    uint32_t draft[TERN_MAX_DRAFT], n_draft, n_compared, class_of_draft;
};

struct tn_draft_odds {
    double right[TN_DRAFT_CLASSES], tried[TN_DRAFT_CLASSES]; /* older drafts count less */
    struct tn_draft_trial of_text, of_head;
    uint32_t n_refused; /* steps since the head was last tried */
};

/* Starts with the same odds for all classes. */
void tn_draft_odds_init(struct tn_draft_odds *out);
/* How many of n drafted ids after a match of n_match ids this step should verify; adds them to the
 * step. */
uint32_t tn_draft_choose(struct tn_draft_odds *odds, const struct tn_draft_costs *costs,
                         struct tn_draft_step *step, const uint32_t *ids, uint32_t n,
                         uint32_t n_match);
/* How many ids, at most n, the draft head should make for this step; adds them to the step. */
uint32_t tn_draft_choose_made(struct tn_draft_odds *odds, const struct tn_draft_costs *costs,
                              struct tn_draft_step *step, uint32_t n);
/* Compares ids that the head made. */
void tn_draft_odds_try(struct tn_draft_odds *odds, const uint32_t *ids, uint32_t n);
/* Records a chosen id. */
void tn_draft_odds_record(struct tn_draft_odds *odds, uint32_t id);

/* ---- drafter ---- */

/* Makes n drafts and returns their number: n, or 0 if it was interrupted. */
struct tn_draft_maker {
    uint32_t (*make)(void *arg, uint32_t *ids, uint32_t n);
    void *arg;
};

struct tn_drafter {
    uint32_t n_draft; /* maximum per step; 0: no drafts, and the other members are unset */
    /* As in struct tern_generate_params. */
    uint32_t (*on_draft)(void *arg, uint32_t *ids, uint32_t n_max);
    void *arg;
    bool verify_all;
    struct tn_matcher matcher; /* if there is no on_draft */
    struct tn_draft_odds odds;
};

/* For a text of up to `capacity` ids that begins with this prompt.  The caller sets n_draft,
 * on_draft, arg and verify_all and zeroes the rest.  TERN_MEMORY. */
tern_status tn_drafter_init(struct tn_drafter *d, const uint32_t *ids, size_t n_ids,
                            uint32_t capacity, struct tern_error *err);
void tn_drafter_fini(struct tn_drafter *d);
/* Records the next id. */
void tn_drafter_add_chosen(struct tn_drafter *d, uint32_t id);
/* Writes the ids [n_max] that this step should verify and adds them to the step.  Returns their
 * number.  n_max may be 0.
 *
 *   head   the model's draft head, or NULL; drafts of a callback then replace those that it made */
uint32_t tn_drafter_next(struct tn_drafter *d, const struct tn_draft_costs *costs,
                         const struct tn_draft_maker *head, struct tn_draft_step *step,
                         uint32_t *ids, uint32_t n_max);

#endif
