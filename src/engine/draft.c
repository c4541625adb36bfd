/* SPDX-License-Identifier: MIT
 *
 * Finds repeated text, estimates the cost of rows, and decides how many drafted ids to verify.
 *
 * The constants below bound what a wrong estimate can cost; none of them changes an answer.
 */
#include "engine/draft.h"

#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/error.h"

/* ---- matcher ---- */

#define MAX_MATCH 32u      /* longer matches are treated alike */
#define MAX_CANDIDATES 32u /* earlier occurrences of the last pair that are compared */

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

/* Hash bucket of the pair of ids that ends at i >= 1. */
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

/* Length of the common suffix of ids[0..i] and the whole text. */
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
    /* A match that overlaps the end is periodic: the draft repeats the period. */
    const uint32_t period = m->n - best;
    for (uint32_t i = 0; i < n_max; i++)
        ids[i] = m->ids[best + i % period];
    return n_max;
}

/* ---- costs ---- */

/* Assumed cost of an unmeasured row, as a share of an evaluation without drafts.  Low, so that it
 * is soon measured; the account limits the loss. */
#define COST_UNKNOWN 0.35
/* The same for an id that a draft head makes, and the steps after which one that does not pay is
 * tried again. */
#define MADE_UNKNOWN 0.05
#define STEPS_REFUSED 64u
#define ACCOUNT_REMEMBERED 0.998 /* decay of a loss per evaluation */
/* Weight of a new time in the average, and the limits of its change: a time during which another
 * program ran says little. */
#define NEW_TIME 0.25
#define LEAST_TIME 0.5
#define MOST_TIME 1.2
/* Drafts must yield at least this many times the ids per second. */
#define LEAST_GAIN 1.03
/* An evaluation without drafts is made this often, as the baseline. */
#define STEPS_PER_PLAIN 64u
/* Times are discarded this often: a deeper context, or the end of a busy neighbour, changes them.
 */
#define STEPS_REMEMBERED 512u
/* Loss allowed before much time has passed, in evaluations without drafts. */
#define FREE_STEPS 1.0

/* Discards every time except that of evaluations without drafts. */
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

void tn_draft_costs_record(struct tn_draft_costs *costs, uint32_t n_answers, uint32_t n_rows,
                           uint32_t n_ids, double seconds, double made_s)
{
    if (n_rows > TN_DRAFT_MAX_ROWS)
        return; /* drafts are never used then */
    if (++costs->n_steps % STEPS_REMEMBERED == 0)
        forget(costs, n_answers);
    add_time(&costs->step_s[n_rows], seconds);
    const double took = costs->step_s[n_rows] + made_s, plain = costs->step_s[n_answers];
    costs->total_s = costs->total_s * ACCOUNT_REMEMBERED + took;
    costs->lost_s *= ACCOUNT_REMEMBERED;
    costs->n_since_plain = n_rows == n_answers ? 0 : costs->n_since_plain + 1;
    if (n_rows > n_answers)
        costs->lost_s += took - n_ids * plain / n_answers;
    /* Old gains do not pay for new losses. */
    costs->lost_s = TN_MAX(costs->lost_s, -FREE_STEPS * plain);
}

void tn_draft_costs_record_made(struct tn_draft_costs *costs, uint32_t n, double seconds)
{
    if (n > 0)
        add_time(&costs->made_s, seconds / n);
}

/* Expected time of an evaluation of n rows, interpolated from the nearest measured counts; that of
 * n_answers rows was measured. */
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

/* May this evaluation contain drafts? */
static bool may_draft(const struct tn_draft_costs *costs, uint32_t n_answers)
{
    const double plain = costs->step_s[n_answers];
    const double may_lose_s = TN_DRAFT_LOSS * costs->total_s + FREE_STEPS * plain;
    return plain > 0 && costs->n_since_plain < STEPS_PER_PLAIN && costs->lost_s < may_lose_s;
}

