/* SPDX-License-Identifier: MIT
 *
 * How ids are chosen for texts that fill a gap, and further ids that end an answer: distributions
 * of a few ids, set by the callback for logits.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "demo.h"
#include "events.h"

#define MAX_IDS 16u
#define N_SEEDS 60u

static struct demo demo;

static int setup(void **state)
{
    (void)state;
    return !demo_open(&demo, TERN_BUILD_DIR "/test_fill_choice.tern", 1);
}

static int teardown(void **state)
{
    (void)state;
    demo_close(&demo);
    return 0;
}

/* Probabilities of all ids that are possible. */
struct distribution {
    uint32_t ids[MAX_IDS];
    float p[MAX_IDS];
    uint32_t n;
};

static uint32_t add(struct distribution *d, uint32_t id, float p)
{
    assert_true(id < demo.vocab && d->n < MAX_IDS);
    d->ids[d->n] = id;
    d->p[d->n++] = p;
    return id;
}

static uint32_t id_of(const char *text)
{
    return tern_tokenizer_find(tern_model_tokenizer(demo.model), text, strlen(text));
}

static void set_logits(void *arg, float *logits, uint32_t n_vocab)
{
    const struct distribution *d = arg;
    for (uint32_t i = 0; i < n_vocab; i++)
        logits[i] = -INFINITY;
    for (uint32_t i = 0; i < d->n; i++)
        logits[d->ids[i]] = logf(d->p[i]);
}

static struct tern_request request_of(struct distribution *d)
{
    static const uint32_t prompt[] = {4080, 507};
    return (struct tern_request){.ids = prompt, .n_ids = 2, .max_tokens = 1, .fits_gap = true,
                                 .sampler = {.temperature = 1.0f, .top_p = 1.0f,
                                             .repeat_penalty = 1.0f},
                                 .adjust = set_logits, .arg = d};
}

/* Counts how often each id of the distribution is chosen, over many seeds.  Returns how many
 * answers ended with an end of text. */
static uint32_t choose(uint32_t counts[MAX_IDS], struct tern_request *r,
                       const struct distribution *d)
{
    struct tern_scheduler *s;
    const struct tern_scheduler_params params = {.n_sequences = 1, .n_ctx = 64};
    uint32_t n_ends = 0;
    uint64_t id;
    memset(counts, 0, MAX_IDS * sizeof *counts);
    assert_ok(tern_scheduler_create(&s, demo.engine, demo.model, &params, &e));
    for (r->sampler.seed = 0; r->sampler.seed < N_SEEDS; r->sampler.seed++) {
        struct events events = {.scheduler = s};
        assert_ok(tern_scheduler_submit(s, r, &id, &e));
        for (const struct tern_event *event; (event = events_next(&events));) {
            for (uint32_t i = 0; i < d->n && event->kind == TERN_EVENT_TOKEN; i++)
                counts[i] += event->id == d->ids[i];
            n_ends += event->kind == TERN_EVENT_END && event->result.stop == TERN_STOP_EOS;
        }
    }
    tern_scheduler_free(s);
    return n_ends;
}

static void likely_ends_are_chosen(void **state)
{
    (void)state;
    const uint32_t stop = tern_model_config(demo.model)->stop_ids[0];
    struct distribution d = {.n = 0};
    struct tern_request r = request_of(&d);
    uint32_t counts[MAX_IDS];
    add(&d, id_of(" king"), 0.5f);
    add(&d, id_of(" queen"), 0.38f);
    add(&d, stop, 0.12f);
    assert_int_equal(choose(counts, &r, &d), N_SEEDS); /* 3 * 3 * 0.12 > 0.88 */
    r.fits_gap = false;
    assert_in_range(choose(counts, &r, &d), 1, N_SEEDS / 2);
    r.fits_gap = true, r.ignore_eos = true;
    assert_int_equal(choose(counts, &r, &d), 0);
    assert_int_equal(counts[2], 0);
    r.ignore_eos = false, d.p[2] = 0.001f;
    assert_in_range(choose(counts, &r, &d), 0, 2);
    assert_in_range(counts[0], 1, N_SEEDS - 1);
    assert_in_range(counts[1], 1, N_SEEDS - 1);
}

static void ids_with_the_same_beginning_are_merged(void **state)
{
    (void)state;
    struct distribution d = {.n = 0};
    struct tern_request r = request_of(&d);
    uint32_t counts[MAX_IDS];
    add(&d, id_of(" queen"), 0.55f);
    add(&d, id_of(" k"), 0.2f);
    add(&d, id_of(" king"), 0.25f);
    assert_int_equal(choose(counts, &r, &d), 0);
    assert_in_range(counts[0], 1, N_SEEDS - 1);
    assert_int_equal(counts[1], 0);
    assert_in_range(counts[2], N_SEEDS / 4, N_SEEDS - 1); /* with 0.45 */
    assert_int_equal(counts[0] + counts[2], N_SEEDS);
}

static void unlikely_ids_are_dropped(void **state)
{
    (void)state;
    static const char *const words[] = {" king", " queen", " wood", " house", " old", " man"};
    struct distribution d = {.n = 0};
    struct tern_request r = request_of(&d);
    uint32_t counts[MAX_IDS];
    for (size_t i = 0; i < TN_COUNT_OF(words); i++)
        add(&d, id_of(words[i]), i == 0 ? 0.17f : 0.166f);
    assert_int_equal(choose(counts, &r, &d), N_SEEDS); /* all below 0.2: the text ends */
    r.ignore_eos = true;
    assert_int_equal(choose(counts, &r, &d), 0);
    assert_int_equal(counts[0], N_SEEDS);
    d.n = 2, d.p[0] = 0.7f, d.p[1] = 0.3f; /* below 1 / (2 + 1) */
    (void)choose(counts, &r, &d);
    assert_int_equal(counts[0], N_SEEDS);
}

static void further_ids_end_an_answer(void **state)
{
    (void)state;
    struct distribution d = {.n = 0};
    struct tern_request r = request_of(&d);
    uint32_t counts[MAX_IDS];
    const uint32_t ends[] = {4085, add(&d, id_of(" queen"), 1.0f), demo.vocab + 5};
    r.fits_gap = false, r.max_tokens = 3;
    assert_int_equal(choose(counts, &r, &d), 0);
    r.end_ids = ends, r.n_end_ids = TN_COUNT_OF(ends);
    assert_int_equal(choose(counts, &r, &d), N_SEEDS);
    assert_int_equal(counts[0], N_SEEDS); /* one each */
    r.ignore_eos = true;
    assert_int_equal(choose(counts, &r, &d), 0);
    assert_int_equal(counts[0], 3 * N_SEEDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(likely_ends_are_chosen),
        cmocka_unit_test(ids_with_the_same_beginning_are_merged),
        cmocka_unit_test(unlikely_ids_are_dropped),
        cmocka_unit_test(further_ids_end_an_answer),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
