/* SPDX-License-Identifier: MIT
 *
 * The tests of test_null_error for tools around the engine: measuring, embedding, conversion, facts
 * about the machine, and the plan.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "null_error.h"
#include "plat/plat.h"
#include "tern/convert.h"
#include "tern/embed.h"
#include "tern/inspect.h"
#include "tern/measure.h"
#include "tern/plan.h"

/* ---- measuring ---- */

static bool stop_scoring(void *arg, size_t n_done, size_t n_total)
{
    (void)arg, (void)n_done, (void)n_total;
    return false;
}

static bool stop_bench(void *arg, const char *what)
{
    (void)arg, (void)what;
    return false;
}

static void call_measures(void)
{
    struct tern_perplexity_result perplexity;
    struct tern_perplexity_params p = {.n_ctx = 16};
    CALL(TERN_OK, tern_perplexity, engine, model, "once upon a time", 16, &p, &perplexity);
    CALL(TERN_INPUT, tern_perplexity, engine, model, "", 0, &p, &perplexity);
    p.on_progress = stop_scoring;
    CALL(TERN_INTERRUPTED, tern_perplexity, engine, model, "once upon a time", 16, &p, &perplexity);
    p.n_ctx = 1;
    CALL(TERN_USAGE, tern_perplexity, engine, model, "once upon a time", 16, &p, &perplexity);

    static struct tern_bench_result bench;
    struct tern_bench_params b = {.machine = &live, .prompts = {4}, .n_prompts = 1, .n_new = 1,
                                  .n_repeats = 1, .threads = {1}, .n_threads = 1,
                                  .on_progress = stop_bench};
    CALL(TERN_INPUT, tern_bench, DIR "/none.tern", &b, &bench);
    CALL(TERN_INTERRUPTED, tern_bench, DEMO, &b, &bench);
    b.n_threads = 0;
    CALL(TERN_USAGE, tern_bench, DEMO, &b, &bench);
}

static void call_embed(void)
{
    static const uint32_t ids[1025];
    struct tern_embedder *e = NULL;
    struct tern_embed_params p = {.pooling = (enum tern_pooling)9};
    CALL(TERN_USAGE, tern_embedder_create, &e, engine, model, &p);
    p = (struct tern_embed_params){.n_dim = tern_model_config(model)->hidden + 1};
    CALL(TERN_USAGE, tern_embedder_create, &e, engine, model, &p);
    CALL(TERN_OK, tern_embedder_create, &e, engine, model, NULL);
    if (!e)
        return;
    float *v = tn_alloc(tern_embedder_dim(e) * sizeof *v);
    if (v) {
        CALL(TERN_OK, tern_embed, e, ids, 3, v);
        CALL(TERN_USAGE, tern_embed, e, ids, 0, v);
        CALL(TERN_USAGE, tern_embed, e, &vocab, 1, v);
        CALL(TERN_LIMIT, tern_embed, e, ids, 1025, v);
        CALL(TERN_OK, tern_embed_text, e, "sea", 3, v, NULL);
        CALL(TERN_USAGE, tern_embed_list, e, (struct tern_embed_ids[]){{ids, 0}}, 1, v, NULL);
        CALL(TERN_OK, tern_embed_list, e, NULL, 0, v, NULL);
        bool is_done;
        CALL(TERN_USAGE, tern_embed_step, e, v, &is_done);
        CALL(TERN_LIMIT, tern_embed_begin, e, ids, 1025);
        CALL(TERN_OK, tern_embed_begin, e, ids, 3);
        CALL(TERN_USAGE, tern_embedder_set_dim, e, tern_model_config(model)->hidden + 1);
        CALL(TERN_OK, tern_embedder_set_dim, e, 1);
    }
    tn_free(v);
    tern_embedder_free(e);
}

static void call_verify(void)
{
    struct tern_verify_result verified;
    CALL(TERN_INTERRUPTED, tern_verify, model, &live, stop_reading, NULL, &verified);
    CALL(TERN_OK, tern_verify, model, &live, NULL, NULL, &verified);
    const uint32_t id = 1;
    uint64_t hash;
    tern_session_truncate(session, 0);
    struct tern_pack_rates rates;
    CALL(TERN_OK, tern_measure_packs, &rates, engine, false);
    assert_true(rates.fast_gw_s > 0 && rates.small_gw_s > 0);
    CALL(TERN_OK, tern_fingerprint, &hash, session, &id, 1);
}

/* ---- conversion ---- */

static void call_convert(void)
{
    struct tern_convert_result r;
    const struct tern_convert_params p = {.source = DIR, .output = OUT, .no_tokenizer = true};
    CALL(TERN_OK, tern_convert, &p, &r);
    tn_file_remove(OUT);
    struct tern_source *looked_at;
    CALL(TERN_OK, tern_source_inspect, &looked_at, DIR);
    struct tern_source_sizes sizes;
    if (looked_at)
        CALL(TERN_OK, tern_source_get_sizes, looked_at, &sizes);
    uint64_t hash;
    CALL(TERN_OK, tern_source_hash, &hash, DIR);
    tern_source_free(looked_at);
}

