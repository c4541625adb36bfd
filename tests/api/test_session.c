/* SPDX-License-Identifier: MIT
 *
 * Sessions through the public API, on the demo model: results do not depend on how work is split,
 * memory equals the plan, and after every kind of stop the session is usable.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#if defined(_WIN32)
#include <direct.h>
#endif

#include "base/alloc.h"
#include "base/compiler.h"
#include "engine/engine.h"
#include "engine/session.h"
#include "engine/thread_tuner.h"
#include "failing_alloc.h"
#include "plat/plat.h"
#include "tern/embed.h"

#define MODEL_PATH TERN_BUILD_DIR "/test_session.tern"
#include "session_fixture.h"

/* All logits of ids[0, n), evaluated `step` at a time. */
static float *logits_of(struct tern_engine *with, enum tern_kv kv, uint32_t n_batch, uint32_t step,
                        uint32_t n)
{
    float *out = test_malloc((size_t)n * vocab * sizeof *out);
    struct tern_session *s = open_session(with, kv, n_batch);
    for (uint32_t i = 0; i < n; i += step) {
        uint32_t m = n - i < step ? n - i : step;
        assert_ok(tern_session_eval(s, ids + i, m, out + (size_t)i * vocab, &e));
    }
    tern_session_free(s);
    return out;
}

static void logits_do_not_depend_on_batches(void **state)
{
    (void)state;
    const struct {
        uint32_t n_batch, step;
    } ways[] = {{1, 1}, {2, N_IDS}, {17, N_IDS}, {64, 50}, {128, 7}, {8, 8}, {5, 3}};
    for (enum tern_kv kv = TERN_KV_F32; kv <= TERN_KV_Q8; kv++) {
        float *want = logits_of(engine, kv, 128, N_IDS, N_IDS);
        for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
            float *got = logits_of(engine, kv, ways[i].n_batch, ways[i].step, N_IDS);
            assert_memory_equal(got, want, (size_t)N_IDS * vocab * sizeof *got);
            test_free(got);
        }
        test_free(want);
    }
}

/* The results of searching the head for n rows: exact logits where they are needed, elsewhere these
 * or minus infinity. */
static void check_search(const float *got, const float *want, const struct tn_head_need *need)
{
    uint32_t n_better = 0, i_always = 0;
    float least = INFINITY; /* of the exact ones outside `always` */
    for (uint32_t i = 0; i < vocab; i++) {
        const bool is_always = i_always < need->n_always && need->always[i_always] == i;
        i_always += is_always;
        assert_true(got[i] == want[i] || (got[i] == -INFINITY && !is_always));
        if (!is_always && got[i] > -INFINITY)
            least = got[i] < least ? got[i] : least;
        n_better += !is_always && got[i] > -INFINITY;
    }
    assert_true(n_better >= need->n_best);
    if (n_better == need->n_best) /* otherwise more logits than needed are exact */
        for (uint32_t i = 0; i < vocab; i++)
            assert_true(got[i] > -INFINITY || want[i] <= least);
}

static void rows_are_searched_together(void **state)
{
    (void)state;
    static const uint32_t always[] = {0, 7, 4000};
    const struct tn_head_need needs[] = {
        {.n_best = 1, .n_allowed = vocab},
        {.n_best = 20, .n_allowed = vocab, .always = always, .n_always = 3},
    };
    float *want = logits_of(engine, TERN_KV_Q8, 8, 8, 64);
    float *got = test_malloc(8 * (size_t)vocab * sizeof *got);
    struct tern_session *s;
    struct tern_session_params p = {.n_ctx = 512, .kv = TERN_KV_Q8, .n_draft = TERN_MAX_DRAFT};
    assert_ok(tern_session_create(&s, engine, model, &p, &e));
    for (size_t i = 0; i < sizeof needs / sizeof needs[0]; i++) {
        tern_session_truncate(s, 0);
        tn_session_need(s, &needs[i]);
        tern_session_reset_counters(s);
        for (uint32_t at = 0, n = 2; at + n <= 64; at += n, n = n % 8 + 1) {
            assert_ok(tern_session_eval(s, ids + at, n, got, &e));
            for (uint32_t t = 0; t < n; t++)
                check_search(got + (size_t)t * vocab, want + (size_t)(at + t) * vocab, &needs[i]);
        }
        struct tern_counters c;
        tern_session_get_counters(s, &c);
        assert_true(c.head_density > 0 && c.head_density < 0.5);
    }
    tern_session_free(s);
    test_free(want);
    test_free(got);
}

