/* SPDX-License-Identifier: MIT
 *
 * Drafts on the demo model: text, ids, the end of the text, and the state of sampler and session
 * equal those without drafts, whatever is drafted; and the counters are right.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/rng.h"
#include "demo.h"
#include "tern/tern.h"
#include "tern/tokenizer.h"

#define MODEL_PATH TERN_BUILD_DIR "/test_draft.tern"
#define MAX_IDS 160u
#define N_CTX 192u

static struct demo demo;
static struct tern_engine *engine;
static struct tern_model *model;
static uint32_t vocab;
static struct tern_ids prompt;

static int setup(void **state)
{
    (void)state;
    static const char text[] = "The king said: who goes there? The king said: who goes";
    struct tern_error e;
    if (!demo_open(&demo, MODEL_PATH, 2))
        return 1;
    engine = demo.engine;
    model = demo.model;
    vocab = demo.vocab;
    return tern_tokenizer_encode(tern_model_tokenizer(model), text, sizeof text - 1,
                                 TERN_ENCODE_ADD_SPECIAL, &prompt, &e) != TERN_OK;
}

static int teardown(void **state)
{
    (void)state;
    tern_ids_free(&prompt);
    demo_close(&demo);
    return 0;
}

/* ---- runs ---- */

enum source { OFF, FROM_TEXT, RECORDED, RANDOM };

/* How to generate, and which drafts to use. */
struct way {
    struct tern_sampler_params sampler;
    const char *const *stops;
    size_t n_stops;
    uint32_t max_tokens, n_ctx, n_batch;
    bool ignore_eos;
    enum source source;
    uint32_t n_draft, wrong; /* RECORDED: position p is wrong when p % wrong == 0; 0: none */
    const struct answer *recorded;
};

struct answer {
    uint32_t ids[2 * MAX_IDS];
    char text[8192];
    size_t n_ids, n_text, n_first; /* n_first: ids of the first of two calls */
    struct tern_generate_result result[2];
    uint32_t past[2];
    uint32_t cached[N_CTX];
    float *logits; /* after the second call */
    /* state during generation */
    const struct way *way;
    struct tn_rng rng;
};

static bool on_text(void *arg, const char *text, size_t n)
{
    struct answer *a = arg;
    assert_true(a->n_text + n < sizeof a->text);
    memcpy(a->text + a->n_text, text, n);
    a->n_text += n;
    return true;
}

static void on_token(void *arg, uint32_t id)
{
    struct answer *a = arg;
    assert_true(a->n_ids < TN_COUNT_OF(a->ids));
    a->ids[a->n_ids++] = id;
}

static uint32_t on_draft(void *arg, uint32_t *ids, uint32_t n_max)
{
    struct answer *a = arg;
    const struct way *w = a->way;
    for (uint32_t i = 0; i < n_max; i++) {
        const size_t at = a->n_ids + i;
        if (w->source == RANDOM)
            ids[i] = (uint32_t)(tn_rng_next(&a->rng) % vocab);
        else if (at >= w->recorded->n_ids)
            return i;
        else
            ids[i] = (w->recorded->ids[at] + (w->wrong && at % w->wrong == 0)) % vocab;
    }
    return w->source == RANDOM ? (uint32_t)(tn_rng_next(&a->rng) % (n_max + 1)) : n_max;
}

