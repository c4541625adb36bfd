/* SPDX-License-Identifier: MIT
 *
 * Perplexity and benchmark on the demo model: when memory runs out or the caller stops them they
 * return an error, never other numbers.  Verify on a tiny model: it finds more than wrong
 * checksums.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/alloc.h"
#include "failing_alloc.h"
#include "file/model_file.h"
#include "plat/plat.h"
#include "tern/convert.h"
#include "tern/measure.h"
#include "tern/scheduler.h"
#include "tern/tern.h"
#include "tiny_model.h"

#define MODEL_PATH TERN_BUILD_DIR "/test_measure.tern"
#define TINY_PATH TERN_BUILD_DIR "/test_measure_tiny.tern"

static struct tern_sysinfo machine;

static int setup(void **state)
{
    (void)state;
    struct tern_error e;
    struct tern_convert_result result;
    struct tern_convert_params convert = {.source = TERN_SOURCE_DIR "/dist/demo",
                                          .output = MODEL_PATH};
    tern_sysinfo_read(&machine);
    if (tern_convert(&convert, &result, &e) != TERN_OK) {
        fprintf(stderr, "%s\n", e.detail);
        return 1;
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tn_file_remove(MODEL_PATH);
    return 0;
}

/* ---- tests ---- */

/* A model opens completely or not at all: without its template, chats would be plain text. */
static void a_model_opens_completely_or_not_at_all(void **state)
{
    (void)state;
    size_t n = 0;
    bool has_failed;
    do {
        struct tern_model *model;
        struct tern_error e;
        fail_alloc_once_after(n++);
        tern_status status = tern_model_open(&model, MODEL_PATH, &e);
        has_failed = fail_alloc_stop();
        if (status != TERN_OK) {
            assert_int_equal(status, TERN_MEMORY);
            assert_true(has_failed);
        } else {
            const struct tern_chat_template *t;
            assert_int_equal(tern_model_chat_template(&t, model, NULL), TERN_OK);
            assert_non_null(t);
        }
        tern_model_free(model);
    } while (has_failed);
    assert_true(n > 4);
}

/* Answers use the model's cache type, measurements f32. */
static void defaults_of_the_parameters(void **state)
{
    (void)state;
    struct tern_model *model;
    struct tern_session_params session;
    struct tern_scheduler_params scheduler;
    struct tern_perplexity_params perplexity;
    struct tern_bench_params bench;
    struct tern_error e;
    assert_int_equal(tern_model_open(&model, MODEL_PATH, &e), TERN_OK);
    const enum tern_kv kv = tern_model_config(model)->kv;
    assert_int_equal(kv, TERN_KV_Q8);
    tern_session_params_default(&session, model);
    tern_scheduler_params_default(&scheduler, model);
    tern_perplexity_params_default(&perplexity);
    tern_bench_params_default(&bench, &machine, model);
    assert_true(session.kv == kv && scheduler.kv == kv && bench.kv == kv);
    assert_true(scheduler.n_sequences == 4 && scheduler.n_queue == 64);
    assert_int_equal(perplexity.kv, TERN_KV_F32);
    assert_true(bench.machine == &machine && bench.n_prompts == 1 && bench.n_threads == 1);
    assert_true(bench.prompts[0] == 128 && bench.n_new == 32 && bench.n_repeats == 3);
    tern_model_free(model);
}

static void perplexity_is_the_same_or_an_error(void **state)
{
    (void)state;
    static const char text[] = "Once upon a time there was a king who had three daughters.";
    const struct tern_perplexity_params params = {.n_ctx = 16, .kv = TERN_KV_F32};
    struct tern_engine *engine;
    struct tern_model *model;
    struct tern_error e;
    struct tern_perplexity_result want, got;
    assert_int_equal(tern_engine_create(&engine, &machine, NULL, &e), TERN_OK);
    assert_int_equal(tern_model_open(&model, MODEL_PATH, &e), TERN_OK);
    assert_int_equal(tern_perplexity(engine, model, text, strlen(text), &params, &want, &e),
                     TERN_OK);
    assert_true(want.n_scored > 0 && want.nats_per_token > 0);
    size_t n = 0;
    bool has_failed;
    do {
        fail_alloc_once_after(n++);
        tern_status status = tern_perplexity(engine, model, text, strlen(text), &params, &got, &e);
        has_failed = fail_alloc_stop();
        if (status != TERN_OK) { /* reading the machine can do without some memory */
            assert_int_equal(status, TERN_MEMORY);
            assert_true(has_failed);
            continue;
        }
        assert_int_equal(got.n_scored, want.n_scored);
        assert_memory_equal(&got.nats_per_token, &want.nats_per_token, sizeof want.nats_per_token);
    } while (has_failed);
    tern_model_free(model);
    tern_engine_free(engine);
}

