/* SPDX-License-Identifier: MIT
 *
 * Drafts: ids that probably come next, so that one evaluation can verify several of them.  They
 * change when an id is known, never which: each is chosen as it would be without drafts.
 *
 * Three parts, none of which knows a session:
 *
 *   tn_drafter     what tern_generate asks: the two below, or somebody else's drafts
 *   tn_matcher     finds where the last ids stood before, and takes what followed there
 *   tn_draft_plan  how many drafted ids an evaluation is worth, from measured times and from how
 *                  many drafts were right
 *
 * Drafts that are not verified cost nothing and are still compared with what came, so the plan
 * knows how often they are right without trying.  What trying may cost is limited by an account:
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

/* TERN_MEMORY. */
tern_status tn_matcher_init(struct tn_matcher *out, uint32_t capacity, struct tern_error *err);
void tn_matcher_fini(struct tn_matcher *m);
/* The next id; beyond the capacity it is not looked at. */
void tn_matcher_add(struct tn_matcher *m, uint32_t id);
/* Writes up to n_max ids that followed the longest match of the last ids, the latest of several as
 * long; returns how many. *n_match: the ids of the match, at least 2 when something is found. */
uint32_t tn_matcher_draft(const struct tn_matcher *m, uint32_t *ids, uint32_t n_max,
                          uint32_t *n_match);

/* ---- how many ---- */

#define TN_DRAFT_CLASSES 4u /* matches of 2, 3 to 4, 5 to 8, more ids */
#define TN_DRAFT_LOSS 0.01

struct tn_draft_plan {
    double step_s[TERN_MAX_DRAFT + 2]; /* [i] an evaluation of i rows; 0: not known */
    double right[TN_DRAFT_CLASSES], tried[TN_DRAFT_CLASSES]; /* older drafts count less */
    double lost_s, total_s; /* the account; what is long ago counts less */
    uint32_t n_since_one; /* evaluations since one of a single row */
    /* the draft that is being compared with what comes */
    uint32_t draft[TERN_MAX_DRAFT], n_draft, n_compared, class_of_draft;
};

void tn_draft_plan_init(struct tn_draft_plan *out);
/* How many of n drafted ids behind a match of n_match the next evaluation should verify. */
uint32_t tn_draft_plan_choose(struct tn_draft_plan *plan, const uint32_t *ids, uint32_t n,
                              uint32_t n_match);
/* An id was chosen. */
void tn_draft_plan_saw(struct tn_draft_plan *plan, uint32_t id);
/* An evaluation of n_rows took so long and n_ids came of it. */
void tn_draft_plan_took(struct tn_draft_plan *plan, uint32_t n_rows, uint32_t n_ids,
                        double seconds);

/* ---- both ---- */

struct tn_drafter {
    const struct tern_generate_params *params;
    struct tn_matcher matcher;
    struct tn_draft_plan plan;
};

/* For a text of at most `capacity` ids; params->n_draft is not 0. TERN_MEMORY. */
tern_status tn_drafter_init(struct tn_drafter *out, const struct tern_generate_params *params,
                            uint32_t capacity, struct tern_error *err);
void tn_drafter_fini(struct tn_drafter *d);
/* The next id of the prompt, or one that was chosen. */
void tn_drafter_read(struct tn_drafter *d, uint32_t id);
void tn_drafter_saw(struct tn_drafter *d, uint32_t id);
/* ids [n_max] that the next evaluation should verify; returns how many. n_max may be 0. */
uint32_t tn_drafter_next(struct tn_drafter *d, uint32_t *ids, uint32_t n_max);

#endif
