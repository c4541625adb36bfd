/* SPDX-License-Identifier: MIT
 *
 * Matches in the text so far, what rows cost, and how many drafted ids to verify.
 */
#include "engine/draft.h"

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/error.h"

/* ---- matcher ---- */

#define MAX_MATCH 32u      /* longer ones are not told apart */
#define MAX_CANDIDATES 32u /* earlier places of the last pair that are compared */

size_t tn_matcher_bytes(uint32_t capacity)
{
    return (2 * (size_t)capacity + TN_MATCHER_BUCKETS) * sizeof(uint32_t);
}

tern_status tn_matcher_init(struct tn_matcher *out, uint32_t capacity, struct tern_error *err)
{
    *out = (struct tn_matcher){.capacity = capacity};
    out->ids = tn_alloc_zeroed(1, tn_matcher_bytes(capacity));
    if (!out->ids)
        return tn_fail(err, TERN_MEMORY, "no memory for drafts in a text of %u ids", capacity);
    out->before = out->ids + capacity;
    out->last = out->before + capacity;
    return tn_ok(err);
}

void tn_matcher_fini(struct tn_matcher *m)
{
    tn_free(m->ids);
    *m = (struct tn_matcher){0};
}

/* Of the pair of ids that ends at i >= 1. */
static uint32_t bucket(const struct tn_matcher *m, uint32_t i)
{
    const uint32_t hash = m->ids[i - 1] * 2654435761u ^ m->ids[i] * 2246822519u;
    return (hash ^ hash >> 15) % TN_MATCHER_BUCKETS;
}

void tn_matcher_add(struct tn_matcher *m, uint32_t id)
{
    if (m->n >= m->capacity)
        return;
    const uint32_t i = m->n++;
    m->ids[i] = id;
    if (i == 0)
        return;
    uint32_t *last = &m->last[bucket(m, i)];
    m->before[i] = *last;
    *last = i + 1;
}

/* Ids before and at position i that equal the last ones. */
static uint32_t match_length(const struct tn_matcher *m, uint32_t i)
{
    uint32_t n = 0;
    while (n <= i && n < MAX_MATCH && m->ids[i - n] == m->ids[m->n - 1 - n])
        n++;
    return n;
}

uint32_t tn_matcher_draft(const struct tn_matcher *m, uint32_t *ids, uint32_t n_max,
                          uint32_t *n_match)
{
    uint32_t best = 0;
    *n_match = 0;
    if (m->n < 3 || m->n >= m->capacity)
        return 0;
    uint32_t at = m->before[m->n - 1];
    for (uint32_t k = 0; at > 0 && k < MAX_CANDIDATES; k++, at = m->before[at - 1]) {
        const uint32_t n = match_length(m, at - 1);
        if (n >= 2 && n > *n_match) {
            *n_match = n;
            best = at;
        }
    }
    if (*n_match == 0)
        return 0;
    /* A match that overlaps its end goes on as a period: what followed is drafted too. */
    const uint32_t period = m->n - best;
    for (uint32_t i = 0; i < n_max; i++)
        ids[i] = m->ids[best + i % period];
    return n_max;
}

/* ---- costs ---- */

/* Before it was measured a row more is taken to cost this share of those without drafts: little, so
 * that it is measured soon; the account limits what that costs. */
#define COST_UNKNOWN 0.35
#define ACCOUNT_REMEMBERED 0.998 /* what was lost still weighs after the next evaluation */
/* Of a new time in the average, which it may move by so much: what was interrupted by another
 * program says little. */
#define NEW_TIME 0.25
#define LEAST_TIME 0.5
#define MOST_TIME 1.2
/* Drafts are worth it from so much more ids for the time on. */
#define LEAST_GAIN 1.03
/* An evaluation without drafts is made now and then: the others are compared with it. */
#define STEPS_PER_PLAIN 64u
/* Times are forgotten now and then: a deeper context, or a neighbour that is gone, changes them. */
#define STEPS_REMEMBERED 512u
/* What may be lost before much time has passed, in evaluations without drafts. */
#define FREE_STEPS 1.0

/* Every time but that of the evaluations without drafts. */
static void forget(struct tn_draft_costs *costs, uint32_t n_answers)
{
    for (uint32_t i = 0; i <= TN_DRAFT_MAX_ROWS; i++)
        if (i != n_answers)
            costs->step_s[i] = 0;
}

static void add_time(double *known, double seconds)
{
    if (*known == 0)
        *known = seconds;
    const double most = *known * MOST_TIME, least = *known * LEAST_TIME;
    *known += NEW_TIME * (TN_MAX(TN_MIN(seconds, most), least) - *known);
}

void tn_draft_costs_took(struct tn_draft_costs *costs, uint32_t n_answers, uint32_t n_rows,
                         uint32_t n_ids, double seconds)
{
    if (n_rows > TN_DRAFT_MAX_ROWS)
        return; /* there is never a draft then */
    if (++costs->n_steps % STEPS_REMEMBERED == 0)
        forget(costs, n_answers);
    add_time(&costs->step_s[n_rows], seconds);
    const double took = costs->step_s[n_rows], plain = costs->step_s[n_answers];
    costs->total_s = costs->total_s * ACCOUNT_REMEMBERED + took;
    costs->lost_s *= ACCOUNT_REMEMBERED;
    costs->n_since_plain = n_rows == n_answers ? 0 : costs->n_since_plain + 1;
    if (n_rows > n_answers)
        costs->lost_s += took - n_ids * plain / n_answers;
    /* What was gained long ago does not pay for what is lost now. */
    costs->lost_s = TN_MAX(costs->lost_s, -FREE_STEPS * plain);
}

/* What an evaluation of n rows takes, by the nearest counts that were measured; that of n_answers
 * was. */
