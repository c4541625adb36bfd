/* SPDX-License-Identifier: MIT
 *
 * Answers under a grammar: each is valid for it, whichever rows of the head were computed, whatever
 * runs concurrently, on any number of threads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "events.h"
#include "plat/plat.h"
#include "tern/convert.h"
#include "tern/scheduler.h"

#define N_MODELS 3u
#define MAX_TOKENS 160u
#define MAX_TEXT 4096u

/* Searched heads, and one that is always multiplied as a whole. */
static const enum tern_head_type heads[N_MODELS] = {TERN_HEAD_Q8, TERN_HEAD_Q4, TERN_HEAD_F16};
static struct tern_model *models[N_MODELS];
static struct tern_sysinfo live;

static const char *const schemas[] = {
    "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"},\"age\":{\"type\":"
    "\"integer\"},\"kind\":{\"enum\":[\"cat\",\"dog\",\"bird\"]}},\"required\":[\"name\",\"age\","
    "\"kind\"],\"additionalProperties\":false}",
    "{\"type\":\"array\",\"items\":{\"type\":\"number\"},\"minItems\":2,\"maxItems\":4}",
    "{\"$ref\":\"#/$defs/n\",\"$defs\":{\"n\":{\"anyOf\":[{\"type\":\"null\"},{\"type\":\"object\","
    "\"properties\":{\"next\":{\"$ref\":\"#/$defs/n\"}},\"required\":[\"next\"],"
    "\"additionalProperties\":false}]}}}",
    "{\"enum\":[\"yes\",\"no\"]}",
    "{\"const\":{\"answer\":[1,2,3]}}",
    "{\"type\":\"string\"}",
};
#define N_SCHEMAS TN_COUNT_OF(schemas)

static void path_of(char *path, size_t n, uint32_t i)
{
    snprintf(path, n, TERN_BUILD_DIR "/test_grammar_answer_%u.tern", i);
}

static int setup(void **state)
{
    (void)state;
    struct tern_error e;
    tern_sysinfo_read(&live);
    for (uint32_t i = 0; i < N_MODELS; i++) {
        char path[512];
        struct tern_convert_result result;
        struct tern_convert_params params = {.source = TERN_SOURCE_DIR "/dist/demo",
                                             .output = path, .head = heads[i]};
        path_of(path, sizeof path, i);
        if (tern_convert(&params, &result, &e) != TERN_OK ||
            tern_model_open(&models[i], path, &e) != TERN_OK) {
            fprintf(stderr, "%s\n", e.detail);
            return 1;
        }
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < N_MODELS; i++) {
        char path[512];
        tern_model_free(models[i]);
        path_of(path, sizeof path, i);
        tn_file_remove(path);
    }
    return 0;
}

/* ---- answers ---- */

struct answer {
    char text[MAX_TEXT];
    size_t n_text;
    enum tern_stop stop;
    tern_status status;
    bool has_ended;
};

static void take(const struct tern_event *e)
{
    struct answer *a = e->arg;
    if (e->kind == TERN_EVENT_TOKEN || e->kind == TERN_EVENT_END) {
        assert_true(a->n_text + e->n_text <= MAX_TEXT);
        memcpy(a->text + a->n_text, e->text, e->n_text);
        a->n_text += e->n_text;
    }
    if (e->kind == TERN_EVENT_END) {
        a->stop = e->result.stop;
        a->status = e->status;
        a->has_ended = true;
    }
}

static void run(struct tern_scheduler *s)
{
    struct events events = {.scheduler = s};
    for (const struct tern_event *event; (event = events_next(&events));)
        take(event);
}

struct asking {
    struct tern_ids ids;
    struct tern_request request;
};