static bool stop_at_once(void *arg, size_t n_done, size_t n_total)
{
    size_t *n_calls = arg;
    assert_true(n_done <= n_total);
    assert_int_equal(n_done, 0);
    ++*n_calls;
    return false;
}

/* A window may take minutes. */
static void perplexity_stops_inside_a_window(void **state)
{
    (void)state;
    static const char text[] = "Once upon a time there was a king who had three daughters.";
    size_t n_calls = 0;
    const struct tern_perplexity_params params = {
        .kv = TERN_KV_F32, .on_progress = stop_at_once, .arg = &n_calls};
    struct tern_engine *engine;
    struct tern_model *model;
    struct tern_error e;
    struct tern_perplexity_result result;
    assert_int_equal(tern_engine_create(&engine, &machine, NULL, &e), TERN_OK);
    assert_int_equal(tern_model_open(&model, MODEL_PATH, &e), TERN_OK);
    assert_int_equal(tern_perplexity(engine, model, text, strlen(text), &params, &result, &e),
                     TERN_INTERRUPTED);
    assert_int_equal(n_calls, 1);
    tern_model_free(model);
    tern_engine_free(engine);
}

/* Stops at the step `stop_at`, or fails an allocation after it. */
struct stopper {
    const char *stop_at;
    bool takes_memory;
    size_t n_good; /* allocations between the step and the one that fails */
};

static bool on_step(void *arg, const char *what)
{
    const struct stopper *s = arg;
    if (strcmp(what, s->stop_at) != 0)
        return true;
    if (s->takes_memory)
        fail_alloc_once_after(s->n_good);
    return s->takes_memory;
}

static tern_status bench(struct stopper *stopper, struct tern_bench_result *result)
{
    const struct tern_bench_params params = {
        .machine = &machine,
        .prompts = {4}, .n_prompts = 1, .n_new = 2, .n_repeats = 2, .threads = {1}, .n_threads = 1,
        .kv = TERN_KV_F16, .on_progress = on_step, .arg = stopper};
    struct tern_error e;
    tern_status status = tern_bench(MODEL_PATH, &params, result, &e);
    fail_alloc_stop();
    return status;
}

static void a_stopped_benchmark_has_no_result(void **state)
{
    (void)state;
    static struct tern_bench_result result;
    static const char *const steps[] = {"loading", "kernels"};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        struct stopper stopper = {.stop_at = steps[i]};
        assert_int_equal(bench(&stopper, &result), TERN_INTERRUPTED);
    }
    struct stopper nothing = {.stop_at = ""};
    assert_int_equal(bench(&nothing, &result), TERN_OK);
    assert_true(result.hashes_agree && result.n_runs == 1 && result.n_kernels > 0);
    assert_true(result.stream_gb_s[0] > 0);
    assert_true(result.runs[0].stream_gb_s == result.stream_gb_s[0]);
}

/* Memory bandwidth changes during a benchmark: a share never mixes two repeats. */
static void a_share_belongs_to_its_repeat(void **state)
{
    (void)state;
    static struct tern_bench_result result;
    const struct tern_bench_params params = {
        .machine = &machine, .prompts = {4}, .n_prompts = 1, .n_new = 2, .n_repeats = 1,
        .threads = {1, 2}, .n_threads = 2, .levels = {"ref"}, .n_levels = 1, .depths = {8},
        .n_depths = 1};
    struct tern_error e;
    assert_int_equal(tern_bench(MODEL_PATH, &params, &result, &e), TERN_OK);
    assert_int_equal(result.n_runs, 4);
    for (uint32_t i = 0; i < result.n_runs; i++) {
        const struct tern_bench_run *run = &result.runs[i];
        double want = run->decode_gb_s / run->stream_gb_s;
        assert_true(run->stream_gb_s == result.stream_gb_s[i / 2]);
        assert_true(run->decode_share > 0.999 * want && run->decode_share < 1.001 * want);
    }
}

static bool never(void *arg, const char *what)
{
    (void)arg;
    fail_msg("measures: %s", what);
    return false;
}