static void logits_do_not_depend_on_threads_and_levels(void **state)
{
    (void)state;
    static const char *const levels[] = {"ref", "ssse3", "avx2",    "avxvnni", "avx512",
                                         "amx", "neon",  "dotprod", "i8mm"};
    const uint32_t n = 40;
    float *want = logits_of(engine, TERN_KV_F16, 16, n, n);
    uint32_t n_levels = 0;
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        for (uint32_t n_threads = 1; n_threads <= 7; n_threads += n_threads == 3 ? 4 : 1) {
            struct tern_engine *other;
            struct tern_engine_params p = {.n_threads = n_threads, .cpu_level = levels[i]};
            if (tern_engine_create(&other, &demo.machine, &p, NULL) != TERN_OK)
                break;
            n_levels += n_threads == 1;
            for (uint32_t step = 1; step <= n; step += n - 1) {
                float *got = logits_of(other, TERN_KV_F16, 16, step, n);
                assert_memory_equal(got, want, (size_t)n * vocab * sizeof *got);
                test_free(got);
            }
            tern_engine_free(other);
        }
    }
    assert_true(n_levels >= 1);
    test_free(want);
}

static void too_many_threads_are_refused(void **state)
{
    (void)state;
    struct tern_error e;
    struct tern_engine *other;
    struct tern_engine_params p = {.n_threads = 257};
    assert_int_equal(tern_engine_create(&other, &demo.machine, &p, &e), TERN_USAGE);
    assert_null(other);
    p = (struct tern_engine_params){.n_threads_prefill = UINT32_MAX};
    assert_int_equal(tern_engine_create(&other, &demo.machine, &p, &e), TERN_USAGE);
}

/* ---- number of threads of a run ---- */

static void set_cache_dir(const char *dir)
{
#if defined(_WIN32)
    (void)_mkdir(dir); /* the system's cache folder always exists */
    _putenv_s("LOCALAPPDATA", dir);
#else
    setenv("XDG_CACHE_HOME", dir, 1);
    setenv("HOME", dir, 1);
#endif
}

/* Threads of each of 20 tokens, if the cache file says that `known` are best and the plan says 2.
 */
static void threads_of_a_run(uint32_t n_threads[20], uint32_t known)
{
    static struct tern_sysinfo machine;
    static struct tern_plan plan = {.cpu_level = "ref", .n_threads_decode = 2};
    struct tern_steering *steering;
    char *path = tn_thread_cache_path();
    uint64_t key = tn_thread_cache_key(&machine, &plan, model->file.header->head_hash);
    assert_non_null(path);
    tn_thread_cache_save(path, key, known);
    assert_ok(tern_steering_create(&steering, engine, model, &machine, &plan, &e));
    for (int i = 0; i < 20; i++) {
        tern_steering_before_token(steering);
        n_threads[i] = tern_engine_n_threads(engine);
        tern_steering_after_token(steering);
    }
    tern_steering_free(steering);
    tern_engine_set_threads(engine, 2, 2);
    tn_file_remove(path);
    tn_free(path);
}

static void fewer_threads_are_measured_again(void **state)
{
    (void)state;
    uint32_t n_threads[20];
    set_cache_dir(TERN_BUILD_DIR "/test_session.cache");
    threads_of_a_run(n_threads, 2);
    for (int i = 0; i < 20; i++)
        assert_int_equal(n_threads[i], 2);
    threads_of_a_run(n_threads, 1);
    assert_int_equal(n_threads[0], 2);
    assert_int_equal(n_threads[TN_THREAD_TUNER_TOKENS], 1);
}

static void a_shortened_session_continues_as_if_new(void **state)
{
    (void)state;
    float *want = logits_of(engine, TERN_KV_F16, 0, 60, 60);
    struct tern_session *s = open_session(engine, TERN_KV_F16, 0);
    assert_ok(tern_session_eval(s, ids + 100, 150, NULL, &e));
    assert_int_equal(tern_session_truncate(s, 0), 0);
    assert_null(tern_session_logits(s));
    assert_ok(tern_session_eval(s, ids, 50, NULL, &e));
    assert_ok(tern_session_eval(s, ids + 200, 30, NULL, &e));
    assert_int_equal(tern_session_truncate(s, 50), 50);
    assert_ok(tern_session_eval(s, ids + 50, 10, NULL, &e));
    assert_memory_equal(tern_session_logits(s), want + 59 * (size_t)vocab, vocab * sizeof *want);
    assert_int_equal(tern_session_n_past(s), 60);
    assert_memory_equal(tern_session_ids(s), ids, 60 * sizeof *ids);
    tern_session_free(s);
    test_free(want);
}

