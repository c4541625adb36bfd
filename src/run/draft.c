/* SPDX-License-Identifier: MIT
 *
 * Matches in the text so far, and the plan of how many drafted ids to verify.
 */
#include "run/draft.h"

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/log.h"

/* ---- matcher ---- */

#define MAX_MATCH 32u      /* longer ones are not told apart */
#define MAX_CANDIDATES 32u /* earlier places of the last pair that are compared */

tern_status tn_matcher_init(struct tn_matcher *out, uint32_t capacity, struct tern_error *err)
{
    *out = (struct tn_matcher){.capacity = capacity};
    out->ids = tn_alloc_zeroed(2 * (size_t)capacity + TN_MATCHER_BUCKETS, sizeof *out->ids);
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

/* ---- plan ---- */

#define MAX_ROWS (TERN_MAX_DRAFT + 1)

/* Before it was measured a row more is taken to cost this share of the first: little, so that it
 * is measured soon; the account limits what that costs. */
#define COST_UNKNOWN 0.35
/* How likely a drafted id is right before any was compared, and as how many that counts. */
#define RIGHT_UNKNOWN 0.5
#define WEIGHT_UNKNOWN 2.0
#define REMEMBERED 0.95 /* what a comparison still weighs after the next one */
#define ACCOUNT_REMEMBERED 0.998 /* and what was lost, after the next evaluation */
/* Of a new time in the average. */
#define NEW_TIME 0.2
/* An evaluation of one row is made now and then: the others are compared with it. */
#define STEPS_PER_ONE 64u
/* What may be lost before much time has passed, in evaluations of one row. */
#define FREE_STEPS 1.0

void tn_draft_plan_init(struct tn_draft_plan *out)
{
    *out = (struct tn_draft_plan){0};
    for (uint32_t i = 0; i < TN_DRAFT_CLASSES; i++) {
        out->right[i] = RIGHT_UNKNOWN * WEIGHT_UNKNOWN;
        out->tried[i] = WEIGHT_UNKNOWN;
    }
}

static uint32_t class_of(uint32_t n_match)
{
    return n_match <= 2 ? 0 : n_match <= 4 ? 1 : n_match <= 8 ? 2 : 3;
}

/* What an evaluation of n rows takes, by the nearest counts that were measured. */
static double expected_s(const struct tn_draft_plan *plan, uint32_t n)
{
    if (plan->step_s[n] > 0)
        return plan->step_s[n];
    uint32_t below = n;
    while (below > 1 && plan->step_s[below] == 0)
        below--;
    const double one = plan->step_s[1];
    double per_row = COST_UNKNOWN * one;
    if (below > 1)
        per_row = (plan->step_s[below] - one) / (below - 1);
    return plan->step_s[below] + TN_MAX(per_row, 0.0) * (n - below);
}

/* The count of drafted ids, at most n, that gives most ids for the time. */
static uint32_t best_count(const struct tn_draft_plan *plan, uint32_t n, double right)
{
    double ids = 1, next = 1, best_rate = 1 / expected_s(plan, 1);
    uint32_t best = 0;
    for (uint32_t i = 1; i <= n; i++) {
        next *= right;
        ids += next;
        const double rate = ids / expected_s(plan, i + 1);
        if (rate > best_rate) {
            best_rate = rate;
            best = i;
        }
    }
    return best;
}

static void start_comparing(struct tn_draft_plan *plan, const uint32_t *ids, uint32_t n,
                            uint32_t draft_class)
{
    for (uint32_t i = 0; i < n; i++)
        plan->draft[i] = ids[i];
    plan->n_draft = n;
    plan->n_compared = 0;
    plan->class_of_draft = draft_class;
}

uint32_t tn_draft_plan_choose(struct tn_draft_plan *plan, const uint32_t *ids, uint32_t n,
                              uint32_t n_match)
{
    if (n == 0)
        return 0;
    n = TN_MIN(n, TERN_MAX_DRAFT);
    const uint32_t draft_class = class_of(n_match);
    const double one = plan->step_s[1];
    const double may_lose_s = TN_DRAFT_LOSS * plan->total_s + FREE_STEPS * one;
    const bool measures_one = one == 0 || plan->n_since_one >= STEPS_PER_ONE;
    uint32_t count = 0;
    if (!measures_one && plan->lost_s < may_lose_s)
        count = best_count(plan, n, plan->right[draft_class] / plan->tried[draft_class]);
    if (count > 0 || plan->n_draft == 0) /* one that is still being compared is finished first */
        start_comparing(plan, ids, count > 0 ? count : n, draft_class);
    return count;
}

void tn_draft_plan_saw(struct tn_draft_plan *plan, uint32_t id)
{
    if (plan->n_draft == 0)
        return;
    const bool is_right = plan->draft[plan->n_compared++] == id;
    double *right = &plan->right[plan->class_of_draft], *tried = &plan->tried[plan->class_of_draft];
    *right = *right * REMEMBERED + is_right;
    *tried = *tried * REMEMBERED + 1;
    if (!is_right || plan->n_compared == plan->n_draft)
        plan->n_draft = 0;
}

void tn_draft_plan_took(struct tn_draft_plan *plan, uint32_t n_rows, uint32_t n_ids,
                        double seconds)
{
    double *known = &plan->step_s[TN_MIN(n_rows, MAX_ROWS)];
    *known = *known == 0 ? seconds : *known + NEW_TIME * (seconds - *known);
    plan->total_s = plan->total_s * ACCOUNT_REMEMBERED + seconds;
    plan->lost_s *= ACCOUNT_REMEMBERED;
    plan->n_since_one = n_rows == 1 ? 0 : plan->n_since_one + 1;
    if (n_rows > 1)
        plan->lost_s += seconds - n_ids * plan->step_s[1];
    /* What was gained long ago does not pay for what is lost now. */
    plan->lost_s = TN_MAX(plan->lost_s, -FREE_STEPS * plan->step_s[1]);
}

/* ---- drafter ---- */

tern_status tn_drafter_init(struct tn_drafter *out, const struct tern_generate_params *params,
                            uint32_t capacity, struct tern_error *err)
{
    *out = (struct tn_drafter){.params = params};
    tn_draft_plan_init(&out->plan);
    return params->on_draft ? tn_ok(err) : tn_matcher_init(&out->matcher, capacity, err);
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
    tn_draft_plan_saw(&d->plan, id);
    tn_matcher_add(&d->matcher, id);
}

uint32_t tn_drafter_next(struct tn_drafter *d, uint32_t *ids, uint32_t n_max)
{
    n_max = TN_MIN(n_max, d->params->n_draft);
    if (d->params->on_draft)
        return n_max ? TN_MIN(d->params->on_draft(d->params->arg, ids, n_max), n_max) : 0;
    uint32_t n_match;
    const uint32_t n = tn_matcher_draft(&d->matcher, ids, n_max, &n_match);
    return tn_draft_plan_choose(&d->plan, ids, n, n_match);
}
