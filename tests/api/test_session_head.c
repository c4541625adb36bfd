/* SPDX-License-Identifier: MIT
 *
 * The head of a session on the demo model: a search finds the tokens that all logits give, and
 * pages of rows are released after use.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "engine/engine.h"
#include "engine/session.h"
#include "plat/plat.h"

#define MODEL_PATH TERN_BUILD_DIR "/test_session_head.tern"
#include "session_fixture.h"

/* ---- searched heads ---- */

#define N_CHOSEN 60u
static const uint32_t story[] = {4080, 507, 458, 980};

struct chosen {
    uint32_t ids[N_CHOSEN];
    uint32_t n;
};

static void note_token(void *arg, uint32_t id)
{
    struct chosen *c = arg;
    c->ids[c->n++] = id;
}

/* The ids that tern_generate chooses.  Returns the share of head rows that were computed exactly.
 */
static double choose_with(struct tern_session *s, struct chosen *out,
                          const struct tern_sampler_params *sp)
{
    struct tern_sampler *sampler;
    struct tern_generate_result result;
    struct tern_counters counters;
    assert_ok(tern_sampler_create(&sampler, sp, vocab, &e));
    struct tern_generate_params p = {.sampler = sampler, .max_tokens = N_CHOSEN,
                                     .ignore_eos = true, .on_token = note_token, .arg = out};
    out->n = 0;
    assert_ok(tern_generate(s, story, TN_COUNT_OF(story), &p, &result, &e));
    tern_session_get_counters(s, &counters);
    tern_sampler_free(sampler);
    return counters.head_density;
}

static double choose(struct chosen *out, const struct tern_sampler_params *sp)
{
    struct tern_session *s = open_session(engine, TERN_KV_F16, 0);
    double share = choose_with(s, out, sp);
    tern_session_free(s);
    return share;
}

/* Makes the same choices from all logits of every position. */
static void choose_from_all(struct chosen *out, const struct tern_sampler_params *sp)
{
    struct tern_sampler *sampler;
    struct tern_session *s = open_session(engine, TERN_KV_F16, 0);
    assert_ok(tern_sampler_create(&sampler, sp, vocab, &e));
    tern_sampler_set_exempt(sampler, model->is_control);
    for (size_t i = 0; i < TN_COUNT_OF(story); i++)
        tern_sampler_accept(sampler, story[i]);
    assert_ok(tern_session_eval(s, story, TN_COUNT_OF(story), NULL, &e));
    for (out->n = 0; out->n < N_CHOSEN; out->n++) {
        uint32_t id;
        assert_ok(tern_sampler_sample(sampler, tern_session_logits(s), vocab, model->n_allowed,
                                      &id, &e));
        tern_sampler_accept(sampler, id);
        out->ids[out->n] = id;
        assert_ok(tern_session_eval(s, &id, 1, NULL, &e));
    }
    tern_sampler_free(sampler);
    tern_session_free(s);
}

static void a_searched_head_chooses_the_same_tokens(void **state)
{
    (void)state;
    static const struct {
        bool is_searched;
        struct tern_sampler_params params;
    } ways[] = {
        {true, {.top_p = 1, .repeat_penalty = 1}},
        {true, {.top_p = 1, .repeat_penalty = 1.5f, .presence_penalty = 2, .penalty_last = 64}},
        /* Penalties that make repeated tokens more likely: any of them may become the best. */
        {true, {.top_p = 1, .repeat_penalty = 0.5f, .presence_penalty = -2, .penalty_last = 8}},
        {true, {.temperature = 0.7f, .top_k = 40, .top_p = 0.95f, .repeat_penalty = 1.1f,
                .presence_penalty = 0.6f, .penalty_last = 64}},
        {true, {.temperature = 1.5f, .top_k = 2, .top_p = 1, .repeat_penalty = 1,
                .frequency_penalty = -1.5f, .penalty_last = 16}},
        {true, {.temperature = 2, .top_k = 64, .top_p = 1, .min_p = 0.01f, .repeat_penalty = 1}},
        {false, {.temperature = 2, .top_k = 257, .top_p = 1, .repeat_penalty = 1}},
        {false, {.temperature = 1, .top_p = 0.9f, .repeat_penalty = 1.1f, .penalty_last = 64}},
    };
    for (size_t i = 0; i < TN_COUNT_OF(ways); i++)
        for (uint32_t seed = 1; seed <= 3; seed++) {
            struct tern_sampler_params sp = ways[i].params;
            struct chosen got, want;
            sp.seed = seed;
            double share = choose(&got, &sp);
            choose_from_all(&want, &sp);
            assert_int_equal(got.n, want.n);
            assert_memory_equal(got.ids, want.ids, sizeof got.ids);
            assert_int_equal(share < 1, ways[i].is_searched);
        }
}

/* ---- released pages ---- */

static _Atomic uint64_t n_head_bytes;

static void count_head_rows(void *arg, const void *rows, size_t n_bytes)
{
    (void)arg, (void)rows;
    n_head_bytes += n_bytes;
}

static void pages_are_given_back(void **state)
{
    (void)state;
    static const struct {
        struct tern_sampler_params params;
        /* a search releases pages after each stage; otherwise the head is released as a whole */
        bool is_search;
    } ways[] = {{{.top_p = 1, .repeat_penalty = 1}, true},
                {{.temperature = 1, .top_p = 0.9f, .repeat_penalty = 1, .seed = 5}, false}};
    const uint64_t head_bytes = (uint64_t)vocab * tern_model_config(model)->hidden; /* q8 */
    for (size_t i = 0; i < TN_COUNT_OF(ways); i++) {
        struct chosen want, got, counted;
        struct tern_session *s = open_session(engine, TERN_KV_F16, 0);
        choose_with(s, &want, &ways[i].params);
        tern_session_free(s);
        struct tern_session_params p = {.n_ctx = 512, .kv = TERN_KV_F16, .drop_pages = true};
        assert_ok(tern_session_create(&s, engine, model, &p, &e));
        choose_with(s, &got, &ways[i].params);
        assert_int_equal(got.n, want.n);
        assert_memory_equal(got.ids, want.ids, sizeof got.ids);

        tern_session_truncate(s, 0);
        n_head_bytes = 0;
        s->work.forward.after_head_rows = count_head_rows;
        choose_with(s, &counted, &ways[i].params);
        assert_true(n_head_bytes >= N_CHOSEN * head_bytes);
        assert_true(ways[i].is_search || n_head_bytes % head_bytes == 0);
        tern_session_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_searched_head_chooses_the_same_tokens),
        cmocka_unit_test(pages_are_given_back),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