static void bad_ids_and_full_contexts_are_refused(void **state)
{
    (void)state;
    struct tern_error e;
    struct tern_session *s;
    struct tern_session_params p = {.n_ctx = 8, .kv = TERN_KV_F32};
    assert_int_equal(tern_session_create(&s, engine, model, &p, &e), TERN_OK);
    assert_int_equal(tern_session_eval(s, &vocab, 1, NULL, &e), TERN_USAGE);
    assert_int_equal(tern_session_eval(s, ids, 9, NULL, &e), TERN_LIMIT);
    assert_int_equal(tern_session_n_past(s), 0);
    assert_int_equal(tern_session_eval(s, ids, 8, NULL, &e), TERN_OK);
    /* A refused call changes nothing. */
    float want = tern_session_logits(s)[3];
    assert_int_equal(tern_session_eval(s, ids, 1, NULL, &e), TERN_LIMIT);
    assert_non_null(tern_session_logits(s));
    assert_int_equal(tern_session_truncate(s, 7), 7);
    assert_null(tern_session_logits(s));
    assert_int_equal(tern_session_eval(s, ids + 7, 1, NULL, &e), TERN_OK);
    assert_true(tern_session_logits(s)[3] == want);
    tern_session_free(s);
    const struct tern_session_params bad[] = {
        {.n_ctx = tern_model_config(model)->context + 1},
        {.n_ctx = 8, .n_batch = 513},
        {.n_ctx = 8, .n_draft = TERN_MAX_DRAFT + 1},
        {.n_ctx = 8, .kv = (enum tern_kv)3},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(tern_session_create(&s, engine, model, &bad[i], &e), TERN_USAGE);
        assert_null(s);
    }
}

/* ---- generate ---- */

struct run {
    char text[8192];
    size_t n_text;
    uint32_t n_tokens;
    uint32_t arm_at;        /* token from which allocations are counted */
    uint32_t n_allocations; /* while armed */
    uint64_t commits_before;
    uint32_t refuse_at;     /* on_text returns false at this token */
    bool has_refused;
};

static int count_allocation(void *arg, size_t n_bytes)
{
    (void)n_bytes;
    ((struct run *)arg)->n_allocations++;
    return 1;
}

static void on_token(void *arg, uint32_t id)
{
    (void)id;
    struct run *run = arg;
    if (++run->n_tokens == run->arm_at) {
        run->commits_before = tn_pages_n_commits();
        tn_alloc_set_hook(count_allocation, run);
    }
}

static bool on_text(void *arg, const char *text, size_t n)
{
    struct run *run = arg;
    assert_false(run->has_refused);
    assert_true(run->n_text + n < sizeof run->text);
    memcpy(run->text + run->n_text, text, n);
    run->n_text += n;
    run->text[run->n_text] = '\0';
    run->has_refused = run->refuse_at != 0 && run->n_tokens >= run->refuse_at;
    return !run->has_refused;
}

static struct tern_generate_result generate(struct tern_session *s, struct run *run,
                                            uint32_t max_tokens, const char *stop)
{
    struct tern_sampler *sampler;
    struct tern_sampler_params sp;
    struct tern_generate_result result;
    tern_sampler_params_default(&sp);
    sp.seed = 1;
    assert_ok(tern_sampler_create(&sampler, &sp, vocab, &e));
    struct tern_generate_params p = {.sampler = sampler, .max_tokens = max_tokens,
                                     .ignore_eos = true, .stop_strings = &stop,
                                     .n_stop_strings = stop ? 1 : 0, .on_text = on_text,
                                     .on_token = on_token, .arg = run};
    static const uint32_t prompt[] = {4080, 507, 458, 980};
    assert_ok(tern_generate(s, prompt, 4, &p, &result, &e));
    tern_sampler_free(sampler);
    return result;
}

static void a_prompt_with_a_bad_id_changes_nothing(void **state)
{
    (void)state;
    struct tern_error err;
    struct tern_sampler *sampler;
    struct tern_sampler_params sp;
    struct tern_generate_result result;
    struct tern_session *s = open_session(engine, TERN_KV_F16, 8);
    uint32_t prompt[20];
    memcpy(prompt, ids + 100, sizeof prompt);
    prompt[19] = vocab;
    tern_sampler_params_default(&sp);
    assert_ok(tern_sampler_create(&sampler, &sp, vocab, &e));
    struct tern_generate_params p = {.sampler = sampler, .max_tokens = 1};
    assert_ok(tern_session_eval(s, ids, 10, NULL, &e));
    assert_int_equal(tern_generate(s, prompt, 20, &p, &result, &err), TERN_USAGE);
    assert_int_equal(tern_session_n_past(s), 10);
    assert_memory_equal(tern_session_ids(s), ids, 10 * sizeof *ids);
    assert_non_null(tern_session_logits(s));
    tern_sampler_free(sampler);
    tern_session_free(s);
}