static void a_benchmark_out_of_range_is_refused(void **state)
{
    (void)state;
    static struct tern_bench_result result;
    static const struct tern_bench_params good = {
        .machine = &machine, .prompts = {4}, .n_prompts = 1, .n_new = 2, .n_repeats = 1,
        .threads = {1}, .n_threads = 1, .on_progress = never};
    struct tern_bench_params bad[10];
    struct tern_error e;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        bad[i] = good;
    bad[0].n_prompts = 9;
    bad[1].prompts[0] = 0;
    bad[2].n_new = 0;
    bad[3].n_repeats = 33;
    bad[4].n_threads = 0;
    bad[5].threads[0] = 0;
    bad[6].n_levels = 9;
    bad[7].n_depths = 9;
    bad[8].machine = NULL;
    bad[9].n_levels = 2;
    bad[9].levels[0] = "ref";
    bad[9].levels[1] = "sse9";
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(tern_bench(MODEL_PATH, &bad[i], &result, &e), TERN_USAGE);
    struct tern_bench_params deep = good;
    deep.prompts[0] = 1u << 30;
    assert_int_equal(tern_bench(MODEL_PATH, &deep, &result, &e), TERN_LIMIT);
}

static void a_benchmark_without_memory_fails(void **state)
{
    (void)state;
    static struct tern_bench_result result;
    for (int n = 0; n < 4; n++) {
        struct stopper stopper = {.stop_at = "kernels", .takes_memory = true, .n_good = n};
        assert_int_equal(bench(&stopper, &result), TERN_MEMORY);
    }
}

/* ---- verify ---- */

/* A tiny model whose embedding starts with this half float, with correct checksums. */
static void make_tiny(uint32_t layout, uint16_t half)
{
    const struct tiny_variant variant = {.embed_layout = layout};
    struct tiny_image image;
    struct tn_model_file file;
    struct tn_file *out;
    struct tern_error e;
    assert_int_equal(tiny_model_image(&image, TINY_PATH, &variant, &e), TERN_OK);
    assert_int_equal(tn_model_file_check(&file, image.bytes, image.n, "tiny", &e), TERN_OK);
    memcpy(image.bytes + tn_model_file_tensor(&file, TERN_ROLE_EMBED, TERN_NO_LAYER)->offset, &half,
           2);
    struct tern_file_header *h = (void *)image.bytes;
    assert_int_equal(file.n_chunks, 1);
    uint64_t hash = XXH3_64bits(image.bytes + h->data.offset, (size_t)h->data.bytes);
    memcpy(image.bytes + h->hashes.offset, &hash, sizeof hash);
    h->head_hash = 0;
    h->head_hash = XXH3_64bits(image.bytes, (size_t)h->data.offset);
    assert_int_equal(tn_file_create(&out, TINY_PATH, &e), TERN_OK);
    assert_int_equal(tn_file_write_at(out, 0, image.bytes, image.n, &e), TERN_OK);
    tn_file_close(out);
    tn_model_file_close(&file);
    tn_free(image.bytes);
}

static tern_status verify_tiny(struct tern_error *e)
{
    struct tern_model *model;
    struct tern_verify_result result;
    assert_int_equal(tern_model_open(&model, TINY_PATH, e), TERN_OK);
    tern_status status = tern_verify(model, &machine, NULL, NULL, &result, e);
    tern_model_free(model);
    return status;
}

static void halves_that_are_no_numbers_are_found(void **state)
{
    (void)state;
    static const struct {
        uint32_t layout;
        uint16_t largest, infinity, nan;
    } list[] = {{TERN_LAYOUT_F16, 0xFBFF, 0xFC00, 0x7C01},
                {TERN_LAYOUT_BF16, 0xFF7F, 0xFF80, 0x7FC0}};
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        struct tern_error e;
        make_tiny(list[i].layout, list[i].largest);
        assert_int_equal(verify_tiny(&e), TERN_OK);
        make_tiny(list[i].layout, list[i].infinity);
        assert_int_equal(verify_tiny(&e), TERN_INPUT);
        assert_non_null(strstr(e.detail, "\"embed\" holds NaN or infinity"));
        make_tiny(list[i].layout, list[i].nan);
        assert_int_equal(verify_tiny(&e), TERN_INPUT);
    }
    tn_file_remove(TINY_PATH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_opens_completely_or_not_at_all),
        cmocka_unit_test(defaults_of_the_parameters),
        cmocka_unit_test(perplexity_is_the_same_or_an_error),
        cmocka_unit_test(perplexity_stops_inside_a_window),
        cmocka_unit_test(a_stopped_benchmark_has_no_result),
        cmocka_unit_test(a_share_belongs_to_its_repeat),
        cmocka_unit_test(a_benchmark_out_of_range_is_refused),
        cmocka_unit_test(a_benchmark_without_memory_fails),
        cmocka_unit_test(halves_that_are_no_numbers_are_found),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