/* Corrupts a text of the directory. */
static void expect_refused(tern_status expected, char *text, size_t capacity, const char *find,
                           const char *replacement)
{
    struct tern_convert_result r;
    const struct tern_convert_params p = {.source = DIR, .output = OUT, .no_tokenizer = true};
    model_dir_replace(text, capacity, find, replacement);
    model_dir_write(&source, DIR);
    CALL(expected, tern_convert, &p, &r);
    model_dir_make(&source, MODEL_BF16);
    model_dir_write(&source, DIR);
}

void test_convert_refused(void **state)
{
    (void)state;
    struct tern_convert_result r;
    struct tern_convert_params p = {.source = DIR "/none", .output = OUT};
    struct tern_source *looked_at;
    CALL(TERN_INPUT, tern_convert, &p, &r);
    CALL(TERN_INPUT, tern_source_inspect, &looked_at, DIR "/none");
    p.source = DIR;
    CALL(TERN_INPUT, tern_convert, &p, &r); /* without tokenizer.json */
    p.no_tokenizer = true;
    p.output = DIR "/config.json";
    CALL(TERN_USAGE, tern_convert, &p, &r);
    p.output = DIR "/none/out.tern";
    CALL(TERN_OUTPUT, tern_convert, &p, &r);
    p.output = OUT;
    p.on_progress = stop_reading;
    CALL(TERN_INTERRUPTED, tern_convert, &p, &r);
    p.on_progress = NULL;
    source.n_data += 16; /* bytes that belong to no tensor */
    model_dir_write(&source, DIR);
    CALL(TERN_INPUT, tern_convert, &p, &r);
    model_dir_make(&source, MODEL_BF16);
    expect_refused(TERN_INPUT, source.config, sizeof source.config, "{", "[");
    expect_refused(TERN_UNSUPPORTED, source.config, sizeof source.config, "relu2", "tanh");
    expect_refused(TERN_INPUT, source.header, sizeof source.header, "model.norm.weight",
                   "model.norm.wight");
    expect_refused(TERN_INPUT, source.generation, sizeof source.generation, "{", "");
}

/* ---- machine and plan ---- */

void test_machine(void **state)
{
    (void)state;
    static struct tern_sysinfo machine;
    struct tern_monitor *monitor = NULL;
    CALL(TERN_INPUT, tern_sysinfo_read_root, &machine, DIR "/none");
    CALL(TERN_OK, tern_sysinfo_read_root, &machine, TERN_SOURCE_DIR "/tests/sysinfo/roots/laptop-on-battery");
    note_call("tern_sysinfo_record");
    assert_true(tern_sysinfo_record(DIR, NULL) != TERN_OK); /* not empty, or not on Linux */
    CALL(TERN_OK, tern_monitor_open, &monitor, NULL);
    tern_monitor_close(monitor);
}

static void call_plan(void)
{
    static struct tern_sysinfo machine;
    static struct tern_plan plan;
    struct tern_watch *watch = NULL;
    struct tern_steering *steering = NULL;
    const struct tern_plan_limits bad[] = {{.n_threads = TERN_PLAN_MAX_THREADS + 1},
                                           {.cpu_level = "none such"}};
    tern_sysinfo_read(&machine);
    for (size_t i = 0; i < TN_COUNT_OF(bad); i++)
        CALL(TERN_USAGE, tern_plan_make, &plan, &machine, NULL, &bad[i]);
    const struct tern_plan_limits little = {.ram_bytes = 4096};
    struct tern_plan_model sizes;
    tern_plan_model_sizes(&sizes, model, 0);
    CALL(TERN_MEMORY, tern_plan_make, &plan, &machine, &sizes, &little);
    const struct tern_file_config config = {.n_layer = 1};
    const struct tern_file_layer layer = {.mixer = TERN_MIXER_ATTENTION, .ffn = TERN_FFN_GATED};
    const struct tern_file_tensor tensor = {.role = TERN_ROLE_Q, .layout = TERN_LAYOUT_T3};
    struct tern_model_info info;
    CALL(TERN_UNSUPPORTED, tern_plan_outline_sizes, &sizes, &info, &config, &layer, &tensor, 1,
         4096);
    CALL(TERN_OK, tern_plan_make, &plan, &machine, NULL, NULL);
    CALL(TERN_OK, tern_watch_create, &watch, &plan, NULL);
    tern_watch_free(watch);
    CALL(TERN_OK, tern_steering_create, &steering, engine, model, &machine, &plan);
    if (steering)
        tern_steering_free(steering);
}

void test_verify(void **state)
{
    (void)state;
    with_short_memory(call_verify, 5);
}

void test_measures(void **state)
{
    (void)state;
    with_short_memory(call_measures, 3);
    with_short_memory(call_embed, 1);
}

void test_convert(void **state)
{
    (void)state;
    with_short_memory(call_convert, 7);
}

void test_plan(void **state)
{
    (void)state;
    double gb_s;
    CALL(TERN_OK, tern_stream_rate, &gb_s, 1);
    with_short_memory(call_plan, 1);
}