static void ask(struct asking *a, const struct tern_model *model, const struct tern_grammar *g,
                uint32_t i)
{
    static const char text[] = "Once upon a time";
    *a = (struct asking){0};
    assert_int_equal(tern_tokenizer_encode(tern_model_tokenizer(model), text, sizeof text - 1,
                                           TERN_ENCODE_ADD_SPECIAL, &a->ids, NULL), TERN_OK);
    a->request.ids = a->ids.ids;
    a->request.n_ids = a->ids.n;
    tern_sampler_params_default(&a->request.sampler);
    a->request.sampler.seed = i;
    a->request.sampler.temperature = (float)(i % 3) * 0.8f;
    if (i % 4 == 3)
        a->request.sampler.top_k = 0; /* needs all logits */
    a->request.max_tokens = MAX_TOKENS;
    a->request.grammar = g;
}

static struct tern_scheduler *open_scheduler(struct tern_engine *engine,
                                             const struct tern_model *model)
{
    struct tern_scheduler *s;
    const struct tern_scheduler_params params = {.n_sequences = 4, .n_queue = 64, .n_ctx = 256,
                                                 .kv = TERN_KV_F16};
    assert_int_equal(tern_scheduler_create(&s, engine, model, &params, NULL), TERN_OK);
    return s;
}

/* Only the length limit may leave an answer incomplete. */
static void check(const struct answer *a, const struct tern_grammar *g)
{
    size_t n_fit;
    bool is_whole;
    assert_true(a->has_ended);
    assert_int_equal(a->status, TERN_OK);
    assert_int_equal(tern_grammar_match(g, a->text, a->n_text, &n_fit, &is_whole, NULL), TERN_OK);
    assert_int_equal(n_fit, a->n_text);
    if (is_whole != (a->stop == TERN_STOP_EOS))
        fail_msg("\"%.*s\" ended by %s", (int)a->n_text, a->text, tern_stop_text(a->stop));
    assert_true(is_whole || a->stop == TERN_STOP_LENGTH);
}

static void assert_same(const struct answer *a, const struct answer *b)
{
    assert_int_equal(a->stop, b->stop);
    assert_int_equal(a->n_text, b->n_text);
    assert_memory_equal(a->text, b->text, a->n_text);
}

#define N_ASKED (2 * N_SCHEMAS)

/* Answers all requests, concurrently if `together`; log-probabilities require all rows. */
static void answer_all(struct answer answers[N_ASKED], struct tern_scheduler *s,
                       const struct tern_model *model, struct tern_grammar *const *grammars,
                       uint32_t n_logprobs, bool together)
{
    memset(answers, 0, N_ASKED * sizeof *answers);
    for (uint32_t i = 0; i < N_ASKED; i++) {
        struct asking a;
        uint64_t id;
        ask(&a, model, grammars[i % N_SCHEMAS], i);
        a.request.n_logprobs = n_logprobs;
        a.request.arg = &answers[i];
        assert_int_equal(tern_scheduler_submit(s, &a.request, &id, NULL), TERN_OK);
        tern_ids_free(&a.ids);
        if (!together)
            run(s);
    }
    run(s);
}

static void check_model(const struct tern_model *model, struct tern_grammar *const *grammars)
{
    static struct answer first[N_ASKED], second[N_ASKED];
    uint32_t n_whole = 0;
    for (uint32_t n_threads = 1; n_threads <= 2; n_threads++) {
        struct tern_engine *engine;
        const struct tern_engine_params params = {.n_threads = n_threads};
        assert_int_equal(tern_engine_create(&engine, &live, &params, NULL), TERN_OK);
        struct tern_scheduler *s = open_scheduler(engine, model);
        answer_all(n_threads == 1 ? first : second, s, model, grammars, 0, n_threads == 1);
        for (uint32_t i = 0; i < N_ASKED && n_threads == 2; i++)
            assert_same(&first[i], &second[i]);
        answer_all(second, s, model, grammars, n_threads, true);
        for (uint32_t i = 0; i < N_ASKED; i++)
            assert_same(&first[i], &second[i]);
        tern_scheduler_free(s);
        tern_engine_free(engine);
    }
    for (uint32_t i = 0; i < N_ASKED; i++) {
        check(&first[i], grammars[i % N_SCHEMAS]);
        n_whole += first[i].stop == TERN_STOP_EOS;
    }
    assert_true(n_whole >= N_ASKED / 2);
}

