/* SPDX-License-Identifier: MIT
 *
 * Drafts: ids that probably come next, so that one evaluation can verify several of them.  They
 * change when an id is known, never which: each is chosen as it would be without drafts.
 *
 * Four parts, none of which knows a session:
 *
 *   tn_drafter      what a step asks for each answer: the three below, or somebody else's drafts
 *   tn_matcher      finds where the last ids stood before, and takes what followed there
 *   tn_draft_odds   how often the drafts of this answer are right
 *   tn_draft_costs  what evaluations of so many rows take, whosever rows they are
 *
 * A step with several answers verifies drafts of some of them; how many is decided for one after
 * the other, each with what the step has already (tn_draft_step).
 *
 * Drafts that are not verified cost nothing and are still compared with what came, so it is
 * known how often they are right without trying.  What trying may cost is limited by an account:
 * the time of evaluations with drafts beside what their ids would have cost one by one.  When more
 * than TN_DRAFT_LOSS of all time was lost, nothing is drafted until that is no longer so.
 */
#ifndef TN_DRAFT_H
#define TN_DRAFT_H

#include <stdbool.h>

#include "tern/tern.h"

/* ---- what probably comes ---- */

struct tn_matcher {
    uint32_t *ids;    /* [capacity] all so far */
    uint32_t *before; /* [capacity] where the pair of ids that ends here ended before, plus 1; 0:
                         nowhere that is known */
    uint32_t *last;   /* [TN_MATCHER_BUCKETS] the last position of a pair with this hash, plus 1 */
    uint32_t n;
    uint32_t capacity;
};
#define TN_MATCHER_BUCKETS 4096u

/* Memory for a text of at most `capacity` ids. */
size_t tn_matcher_bytes(uint32_t capacity);
/* TERN_MEMORY. */
tern_status tn_matcher_init(struct tn_matcher *out, uint32_t capacity, struct tern_error *err);
void tn_matcher_fini(struct tn_matcher *m);
/* The next id; beyond the capacity it is not looked at. */
void tn_matcher_add(struct tn_matcher *m, uint32_t id);
/* Writes up to n_max ids that followed the longest match of the last ids, the latest of several as
 * long; returns how many. *n_match: the ids of the match, at least 2 when something is found. */
uint32_t tn_matcher_draft(const struct tn_matcher *m, uint32_t *ids, uint32_t n_max,
                          uint32_t *n_match);

/* ---- what rows cost ---- */

#define TN_DRAFT_MAX_ROWS 8u
#define TN_DRAFT_LOSS 0.01

struct tn_draft_costs {
    double step_s[TN_DRAFT_MAX_ROWS + 1]; /* [i] an evaluation of i rows; 0: not known */
    double lost_s, total_s;  /* the account; what is long ago counts less */
    uint32_t n_since_plain;  /* evaluations since one without drafts */
    uint32_t n_steps;
};

/* An evaluation of n_rows, of which n_answers were no drafts, took so long and n_ids came of it. */
void tn_draft_costs_took(struct tn_draft_costs *costs, uint32_t n_answers, uint32_t n_rows,
                         uint32_t n_ids, double seconds);

/* ---- how many ---- */

/* A step in the making. */
struct tn_draft_step {
    uint32_t n_answers; /* rows that are no drafts */
    uint32_t n_rows;    /* these and the drafts so far */
    double n_ids;       /* that are expected of them */
};

#define TN_DRAFT_CLASSES 4u /* matches of 2, 3 to 4, 5 to 8, more ids */

struct tn_draft_odds {
    double right[TN_DRAFT_CLASSES], tried[TN_DRAFT_CLASSES]; /* older drafts count less */
    /* the draft that is being compared with what comes */
    uint32_t draft[TERN_MAX_DRAFT], n_draft, n_compared, class_of_draft;
};

/* Before any draft was tried: the same odds for all classes. */
void tn_draft_odds_init(struct tn_draft_odds *out);
/* How many of n drafted ids behind a match of n_match this step should verify; they are added to
 * it. */
uint32_t tn_draft_choose(struct tn_draft_odds *odds, const struct tn_draft_costs *costs,
                         struct tn_draft_step *step, const uint32_t *ids, uint32_t n,
                         uint32_t n_match);
/* An id was chosen. */
void tn_draft_odds_saw(struct tn_draft_odds *odds, uint32_t id);

/* ---- all ---- */

struct tn_drafter {
    uint32_t n_draft; /* at most; 0: no drafts, and nothing else is set */
    /* As in struct tern_generate_params. */
    uint32_t (*on_draft)(void *arg, uint32_t *ids, uint32_t n_max);
    void *arg;
    bool verify_all;
    struct tn_matcher matcher; /* without on_draft */
    struct tn_draft_odds odds;
};

/* For a text of at most `capacity` ids. n_draft, on_draft, arg and verify_all are set, the
 * rest is zero. TERN_MEMORY. */
tern_status tn_drafter_init(struct tn_drafter *d, uint32_t capacity, struct tern_error *err);
void tn_drafter_fini(struct tn_drafter *d);
/* The next id of the prompt, or one that was chosen. */
void tn_drafter_read(struct tn_drafter *d, uint32_t id);
void tn_drafter_saw(struct tn_drafter *d, uint32_t id);
/* ids [n_max] that this step should verify, added to it; returns how many. n_max may be 0. */
uint32_t tn_drafter_next(struct tn_drafter *d, const struct tn_draft_costs *costs,
                         struct tn_draft_step *step, uint32_t *ids, uint32_t n_max);

#endif