/* ---- odds ---- */

/* Prior probability that a drafted id is right, and its weight in comparisons. */
#define RIGHT_UNKNOWN 0.5
#define WEIGHT_UNKNOWN 2.0
#define REMEMBERED 0.95 /* decay of a comparison per later one */

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

static double odds_of(const struct tn_draft_odds *odds, uint32_t draft_class)
{
    return odds->right[draft_class] / odds->tried[draft_class];
}

static void start_comparing(struct tn_draft_trial *trial, const uint32_t *ids, uint32_t n,
                            uint32_t draft_class)
{
    for (uint32_t i = 0; i < n; i++)
        trial->draft[i] = ids[i];
    trial->n_draft = n;
    trial->n_compared = 0;
    trial->class_of_draft = draft_class;
}

static void compare(struct tn_draft_odds *odds, struct tn_draft_trial *trial, uint32_t id)
{
    if (trial->n_draft == 0)
        return;
    const bool is_right = trial->draft[trial->n_compared++] == id;
    double *right = &odds->right[trial->class_of_draft];
    double *tried = &odds->tried[trial->class_of_draft];
    *right = *right * REMEMBERED + is_right;
    *tried = *tried * REMEMBERED + 1;
    if (!is_right || trial->n_compared == trial->n_draft)
        trial->n_draft = 0;
}

void tn_draft_odds_record(struct tn_draft_odds *odds, uint32_t id)
{
    compare(odds, &odds->of_text, id);
    compare(odds, &odds->of_head, id);
}

void tn_draft_odds_try(struct tn_draft_odds *odds, const uint32_t *ids, uint32_t n)
{
    start_comparing(&odds->of_head, ids, n, TN_DRAFT_OF_HEAD);
}

/* ---- number of drafts ---- */

/* Adds to the step the number of drafted ids (at most n, each made in made_s) that maximises ids
 * per second, and returns it. */
static uint32_t add_best(struct tn_draft_step *step, const struct tn_draft_costs *costs, uint32_t n,
                         double right, double made_s)
{
    const struct tn_draft_step before = *step;
    double ids = before.n_ids, next = 1;
    double best_rate = LEAST_GAIN * ids /
                       (expected_s(costs, before.n_answers, before.n_rows) + before.made_s);
    for (uint32_t i = 1; i <= n; i++) {
        next *= right;
        ids += next;
        const double all_made_s = before.made_s + made_s * i;
        const double rate =
            ids / (expected_s(costs, before.n_answers, before.n_rows + i) + all_made_s);
        if (rate > best_rate) {
            best_rate = rate;
            step->n_rows = before.n_rows + i;
            step->n_ids = ids;
            step->made_s = all_made_s;
        }
    }
    return step->n_rows - before.n_rows;
}

static uint32_t room_for(const struct tn_draft_step *step, uint32_t n)
{
    return TN_MIN(n, TN_DRAFT_MAX_ROWS - TN_MIN(step->n_rows, TN_DRAFT_MAX_ROWS));
}

uint32_t tn_draft_choose(struct tn_draft_odds *odds, const struct tn_draft_costs *costs,
                         struct tn_draft_step *step, const uint32_t *ids, uint32_t n,
                         uint32_t n_match)
{
    n = room_for(step, n);
    if (n == 0)
        return 0;
    const uint32_t draft_class = class_of(n_match);
    uint32_t count = 0;
    if (may_draft(costs, step->n_answers))
        count = add_best(step, costs, n, odds_of(odds, draft_class), 0);
    if (count > 0 || odds->of_text.n_draft == 0) /* the draft under comparison is finished first */
        start_comparing(&odds->of_text, ids, count > 0 ? count : n, draft_class);
    return count;
}