static double expected_s(const struct tn_draft_costs *costs, uint32_t n_answers, uint32_t n)
{
    const double plain = costs->step_s[n_answers];
    uint32_t below = n;
    while (below > n_answers && costs->step_s[below] == 0)
        below--;
    double per_row = COST_UNKNOWN * plain / n_answers;
    if (below > n_answers)
        per_row = (costs->step_s[below] - plain) / (below - n_answers);
    return costs->step_s[below] + TN_MAX(per_row, 0.0) * (n - below);
}

/* Whether this evaluation may have drafts at all. */
static bool may_draft(const struct tn_draft_costs *costs, uint32_t n_answers)
{
    const double plain = costs->step_s[n_answers];
    const double may_lose_s = TN_DRAFT_LOSS * costs->total_s + FREE_STEPS * plain;
    return plain > 0 && costs->n_since_plain < STEPS_PER_PLAIN && costs->lost_s < may_lose_s;
}

/* ---- odds ---- */

/* How likely a drafted id is right before any was compared, and as how many that counts. */
#define RIGHT_UNKNOWN 0.5
#define WEIGHT_UNKNOWN 2.0
#define REMEMBERED 0.95 /* what a comparison still weighs after the next one */

void tn_draft_odds_init(struct tn_draft_odds *out)
{
    *out = (struct tn_draft_odds){0};
    for (uint32_t i = 0; i < TN_DRAFT_CLASSES; i++) {
        out->right[i] = RIGHT_UNKNOWN * WEIGHT_UNKNOWN;
        out->tried[i] = WEIGHT_UNKNOWN;
    }
}

static uint32_t class_of(uint32_t n_match)
{
    return n_match <= 2 ? 0 : n_match <= 4 ? 1 : n_match <= 8 ? 2 : 3;
}

static void start_comparing(struct tn_draft_odds *odds, const uint32_t *ids, uint32_t n,
                            uint32_t draft_class)
{
    for (uint32_t i = 0; i < n; i++)
        odds->draft[i] = ids[i];
    odds->n_draft = n;
    odds->n_compared = 0;
    odds->class_of_draft = draft_class;
}

void tn_draft_odds_saw(struct tn_draft_odds *odds, uint32_t id)
{
    if (odds->n_draft == 0)
        return;
    const bool is_right = odds->draft[odds->n_compared++] == id;
    double *right = &odds->right[odds->class_of_draft], *tried = &odds->tried[odds->class_of_draft];
    *right = *right * REMEMBERED + is_right;
    *tried = *tried * REMEMBERED + 1;
    if (!is_right || odds->n_compared == odds->n_draft)
        odds->n_draft = 0;
}

/* ---- how many ---- */

/* The count of drafted ids, at most n, with which the step gives most ids for its time; they are
 * added to it. */
static uint32_t add_best(struct tn_draft_step *step, const struct tn_draft_costs *costs, uint32_t n,
                         double right)
{
    const struct tn_draft_step before = *step;
    double ids = before.n_ids, next = 1;
    double best_rate = LEAST_GAIN * ids / expected_s(costs, before.n_answers, before.n_rows);
    for (uint32_t i = 1; i <= n; i++) {
        next *= right;
        ids += next;
        const double rate = ids / expected_s(costs, before.n_answers, before.n_rows + i);
        if (rate > best_rate) {
            best_rate = rate;
            step->n_rows = before.n_rows + i;
            step->n_ids = ids;
        }
    }
    return step->n_rows - before.n_rows;
}

uint32_t tn_draft_choose(struct tn_draft_odds *odds, const struct tn_draft_costs *costs,
                         struct tn_draft_step *step, const uint32_t *ids, uint32_t n,
                         uint32_t n_match)
{
    n = TN_MIN(n, TN_DRAFT_MAX_ROWS - TN_MIN(step->n_rows, TN_DRAFT_MAX_ROWS));
    if (n == 0)
        return 0;
    const uint32_t draft_class = class_of(n_match);
    uint32_t count = 0;
    if (may_draft(costs, step->n_answers))
        count = add_best(step, costs, n, odds->right[draft_class] / odds->tried[draft_class]);
    if (count > 0 || odds->n_draft == 0) /* one that is still being compared is finished first */
        start_comparing(odds, ids, count > 0 ? count : n, draft_class);
    return count;
}

/* ---- drafter ---- */

tern_status tn_drafter_init(struct tn_drafter *d, uint32_t capacity, struct tern_error *err)
{
    tn_draft_odds_init(&d->odds);
    return d->on_draft ? tn_ok(err) : tn_matcher_init(&d->matcher, capacity, err);
}

void tn_drafter_fini(struct tn_drafter *d)
{
    tn_matcher_fini(&d->matcher);
}

void tn_drafter_read(struct tn_drafter *d, uint32_t id)
{
    tn_matcher_add(&d->matcher, id);
}

void tn_drafter_saw(struct tn_drafter *d, uint32_t id)
{
    tn_draft_odds_saw(&d->odds, id);
    tn_matcher_add(&d->matcher, id);
}

uint32_t tn_drafter_next(struct tn_drafter *d, const struct tn_draft_costs *costs,
                         struct tn_draft_step *step, uint32_t *ids, uint32_t n_max)
{
    uint32_t n, n_match = MAX_MATCH; /* drafts of others count as the longest */
    n_max = TN_MIN(n_max, d->n_draft);
    if (n_max == 0)
        return 0;
    if (d->on_draft)
        n = TN_MIN(d->on_draft(d->arg, ids, n_max), n_max);
    else
        n = tn_matcher_draft(&d->matcher, ids, n_max, &n_match);
    return d->verify_all ? n : tn_draft_choose(&d->odds, costs, step, ids, n, n_match);
}
