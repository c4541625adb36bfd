/* SPDX-License-Identifier: MIT
 *
 * The drafts for a text, and how many of them the plan verifies; without a model, with invented
 * times.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/rng.h"
#include "engine/draft.h"

/* ---- matcher ---- */

static struct tn_matcher matcher_of(const uint32_t *ids, uint32_t n, uint32_t capacity)
{
    struct tn_matcher m;
    assert_int_equal(tn_matcher_init(&m, capacity, NULL), TERN_OK);
    for (uint32_t i = 0; i < n; i++)
        tn_matcher_add(&m, ids[i]);
    return m;
}

static void check_draft(const uint32_t *text, uint32_t n, const uint32_t *want, uint32_t n_want,
                        uint32_t n_match)
{
    struct tn_matcher m = matcher_of(text, n, 64);
    uint32_t got[TERN_MAX_DRAFT], match;
    assert_int_equal(tn_matcher_draft(&m, got, n_want ? n_want : TERN_MAX_DRAFT, &match), n_want);
    assert_int_equal(match, n_match);
    if (n_want)
        assert_memory_equal(got, want, n_want * sizeof *want);
    tn_matcher_fini(&m);
}

#define IDS(...) (const uint32_t[]){__VA_ARGS__}, TN_COUNT_OF(((const uint32_t[]){__VA_ARGS__}))

static void continuations_are_drafted(void **state)
{
    (void)state;
    check_draft(IDS(1, 2, 3, 4, 5, 9, 2, 3), IDS(4, 5, 9), 2);
    check_draft(IDS(7, 1, 2, 3, 4, 7, 1, 2), IDS(3, 4, 7, 1), 3);
    /* The longest match wins; of several, the latest. */
    check_draft(IDS(8, 1, 2, 50, 9, 1, 2, 60, 8, 1, 2), IDS(50, 9), 3);
    check_draft(IDS(1, 2, 50, 9, 1, 2, 60, 3, 1, 2), IDS(60, 3), 2);
    /* A period is continued. */
    check_draft(IDS(5, 6, 5, 6, 5, 6), IDS(5, 6, 5, 6, 5, 6, 5), 4);
    check_draft(IDS(4, 4, 4), IDS(4, 4, 4), 2);
    /* There is no earlier occurrence. */
    check_draft(IDS(1, 2, 3, 4, 5), NULL, 0, 0);
    check_draft(IDS(1, 2, 3, 2), NULL, 0, 0);
    check_draft(IDS(1, 1), NULL, 0, 0);
    check_draft(IDS(1), NULL, 0, 0);
}

/* Compared with an exhaustive search, on texts of few different ids. */
static void drafts_equal_a_plain_search(void **state)
{
    (void)state;
    struct tn_rng rng;
    tn_rng_seed(&rng, 3);
    for (int round = 0; round < 300; round++) {
        uint32_t text[40];
        const uint32_t n = 3 + (uint32_t)(tn_rng_next(&rng) % 37);
        for (uint32_t i = 0; i < n; i++)
            text[i] = 1000 + (uint32_t)(tn_rng_next(&rng) % 4);
        uint32_t best = 0, n_best = 1;
        for (uint32_t end = n - 1; end >= 1; end--) { /* matches that end before `end` */
            uint32_t length = 0;
            while (length < end && text[end - 1 - length] == text[n - 1 - length])
                length++;
            if (length > n_best) {
                n_best = length > 32 ? 32 : length;
                best = end;
            }
        }
        struct tn_matcher m = matcher_of(text, n, 64);
        uint32_t got[TERN_MAX_DRAFT], n_match;
        const uint32_t n_got = tn_matcher_draft(&m, got, TERN_MAX_DRAFT, &n_match);
        assert_int_equal(n_got, n_best >= 2 ? TERN_MAX_DRAFT : 0);
        if (n_got) {
            assert_int_equal(n_match, n_best);
            for (uint32_t i = 0; i < TERN_MAX_DRAFT && best + i < n; i++)
                assert_int_equal(got[i], text[best + i]);
        }
        tn_matcher_fini(&m);
    }
}

static void a_full_matcher_drafts_nothing(void **state)
{
    (void)state;
    uint32_t got[TERN_MAX_DRAFT], n_match;
    struct tn_matcher m = matcher_of(IDS(1, 2, 3, 1, 2, 3, 1), 8);
    assert_int_equal(tn_matcher_draft(&m, got, 2, &n_match), 2);
    for (uint32_t i = 0; i < 5; i++)
        tn_matcher_add(&m, 2);
    assert_int_equal(m.n, 8);
    assert_int_equal(tn_matcher_draft(&m, got, 2, &n_match), 0);
    tn_matcher_fini(&m);
}