static void unfitting_parameters_are_refused_before_the_prompt_is_read(void **state)
{
    (void)state;
    struct tern_session *s = open_session(engine, TERN_KV_F16, 8);
    for (uint32_t n = vocab - 1; n <= vocab + 1; n++) {
        struct tern_error err;
        struct tern_sampler *sampler;
        struct tern_sampler_params sp;
        struct tern_generate_result result;
        const char *stop[] = {"x", ""};
        tern_sampler_params_default(&sp);
        assert_ok(tern_sampler_create(&sampler, &sp, n, &e));
        struct tern_generate_params p = {.sampler = sampler, .max_tokens = 1,
                                         .stop_strings = stop, .n_stop_strings = 2};
        assert_int_equal(tern_generate(s, ids, 4, &p, &result, &err), TERN_USAGE);
        assert_non_null(strstr(err.detail, n == vocab ? "stop string 1" : "the sampler was made"));
        assert_int_equal(tern_session_n_past(s), 0);
        tern_sampler_free(sampler);
    }
    tern_session_free(s);
}

static void nothing_is_allocated_between_the_tokens(void **state)
{
    (void)state;
    struct run run = {.arm_at = 1};
    struct tern_session *s = open_session(engine, TERN_KV_F16, 0);
    uint64_t before = tern_session_bytes(s);
    struct tern_generate_result r = generate(s, &run, 400, NULL);
    tn_alloc_set_hook(NULL, NULL);
    assert_int_equal(r.n_new, 400);
    /* Freeing the text at the end allocates nothing either. */
    assert_int_equal(run.n_allocations, 0);
    /* 403 positions: the second block of 256 was committed, once, and is counted. */
    assert_int_equal(tn_pages_n_commits() - run.commits_before, 1);
    assert_true(tern_session_bytes(s) > before);
    assert_int_equal(tern_session_bytes(s), tern_session_bytes_full(s));
    tern_session_free(s);
}

static void the_plan_counts_the_memory_of_a_session(void **state)
{
    (void)state;
    struct tern_plan_model sizes;
    tern_plan_model_sizes(&sizes, model, 0);
    for (enum tern_kv kv = TERN_KV_F32; kv <= TERN_KV_Q8; kv++) {
        struct tern_session *s = open_session(engine, kv, 0);
        const uint32_t n_ctx = tern_session_n_ctx(s);
        uint64_t planned = sizes.base_bytes + tern_engine_n_threads(engine) * sizes.thread_bytes +
                           n_ctx * sizes.position_bytes +
                           n_ctx / TERN_PLAN_KV_BLOCK * sizes.kv_block_bytes[kv];
        /* Whole pages are allocated. */
        assert_in_range(tern_session_bytes_full(s), planned / 2, planned + tn_page_bytes());
        tern_session_free(s);
    }
}

/* Refuses growth beyond the first block. */
static bool grow_once(void *arg, uint64_t n_bytes)
{
    assert_true(n_bytes > 0);
    return ++*(uint32_t *)arg <= 1;
}

static void short_memory_ends_the_text_cleanly(void **state)
{
    (void)state;
    uint32_t n_asked = 0;
    struct run run = {0};
    struct tern_session *s;
    struct tern_session_params p = {
        .n_ctx = 512, .kv = TERN_KV_F16, .may_grow = grow_once, .arg = &n_asked};
    assert_ok(tern_session_create(&s, engine, model, &p, &e));
    struct tern_generate_result r = generate(s, &run, 400, NULL);
    assert_int_equal(r.stop, TERN_STOP_MEMORY);
    assert_int_equal(tern_session_n_past(s), 256);
    assert_int_equal(n_asked, 2);
    tern_session_free(s);
}

static bool stop_at_zero(void *arg)
{
    uint32_t *left = arg;
    return *left > 0 && --*left == 0;
}