uint32_t tn_draft_choose_made(struct tn_draft_odds *odds, const struct tn_draft_costs *costs,
                              struct tn_draft_step *step, uint32_t n)
{
    n = room_for(step, n); /* 0 for more answers than times are kept for */
    if (n == 0 || !may_draft(costs, step->n_answers))
        return 0;
    const double plain = costs->step_s[step->n_answers];
    const double made_s = costs->made_s > 0 ? costs->made_s : MADE_UNKNOWN * plain;
    uint32_t count = add_best(step, costs, n, odds_of(odds, TN_DRAFT_OF_HEAD), made_s);
    if (count == 0 && ++odds->n_refused >= STEPS_REFUSED) {
        count = 1;
        step->n_rows++;
        step->made_s += made_s;
    }
    odds->n_refused = count > 0 ? 0 : odds->n_refused;
    return count;
}

/* ---- drafter ---- */

tern_status tn_drafter_init(struct tn_drafter *d, const uint32_t *ids, size_t n_ids,
                            uint32_t capacity, struct tern_error *err)
{
    tn_draft_odds_init(&d->odds);
    tern_status status = d->on_draft ? tn_ok(err) : tn_matcher_init(&d->matcher, capacity, err);
    for (size_t i = 0; i < n_ids && status == TERN_OK; i++)
        tn_matcher_add(&d->matcher, ids[i]);
    return status;
}

void tn_drafter_fini(struct tn_drafter *d)
{
    tn_matcher_fini(&d->matcher);
}

void tn_drafter_add_chosen(struct tn_drafter *d, uint32_t id)
{
    tn_draft_odds_record(&d->odds, id);
    tn_matcher_add(&d->matcher, id);
}

/* Drafts of the head, or those of a callback in their place: then the head's time is measured. */
static uint32_t draft_by_head(struct tn_drafter *d, const struct tn_draft_costs *costs,
                              const struct tn_draft_maker *head, struct tn_draft_step *step,
                              uint32_t *ids, uint32_t n_max)
{
    const struct tn_draft_step before = *step;
    uint32_t n = d->verify_all ? n_max : tn_draft_choose_made(&d->odds, costs, step, n_max);
    n = n > 0 ? head->make(head->arg, ids, n) : 0;
    if (n > 0 && d->on_draft)
        n = TN_MIN(d->on_draft(d->arg, ids, n), n);
    if (n == 0)
        *step = before;
    else
        tn_draft_odds_try(&d->odds, ids, n);
    return n;
}

/* Is a draft of the head more likely right than one that follows n_match equal ids? */
static bool is_head_better(const struct tn_draft_odds *odds, uint32_t n_match)
{
    return odds_of(odds, TN_DRAFT_OF_HEAD) > odds_of(odds, class_of(n_match));
}

uint32_t tn_drafter_next(struct tn_drafter *d, const struct tn_draft_costs *costs,
                         const struct tn_draft_maker *head, struct tn_draft_step *step,
                         uint32_t *ids, uint32_t n_max)
{
    uint32_t n, n_match = MAX_MATCH; /* drafts of a callback count as the longest match */
    n_max = TN_MIN(n_max, d->n_draft);
    if (n_max == 0)
        return 0;
    if (d->on_draft && head)
        return draft_by_head(d, costs, head, step, ids, n_max);
    if (d->on_draft)
        n = TN_MIN(d->on_draft(d->arg, ids, n_max), n_max);
    else
        n = tn_matcher_draft(&d->matcher, ids, n_max, &n_match);
    struct tn_draft_step with_text = *step;
    if (!d->verify_all)
        n = tn_draft_choose(&d->odds, costs, &with_text, ids, n, n_match);
    if (head && (n == 0 || is_head_better(&d->odds, n_match))) {
        uint32_t made[TERN_MAX_DRAFT];
        const uint32_t n_made = draft_by_head(d, costs, head, step, made, n_max);
        if (n_made > 0) {
            memcpy(ids, made, n_made * sizeof *ids);
            return n_made;
        }
    }
    *step = with_text;
    return n;
}