/* ---- plan ---- */

/* A machine on which each further row costs this share of the first, and a text whose drafts are
 * right with this probability. */
struct world {
    double row_cost, right;
    double interrupted; /* share of steps that take 30 times as long */
    struct tn_rng rng;
    double seconds; /* with drafts */
    uint32_t n_ids, n_drafted;
};

static double random_01(struct world *w)
{
    return (double)(tn_rng_next(&w->rng) >> 11) * 0x1p-53;
}

struct plan {
    struct tn_draft_costs costs;
    struct tn_draft_odds odds;
};

/* One step: a draft of the ids 1 ... 7, a prefix of which is right. */
static void step(struct world *w, struct plan *plan, uint32_t n_match)
{
    static const uint32_t ids[TERN_MAX_DRAFT] = {1, 2, 3, 4, 5, 6, 7};
    struct tn_draft_step s = {1, 1, 1, 0};
    const uint32_t n =
        tn_draft_choose(&plan->odds, &plan->costs, &s, ids, TERN_MAX_DRAFT, n_match);
    assert_true(n <= TERN_MAX_DRAFT);
    assert_int_equal(s.n_rows, 1 + n);
    const double seconds =
        0.02 * (1 + w->row_cost * n) * (random_01(w) < w->interrupted ? 30 : 1);
    uint32_t n_right = 0;
    while (n_right < n && random_01(w) < w->right) {
        n_right++;
        tn_draft_odds_record(&plan->odds, n_right);
    }
    /* After them comes an id that differs from the draft, or any id after the whole draft. */
    const struct tn_draft_trial *trial = &plan->odds.of_text;
    const bool goes_on = n == 0 && trial->n_draft > 0 && random_01(w) < w->right;
    tn_draft_odds_record(&plan->odds, goes_on ? trial->draft[trial->n_compared] : 100);
    tn_draft_costs_record(&plan->costs, 1, n + 1, n_right + 1, seconds, 0);
    w->seconds += seconds;
    w->n_ids += n_right + 1;
    w->n_drafted += n;
}

static struct world run_world(double row_cost, double right, uint32_t n_steps)
{
    struct world w = {.row_cost = row_cost, .right = right};
    struct plan plan = {0};
    tn_rng_seed(&w.rng, 11);
    tn_draft_odds_init(&plan.odds);
    for (uint32_t i = 0; i < n_steps; i++)
        step(&w, &plan, 4);
    return w;
}

static double gain(const struct world *w)
{
    return w->n_ids * 0.02 / w->seconds;
}

static void drafts_are_never_slower(void **state)
{
    (void)state;
    static const double costs[] = {0.02, 0.2, 0.5, 0.8, 1.0, 1.5};
    static const double rights[] = {0, 0.1, 0.3, 0.5, 0.7, 0.9, 1};
    for (size_t i = 0; i < TN_COUNT_OF(costs); i++)
        for (size_t k = 0; k < TN_COUNT_OF(rights); k++) {
            const struct world w = run_world(costs[i], rights[k], 2000);
            assert_true(gain(&w) > 0.985);
        }
}

static void useful_drafts_are_made(void **state)
{
    (void)state;
    struct world w = run_world(0.2, 1.0, 1000); /* 8 ids for 2.4 times the time */
    assert_true(gain(&w) > 2.8);
    w = run_world(0.2, 0.7, 1000);
    assert_true(gain(&w) > 1.4);
    w = run_world(0.5, 0.9, 1000);
    assert_true(gain(&w) > 1.2);
    w = run_world(0.02, 0.3, 1000); /* memory-bound: even bad drafts cost nothing */
    assert_true(gain(&w) > 1.2);
}

static void useless_drafts_are_not_made(void **state)
{
    (void)state;
    struct world w = run_world(1.0, 0.9, 2000); /* rows cost as much as steps */
    assert_true(w.n_drafted < 60);
    w = run_world(0.5, 0.02, 2000);
    assert_true(w.n_drafted < 60);
}