static void an_interrupted_session_continues(void **state)
{
    (void)state;
    float *want = logits_of(engine, TERN_KV_F16, 0, 60, 60);
    uint32_t left = 3; /* layers to go */
    struct tern_error e;
    struct tern_session *s;
    struct tern_session_params p = {
        .n_ctx = 512, .kv = TERN_KV_F16, .should_stop = stop_at_zero, .arg = &left};
    assert_int_equal(tern_session_create(&s, engine, model, &p, &e), TERN_OK);
    assert_int_equal(tern_session_eval(s, ids, 60, NULL, &e), TERN_INTERRUPTED);
    assert_int_equal(tern_session_n_past(s), 0);
    assert_int_equal(tern_session_eval(s, ids, 60, NULL, &e), TERN_OK);
    assert_memory_equal(tern_session_logits(s), want + 59 * (size_t)vocab, vocab * sizeof *want);
    tern_session_free(s);
    test_free(want);
}

static void stop_strings_are_never_shown(void **state)
{
    (void)state;
    struct run whole = {0}, cut = {0}, refused = {.refuse_at = 5};
    struct tern_session *s = open_session(engine, TERN_KV_F16, 0);
    generate(s, &whole, 60, NULL);
    assert_true(whole.n_text > 40);
    /* A stop string that begins and ends inside words, and so inside tokens. */
    char stop[12];
    memcpy(stop, whole.text + 25, 11);
    stop[11] = '\0';
    struct tern_generate_result r = generate(s, &cut, 60, stop);
    assert_int_equal(r.stop, TERN_STOP_STRING);
    size_t expected = (size_t)(strstr(whole.text, stop) - whole.text);
    assert_int_equal(cut.n_text, expected);
    assert_memory_equal(cut.text, whole.text, expected);

    r = generate(s, &refused, 60, NULL);
    assert_int_equal(r.stop, TERN_STOP_INTERRUPT);
    assert_true(r.n_new <= 6);
    tern_session_free(s);
}

static void a_callback_that_refused_text_is_not_called_again(void **state)
{
    (void)state;
    struct tern_session *s = open_session(engine, TERN_KV_F16, 0);
    for (uint32_t refuse_at = 2; refuse_at < 12; refuse_at++) {
        struct run whole = {.refuse_at = refuse_at}, held = {.refuse_at = refuse_at};
        generate(s, &whole, 60, NULL);
        /* The last character may begin a stop string when the text before it is refused. */
        const char stop[] = {whole.text[whole.n_text - 1], '\x01', '\0'};
        assert_int_equal(generate(s, &held, 60, stop).stop, TERN_STOP_INTERRUPT);
        assert_true(held.has_refused);
    }
    tern_session_free(s);
}

/* They are then evaluated one after the other. */
static void texts_are_embedded_without_memory_for_several_at_once(void **state)
{
    (void)state;
    struct tern_embedder *embedder;
    const struct tern_embed_ids texts[] = {{ids, 5}, {ids + 5, 7}};
    const size_t n = tern_model_config(model)->hidden;
    float *want = test_calloc(2 * n, sizeof *want), *got = test_calloc(2 * n, sizeof *got);
    size_t n_done;
    assert_ok(tern_embedder_create(&embedder, engine, model, NULL, &e));
    for (size_t i = 0; i < TN_COUNT_OF(texts); i++)
        assert_ok(tern_embed(embedder, texts[i].ids, texts[i].n_ids, want + i * n, &e));
    fail_alloc_after(0);
    const tern_status status =
        tern_embed_list(embedder, texts, TN_COUNT_OF(texts), got, &n_done, NULL);
    assert_true(fail_alloc_stop());
    assert_int_equal(status, TERN_OK);
    assert_int_equal(n_done, 2);
    assert_memory_equal(got, want, 2 * n * sizeof *want);
    tern_embedder_free(embedder);
    test_free(want);
    test_free(got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logits_do_not_depend_on_batches),
        cmocka_unit_test(logits_do_not_depend_on_threads_and_levels),
        cmocka_unit_test(rows_are_searched_together),
        cmocka_unit_test(too_many_threads_are_refused),
        cmocka_unit_test(fewer_threads_are_measured_again),
        cmocka_unit_test(a_shortened_session_continues_as_if_new),
        cmocka_unit_test(bad_ids_and_full_contexts_are_refused),
        cmocka_unit_test(nothing_is_allocated_between_the_tokens),
        cmocka_unit_test(the_plan_counts_the_memory_of_a_session),
        cmocka_unit_test(short_memory_ends_the_text_cleanly),
        cmocka_unit_test(an_interrupted_session_continues),
        cmocka_unit_test(stop_strings_are_never_shown),
        cmocka_unit_test(a_callback_that_refused_text_is_not_called_again),
        cmocka_unit_test(a_prompt_with_a_bad_id_changes_nothing),
        cmocka_unit_test(texts_are_embedded_without_memory_for_several_at_once),
        cmocka_unit_test(unfitting_parameters_are_refused_before_the_prompt_is_read),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