static void answers_match_the_grammar(void **state)
{
    (void)state;
    struct tern_grammar *grammars[N_SCHEMAS];
    for (uint32_t i = 0; i < N_SCHEMAS; i++)
        assert_int_equal(tern_grammar_from_schema(&grammars[i], schemas[i], strlen(schemas[i]), 0,
                                                  NULL), TERN_OK);
    for (uint32_t i = 0; i < N_MODELS; i++)
        check_model(models[i], grammars);
    for (uint32_t i = 0; i < N_SCHEMAS; i++)
        tern_grammar_free(grammars[i]);
}

/* ---- concurrent requests ---- */

static void concurrent_requests_stay_unconstrained(void **state)
{
    (void)state;
    static struct answer free_alone, free_beside, bound;
    struct tern_engine *engine;
    struct tern_grammar *g;
    struct asking a, b;
    uint64_t id;
    assert_int_equal(tern_grammar_json_object(&g, NULL), TERN_OK);
    assert_int_equal(tern_engine_create(&engine, &live, NULL, NULL), TERN_OK);
    struct tern_scheduler *s = open_scheduler(engine, models[0]);
    ask(&a, models[0], NULL, 1);
    ask(&b, models[0], g, 0);
    a.request.max_tokens = 40;
    a.request.arg = &free_alone;
    assert_int_equal(tern_scheduler_submit(s, &a.request, &id, NULL), TERN_OK);
    run(s);
    a.request.arg = &free_beside;
    b.request.arg = &bound;
    assert_int_equal(tern_scheduler_submit(s, &b.request, &id, NULL), TERN_OK);
    assert_int_equal(tern_scheduler_submit(s, &a.request, &id, NULL), TERN_OK);
    run(s);
    assert_same(&free_alone, &free_beside);
    check(&bound, g);
    tern_ids_free(&a.ids);
    tern_ids_free(&b.ids);
    tern_scheduler_free(s);
    tern_engine_free(engine);
    tern_grammar_free(g);
}

/* ---- errors ---- */

static void readings_without_end_end_the_request_alone(void **state)
{
    (void)state;
    static const char schema[] =
        "{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{\"anyOf\":["
        "{\"type\":\"array\",\"minItems\":1,\"items\":{\"$ref\":\"#/$defs/b\"}},"
        "{\"type\":\"array\",\"minItems\":2,\"items\":{\"$ref\":\"#/$defs/b\"}}]},"
        "\"b\":{\"anyOf\":[{\"$ref\":\"#/$defs/a\"},{\"type\":\"null\"}]}}}";
    static struct answer bad, good;
    struct tern_engine *engine;
    struct tern_grammar *g;
    struct asking a, b;
    uint64_t id;
    assert_int_equal(tern_grammar_from_schema(&g, schema, strlen(schema), 0, NULL), TERN_OK);
    assert_int_equal(tern_engine_create(&engine, &live, NULL, NULL), TERN_OK);
    struct tern_scheduler *s = open_scheduler(engine, models[0]);
    ask(&a, models[0], g, 0);
    ask(&b, models[0], NULL, 0);
    a.request.arg = &bad;
    b.request.arg = &good;
    assert_int_equal(tern_scheduler_submit(s, &a.request, &id, NULL), TERN_OK);
    assert_int_equal(tern_scheduler_submit(s, &b.request, &id, NULL), TERN_OK);
    run(s);
    assert_true(bad.has_ended && (bad.status == TERN_OK || bad.status == TERN_LIMIT));
    assert_true(good.has_ended && good.status == TERN_OK);
    tern_ids_free(&a.ids);
    tern_ids_free(&b.ids);
    tern_scheduler_free(s);
    tern_engine_free(engine);
    tern_grammar_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_match_the_grammar),
        cmocka_unit_test(concurrent_requests_stay_unconstrained),
        cmocka_unit_test(readings_without_end_end_the_request_alone),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