/* The plan notices when a text begins to repeat itself, and when it stops. */
static void the_plan_follows_the_text(void **state)
{
    (void)state;
    struct world w = {.row_cost = 0.3, .right = 0};
    struct plan plan = {0};
    tn_rng_seed(&w.rng, 2);
    tn_draft_odds_init(&plan.odds);
    for (int phase = 0; phase < 6; phase++) {
        const struct world before = w;
        w.right = phase % 2 ? 0.95 : 0.0;
        for (int i = 0; i < 400; i++)
            step(&w, &plan, 4);
        const double got = (w.n_ids - before.n_ids) * 0.02 / (w.seconds - before.seconds);
        if (!(phase % 2 ? got > 1.5 : got > 0.95))
            fail_msg("phase %d: %.3f times the speed", phase, got);
    }
}

/* Long matches are trusted even if short ones are mostly wrong. */
static void matches_of_different_lengths_are_distinguished(void **state)
{
    (void)state;
    struct world w = {.row_cost = 0.4};
    struct plan plan = {0};
    uint32_t drafted[2] = {0, 0};
    tn_rng_seed(&w.rng, 2);
    tn_draft_odds_init(&plan.odds);
    for (int i = 0; i < 4000; i++) {
        const uint32_t before = w.n_drafted, is_long = i / 10 % 2;
        w.right = is_long ? 0.95 : 0.05;
        step(&w, &plan, is_long ? 20 : 2);
        drafted[is_long] += w.n_drafted - before;
    }
    assert_true(drafted[1] > 2000);
    assert_true(drafted[0] < drafted[1] / 10);
}

/* Steps that other programs prolong make drafts look neither profitable nor useless. */
static void interruptions_do_not_deceive(void **state)
{
    (void)state;
    for (int pays = 0; pays < 2; pays++) {
        struct world w = {.row_cost = pays ? 0.2 : 1.2, .right = 0.9, .interrupted = 0.1};
        struct plan plan = {0};
        tn_rng_seed(&w.rng, 5);
        tn_draft_odds_init(&plan.odds);
        for (int i = 0; i < 4000; i++)
            step(&w, &plan, 4);
        assert_true(pays ? w.n_drafted > 8000 : w.n_drafted < 250);
    }
}

/* ---- draft heads ---- */

static const uint32_t made[TERN_MAX_DRAFT] = {1, 2, 3, 4, 5, 6, 7};

/* One step with a head that makes an id in made_cost of a step's time. */
static void step_of_head(struct world *w, struct plan *plan, double made_cost)
{
    struct tn_draft_step s = {1, 1, 1, 0};
    const uint32_t n = tn_draft_choose_made(&plan->odds, &plan->costs, &s, TERN_MAX_DRAFT);
    const double made_s = 0.02 * made_cost * n, seconds = 0.02 * (1 + w->row_cost * n);
    uint32_t n_right = 0;
    assert_int_equal(s.n_rows, 1 + n);
    tn_draft_costs_record_made(&plan->costs, n, made_s);
    if (n > 0)
        tn_draft_odds_try(&plan->odds, made, n);
    while (n_right < n && random_01(w) < w->right)
        tn_draft_odds_record(&plan->odds, ++n_right);
    tn_draft_odds_record(&plan->odds, 100);
    tn_draft_costs_record(&plan->costs, 1, n + 1, n_right + 1, seconds, made_s);
    w->seconds += seconds + made_s;
    w->n_ids += n_right + 1;
    w->n_drafted += n;
}

static struct world run_head(double row_cost, double made_cost, double right, uint32_t n_steps)
{
    struct world w = {.row_cost = row_cost, .right = right};
    struct plan plan = {0};
    tn_rng_seed(&w.rng, 3);
    tn_draft_odds_init(&plan.odds);
    for (uint32_t i = 0; i < n_steps; i++)
        step_of_head(&w, &plan, made_cost);
    return w;
}

static void a_head_is_never_slower(void **state)
{
    (void)state;
    static const double costs[] = {0.02, 0.2, 0.5, 1.0}, rights[] = {0, 0.2, 0.5, 0.8, 1};
    for (size_t i = 0; i < TN_COUNT_OF(costs); i++)
        for (size_t j = 0; j < TN_COUNT_OF(costs); j++)
            for (size_t k = 0; k < TN_COUNT_OF(rights); k++) {
                const struct world w = run_head(costs[i], costs[j], rights[k], 3000);
                if (!(gain(&w) > 0.98))
                    fail_msg("rows %g, made %g, right %g: %.3f times the speed", costs[i],
                             costs[j], rights[k], gain(&w));
            }
}