/* Generates in two calls, the second one continuing the first with the same sampler. */
static void write_answer(struct answer *a, const struct way *w)
{
    struct tern_session *s;
    struct tern_sampler *sampler;
    memset(a, 0, sizeof *a);
    a->way = w;
    tn_rng_seed(&a->rng, 5);
    const struct tern_session_params sp = {.n_ctx = w->n_ctx ? w->n_ctx : N_CTX,
                                           .n_batch = w->n_batch, .kv = TERN_KV_Q8,
                                           .n_draft = w->source == OFF ? 0 : w->n_draft};
    assert_ok(tern_session_create(&s, engine, model, &sp, &e));
    assert_ok(tern_sampler_create(&sampler, &w->sampler, vocab, &e));
    struct tern_generate_params p = {
        .sampler = sampler, .max_tokens = w->max_tokens ? w->max_tokens : 60,
        .ignore_eos = w->ignore_eos, .stop_strings = w->stops, .n_stop_strings = w->n_stops,
        .on_text = on_text, .on_token = on_token, .arg = a, .n_draft = sp.n_draft,
        .on_draft = w->source >= RECORDED ? on_draft : NULL, .verify_all = true,
    };
    uint32_t ids[N_CTX];
    size_t n = prompt.n;
    memcpy(ids, prompt.ids, n * sizeof *ids);
    for (int call = 0; call < 2; call++) {
        assert_ok(tern_generate(s, ids, n, &p, &a->result[call], &e));
        a->past[call] = tern_session_n_past(s);
        if (call == 0)
            a->n_first = a->n_ids;
        n = a->past[call];
        memcpy(ids, tern_session_ids(s), n * sizeof *ids);
    }
    memcpy(a->cached, ids, n * sizeof *ids);
    assert_non_null(tern_session_logits(s));
    a->logits = test_malloc(vocab * sizeof(float));
    tern_session_truncate(s, (uint32_t)n - 1);
    assert_ok(tern_session_eval(s, ids + n - 1, 1, NULL, &e)); /* on the remaining cache */
    memcpy(a->logits, tern_session_logits(s), vocab * sizeof(float));
    tern_sampler_free(sampler);
    tern_session_free(s);
}

static void assert_same(const struct answer *got, const struct answer *want)
{
    assert_int_equal(got->n_ids, want->n_ids);
    assert_memory_equal(got->ids, want->ids, want->n_ids * sizeof *want->ids);
    assert_int_equal(got->n_text, want->n_text);
    assert_memory_equal(got->text, want->text, want->n_text);
    for (int call = 0; call < 2; call++) {
        assert_int_equal(got->result[call].stop, want->result[call].stop);
        assert_int_equal(got->result[call].n_new, want->result[call].n_new);
        assert_int_equal(got->past[call], want->past[call]);
    }
    assert_memory_equal(got->cached, want->cached, want->past[1] * sizeof *want->cached);
    assert_memory_equal(got->logits, want->logits, vocab * sizeof(float));
}

/* The counters of a result are consistent: a step yields one id plus one per accepted draft; the
 * first id comes from the prompt, and the end of a text ends its step early. */
static void check_counts(const struct answer *a)
{
    for (int call = 0; call < 2; call++) {
        const struct tern_generate_result *r = &a->result[call];
        assert_true(r->n_accepted <= r->n_drafted);
        assert_true(r->n_new <= 1 + r->n_steps + r->n_accepted);
        assert_true(r->n_new + 1 >= 1 + r->n_steps + r->n_accepted);
    }
}

static void compare_all(const struct way *base)
{
    struct answer *want = test_malloc(sizeof *want), *got = test_malloc(sizeof *got);
    write_answer(want, base);
    assert_int_equal(want->result[0].n_drafted, 0);
    const struct way ways[] = {
        {.source = FROM_TEXT, .n_draft = 7}, {.source = FROM_TEXT, .n_draft = 2},
        {.source = RECORDED, .n_draft = 7},  {.source = RECORDED, .n_draft = 4, .wrong = 2},
        {.source = RECORDED, .n_draft = 7, .wrong = 3}, {.source = RANDOM, .n_draft = 5},
    };
    for (size_t i = 0; i < TN_COUNT_OF(ways); i++) {
        struct way w = *base;
        w.source = ways[i].source;
        w.n_draft = ways[i].n_draft;
        w.wrong = ways[i].wrong;
        w.recorded = want;
        write_answer(got, &w);
        assert_same(got, want);
        check_counts(got);
        test_free(got->logits);
    }
    test_free(want->logits);
    test_free(want);
    test_free(got);
}

static struct tern_sampler_params greedy(void)
{
    struct tern_sampler_params p;
    tern_sampler_params_default(&p);
    p.temperature = 0;
    p.repeat_penalty = 1;
    p.presence_penalty = 0;
    return p;
}

/* ---- tests ---- */

static void same_text_at_any_temperature(void **state)
{
    (void)state;
    static const float temperatures[] = {0, 0.3f, 0.7f, 1.0f, 1.6f};
    for (size_t i = 0; i < TN_COUNT_OF(temperatures); i++)
        for (uint64_t seed = 0; seed < 2; seed++) {
            struct way w = {.sampler = greedy()};
            w.sampler.temperature = temperatures[i];
            w.sampler.seed = seed;
            compare_all(&w);
        }
}