static void a_useful_head_drafts(void **state)
{
    (void)state;
    struct world w = run_head(0.15, 0.08, 0.8, 1000); /* two drafts: 2.44 ids in 1.46 of the time */
    assert_true(gain(&w) > 1.5);
    w = run_head(0.3, 0.3, 0.3, 3000); /* 1.3 ids in 1.6 of the time */
    assert_true(w.n_drafted < 150);
    w = run_head(0.02, 0.9, 0.8, 3000); /* rows are nearly free, the head is not */
    assert_true(w.n_drafted < 150);
}

/* A head that was useless for a while is tried again. */
static void a_head_gets_another_chance(void **state)
{
    (void)state;
    struct world w = {.row_cost = 0.2, .right = 0};
    struct plan plan = {0};
    tn_rng_seed(&w.rng, 3);
    tn_draft_odds_init(&plan.odds);
    for (int i = 0; i < 2000; i++)
        step_of_head(&w, &plan, 0.1);
    assert_true(w.n_drafted < 100);
    w = (struct world){.row_cost = 0.2, .right = 0.9, .rng = w.rng};
    for (int i = 0; i < 4000; i++)
        step_of_head(&w, &plan, 0.1);
    assert_true(gain(&w) > 1.3);
}

static uint32_t make_made(void *arg, uint32_t *ids, uint32_t n)
{
    ++*(uint32_t *)arg;
    memcpy(ids, made, n * sizeof *ids);
    return n;
}

/* Repeated text is drafted from itself once that was right more often than the head. */
/* The costs hold no time for so many rows. */
static void many_answers_get_no_drafts(void **state)
{
    (void)state;
    struct plan plan = {0};
    struct tn_draft_step s = {64, 64, 64, 0};
    tn_draft_odds_init(&plan.odds);
    assert_int_equal(
        tn_draft_choose(&plan.odds, &plan.costs, &s, made, TERN_MAX_DRAFT, TERN_MAX_DRAFT), 0);
    assert_int_equal(tn_draft_choose_made(&plan.odds, &plan.costs, &s, TERN_MAX_DRAFT), 0);
    assert_int_equal(s.n_rows, 64);
}

static void the_better_source_is_asked(void **state)
{
    (void)state;
    struct tn_drafter d = {.n_draft = 3};
    struct tn_draft_costs costs = {0};
    struct tern_error e;
    uint32_t n_made = 0, ids[TERN_MAX_DRAFT];
    const struct tn_draft_maker head = {make_made, &n_made};
    assert_int_equal(tn_drafter_init(&d, NULL, 0, 4096, &e), TERN_OK);
    for (uint32_t i = 0; i < 1000; i++) { /* the head is always wrong: the text counts 10 ... 29 */
        struct tn_draft_step s = {1, 1, 1, 0};
        const uint32_t n = tn_drafter_next(&d, &costs, &head, &s, ids, TERN_MAX_DRAFT);
        assert_true(n <= 3 && s.n_rows == 1 + n);
        tn_draft_costs_record_made(&costs, n, 0.001);
        tn_drafter_add_chosen(&d, 10 + i % 20);
        tn_draft_costs_record(&costs, 1, 1 + n, 1, 0.02, 0);
    }
    const uint32_t before = n_made;
    for (uint32_t i = 1000; i < 1100; i++) {
        struct tn_draft_step s = {1, 1, 1, 0};
        const uint32_t n = tn_drafter_next(&d, &costs, &head, &s, ids, TERN_MAX_DRAFT);
        for (uint32_t k = 0; k < n; k++)
            assert_int_equal(ids[k], 10 + (i + k) % 20);
        tn_drafter_add_chosen(&d, 10 + i % 20);
    }
    assert_true(before < 100);
    assert_true(n_made <= before + 2);
    tn_drafter_fini(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(continuations_are_drafted),
        cmocka_unit_test(drafts_equal_a_plain_search),
        cmocka_unit_test(a_full_matcher_drafts_nothing),
        cmocka_unit_test(drafts_are_never_slower),
        cmocka_unit_test(useful_drafts_are_made),
        cmocka_unit_test(useless_drafts_are_not_made),
        cmocka_unit_test(the_plan_follows_the_text),
        cmocka_unit_test(interruptions_do_not_deceive),
        cmocka_unit_test(matches_of_different_lengths_are_distinguished),
        cmocka_unit_test(a_head_is_never_slower),
        cmocka_unit_test(a_useful_head_drafts),
        cmocka_unit_test(a_head_gets_another_chance),
        cmocka_unit_test(many_answers_get_no_drafts),
        cmocka_unit_test(the_better_source_is_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