static void same_text_with_penalties(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 2; seed++)
        for (int i = 0; i < 5; i++) {
            struct way w = {.sampler = greedy(), .ignore_eos = i % 2};
            w.sampler.seed = seed;
            w.sampler.temperature = i < 2 ? 0.0f : 0.9f;
            w.sampler.repeat_penalty = i == 1 ? 1.0f : 1.3f;
            w.sampler.presence_penalty = i == 1 ? 0.8f : 0.0f;
            w.sampler.frequency_penalty = i == 3 ? 0.5f : 0.0f;
            w.sampler.penalty_last = i == 4 ? 5 : 64;
            w.sampler.top_k = i == 2 ? 0 : 40;
            w.sampler.min_p = i == 3 ? 0.05f : 0.0f;
            compare_all(&w);
        }
}

static void same_end_of_the_text(void **state)
{
    (void)state;
    static const char *const stops[] = {"e k", "the", ".\n", " that", "zzz"};
    for (size_t i = 0; i < TN_COUNT_OF(stops); i++) {
        struct way w = {.sampler = greedy(), .stops = &stops[i], .n_stops = 1};
        compare_all(&w);
        w.n_stops = TN_COUNT_OF(stops) - i;
        w.sampler.temperature = 0.8f;
        compare_all(&w);
    }
    for (uint32_t max = 1; max <= 12; max++) {
        struct way w = {.sampler = greedy(), .max_tokens = max, .ignore_eos = true};
        compare_all(&w);
    }
    for (uint32_t room = 1; room <= 10; room++) { /* the context ends */
        struct way w = {.sampler = greedy(), .n_ctx = (uint32_t)prompt.n + room,
                        .ignore_eos = true};
        compare_all(&w);
    }
    for (uint32_t n_batch = 1; n_batch <= 9; n_batch += 2) {
        struct way w = {.sampler = greedy(), .n_batch = n_batch};
        compare_all(&w);
    }
}

/* If every draft is known to be right or wrong, the counters are known. */
static void counts_are_right(void **state)
{
    (void)state;
    struct answer *want = test_malloc(sizeof *want), *got = test_malloc(sizeof *got);
    struct way w = {.sampler = greedy(), .max_tokens = 49, .ignore_eos = true};
    write_answer(want, &w);
    assert_int_equal(want->result[0].n_steps, 48);
    w.source = RECORDED;
    w.recorded = want;
    w.n_draft = 3;
    write_answer(got, &w); /* the first id, then 12 steps of 4 */
    assert_int_equal(got->result[0].n_steps, 12);
    assert_int_equal(got->result[0].n_drafted, 36);
    assert_int_equal(got->result[0].n_accepted, 36);
    test_free(got->logits);

    /* the draft of id 1 is right, of id 2 wrong: a step after id 0 yields ids 1 and 2 */
    w.wrong = 2;
    write_answer(got, &w);
    assert_int_equal(got->result[0].n_steps, 24);
    assert_int_equal(got->result[0].n_accepted, 24);
    assert_true(got->result[0].n_drafted > 24 * 2);
    test_free(got->logits);

    w.wrong = 1;
    write_answer(got, &w);
    assert_int_equal(got->result[0].n_steps, 48);
    assert_int_equal(got->result[0].n_accepted, 0);
    test_free(got->logits);
    test_free(want->logits);
    test_free(want);
    test_free(got);
}

static void more_drafts_than_planned_are_refused(void **state)
{
    (void)state;
    struct tern_session *s;
    struct tern_sampler *sampler;
    struct tern_generate_result result;
    const struct tern_sampler_params params = greedy();
    const struct tern_session_params sp = {.n_ctx = 64, .n_draft = 2};
    assert_ok(tern_session_create(&s, engine, model, &sp, &e));
    assert_ok(tern_sampler_create(&sampler, &params, vocab, &e));
    const struct tern_generate_params p = {.sampler = sampler, .max_tokens = 4, .n_draft = 3};
    assert_int_equal(tern_generate(s, prompt.ids, prompt.n, &p, &result, NULL), TERN_USAGE);
    tern_sampler_free(sampler);
    tern_session_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_text_at_any_temperature),
        cmocka_unit_test(same_text_with_penalties),
        cmocka_unit_test(same_end_of_the_text),
        cmocka_unit_test(counts_are_right),
        cmocka_unit_test(more_drafts_than_planned_are_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
