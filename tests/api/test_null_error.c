/* SPDX-License-Identifier: MIT
 *
 * Every public function that takes a struct tern_error accepts NULL for it: on success, for each
 * kind of refusal, and for every failing allocation.  The last test reads the public headers and
 * fails for functions that are not called here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "failing_alloc.h"
#include "plat/plat.h"
#include "robust/model_dir.h"
#include "tern/conversation.h"
#include "tern/calls.h"
#include "tern/convert.h"
#include "tern/embed.h"
#include "tern/grammar.h"
#include "tern/inspect.h"
#include "tern/measure.h"
#include "tern/plan.h"
#include "tern/scheduler.h"
#include "tern/sysinfo.h"
#include "tern/tern.h"

#define DIR TERN_BUILD_DIR "/test_null_error"
#define DEMO DIR "/demo.tern"
#define OUT DIR "/out.tern"

static struct tern_sysinfo live;
static struct tern_engine *engine;
static struct tern_model *model;
static struct tern_session *session;
static uint32_t vocab;

/* ---- the calls ---- */

static char called[4096]; /* " name name ... " */

static void note_call(const char *name)
{
    char word[64];
    snprintf(word, sizeof word, " %s ", name);
    if (strstr(called, word))
        return;
    assert_true(strlen(called) + strlen(word) < sizeof called);
    strcat(called, called[0] ? word + 1 : word);
}

/* name(arguments..., NULL) must return `expected`; while memory is short, TERN_MEMORY is allowed
 * too. */
#define CALL(expected, name, ...)                                                                  \
    do {                                                                                           \
        note_call(#name);                                                                          \
        const tern_status got = name(__VA_ARGS__, NULL);                                           \
        if (got != (expected) && !(is_short && got == TERN_MEMORY))                                \
            fail_msg("%s, line %d: %s instead of %s", #name, __LINE__, tern_status_text(got),      \
                     tern_status_text(expected));                                                  \
    } while (0)

/* ---- failing allocations ---- */

static bool is_short;

/* Fails all allocations from the n-th on, n = 0, step, 2 step ... until the function succeeds. */
static void with_short_memory(void (*run)(void), unsigned step)
{
    run();
    is_short = true;
    bool has_failed = true;
    for (unsigned n = 0; has_failed; n += step) {
        fail_alloc_after(n);
        run();
        has_failed = fail_alloc_stop();
    }
    is_short = false;
}

/* ---- engine, model, session ---- */

static void call_engine(void)
{
    struct tern_engine *e = NULL;
    const struct tern_engine_params one = {.n_threads = 1};
    const struct tern_engine_params many = {.n_threads = TERN_PLAN_MAX_THREADS + 1};
    const struct tern_engine_params level = {.cpu_level = "none such"};
    CALL(TERN_USAGE, tern_engine_create, &e, &live, &many);
    CALL(TERN_USAGE, tern_engine_create, &e, &live, &level);
    CALL(TERN_OK, tern_engine_create, &e, &live, &one);
    tern_engine_free(e);
}

static void call_model(void)
{
    struct tern_model *m = NULL;
    CALL(TERN_INPUT, tern_model_open, &m, DIR "/none.tern");
    CALL(TERN_INPUT, tern_model_open, &m, DIR);
    CALL(TERN_INPUT, tern_model_open, &m, DIR "/config.json");
    CALL(TERN_OK, tern_model_open, &m, DEMO);
    tern_model_free(m);
}

static void call_unchanged(void)
{
    CALL(TERN_OK, tern_model_check_unchanged, model);
#if !defined(_WIN32) /* Windows does not allow writing to a mapped file */
    struct tern_model *m = NULL;
    unsigned char byte;
    struct tern_error err;
    FILE *f = fopen(OUT, "wb");
    char *bytes;
    size_t n;
    assert_non_null(f);
    assert_int_equal(tn_file_read_all(&bytes, &n, DEMO, 64u << 20, &err), TERN_OK);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fflush(f);
    byte = (unsigned char)bytes[n - 1];
    tn_free(bytes);
    assert_int_equal(tern_model_open(&m, OUT, &err), TERN_OK);
    const uint64_t start = tn_now_ns();
    while (tn_seconds_since(start) < 0.02) /* longer than a tick of the file system's clock */
        ;
    fputc(byte ^ 1, f);
    fclose(f);
    CALL(TERN_MAPPED_IO, tern_model_check_unchanged, m);
    tern_model_free(m);
    tn_file_remove(OUT);
#endif
}

static bool stop_reading(void *arg, uint64_t n_done, uint64_t n_total)
{
    (void)arg, (void)n_done, (void)n_total;
    return false;
}

static void call_prefetch(void)
{
    CALL(TERN_OK, tern_model_prefetch, model, NULL, NULL);
    CALL(TERN_INTERRUPTED, tern_model_prefetch, model, stop_reading, NULL);
}

static void call_session(void)
{
    struct tern_session *s = NULL;
    const uint32_t n_ctx = tern_model_config(model)->context;
    const struct tern_session_params bad[] = {
        {.n_ctx = n_ctx + 1}, {.n_batch = 513}, {.kv = (enum tern_kv)9}};
    for (size_t i = 0; i < TN_COUNT_OF(bad); i++)
        CALL(TERN_USAGE, tern_session_create, &s, engine, model, &bad[i]);
    CALL(TERN_OK, tern_session_create, &s, engine, model, NULL);
    tern_session_free(s);
}

static void call_scheduler(void)
{
    static const uint32_t ids[65] = {1};
    struct tern_scheduler *s = NULL;
    struct tern_scheduler_params p = {.n_sequences = 0, .n_ctx = 64};
    struct tern_request r = {.ids = ids, .n_ids = 65, .max_tokens = 2};
    const struct tern_event *events;
    size_t n_events;
    bool is_idle = false;
    uint64_t id;
    tern_sampler_params_default(&r.sampler);
    CALL(TERN_USAGE, tern_scheduler_create, &s, engine, model, &p);
    p.n_sequences = 1;
    CALL(TERN_OK, tern_scheduler_create, &s, engine, model, &p);
    if (!s)
        return;
    CALL(TERN_LIMIT, tern_scheduler_submit, s, &r, &id);
    r.n_ids = 0;
    CALL(TERN_USAGE, tern_scheduler_submit, s, &r, &id);
    r.n_ids = 1;
    CALL(TERN_OK, tern_scheduler_submit, s, &r, &id);
    if (id)
        CALL(TERN_BUSY, tern_scheduler_submit, s, &r, &(uint64_t){0});
    while (!is_idle)
        CALL(TERN_OK, tern_scheduler_step, s, &events, &n_events, &is_idle);
    tern_scheduler_free(s);
}

static bool refuse(void *arg, uint64_t n_bytes)
{
    (void)arg, (void)n_bytes;
    return false;
}

static bool stop(void *arg)
{
    (void)arg;
    return true;
}

static void call_eval(void)
{
    static uint32_t ids[65];
    const uint32_t bad[] = {vocab};
    struct tern_session_params p = {.n_ctx = 64, .may_grow = refuse};
    struct tern_session *s;
    tern_session_truncate(session, 0);
    CALL(TERN_USAGE, tern_session_eval, session, bad, 1, NULL);
    CALL(TERN_LIMIT, tern_session_eval, session, ids, 65, NULL);
    CALL(TERN_OK, tern_session_eval, session, ids, 3, NULL);
    float *states = tn_alloc_zeroed(3, tern_model_config(model)->hidden * sizeof *states);
    if (states) {
        CALL(TERN_USAGE, tern_session_eval_states, session, bad, 1, states);
        CALL(TERN_OK, tern_session_eval_states, session, ids, 3, states);
    }
    tn_free(states);
    if (tern_session_create(&s, engine, model, &p, NULL) == TERN_OK)
        CALL(TERN_MEMORY, tern_session_eval, s, ids, 1, NULL);
    tern_session_free(s);
    p = (struct tern_session_params){.n_ctx = 64, .should_stop = stop};
    if (tern_session_create(&s, engine, model, &p, NULL) == TERN_OK)
        CALL(TERN_INTERRUPTED, tern_session_eval, s, ids, 1, NULL);
    tern_session_free(s);
}

static void call_generate(void)
{
    static const uint32_t ids[65] = {4080, 507};
    const char *empty = "";
    struct tern_generate_result r;
    struct tern_sampler_params sp;
    struct tern_sampler *sampler, *other;
    tern_sampler_params_default(&sp);
    assert_int_equal(tern_sampler_create(&sampler, &sp, vocab, NULL), TERN_OK);
    assert_int_equal(tern_sampler_create(&other, &sp, 9, NULL), TERN_OK);
    struct tern_generate_params p = {.sampler = other, .max_tokens = 2};
    CALL(TERN_USAGE, tern_generate, session, ids, 2, &p, &r);
    p = (struct tern_generate_params){
        .sampler = sampler, .max_tokens = 2, .stop_strings = &empty, .n_stop_strings = 1};
    CALL(TERN_USAGE, tern_generate, session, ids, 2, &p, &r);
    p = (struct tern_generate_params){.sampler = sampler, .max_tokens = 2};
    CALL(TERN_USAGE, tern_generate, session, ids, 0, &p, &r);
    CALL(TERN_USAGE, tern_generate, session, &vocab, 1, &p, &r);
    CALL(TERN_LIMIT, tern_generate, session, ids, 65, &p, &r);
    CALL(TERN_OK, tern_generate, session, ids, 2, &p, &r);
    fail_alloc_after(0); /* the text's memory; the samplers above have theirs already */
    CALL(TERN_MEMORY, tern_generate, session, ids, 2, &p, &r);
    fail_alloc_stop();
    tern_sampler_free(sampler);
    tern_sampler_free(other);
}

static void call_sampler(void)
{
    const float logits[8] = {0, 1, 2}, broken[1] = {__builtin_nanf("")};
    uint32_t id, ids[8], n;
    float probabilities[8];
    struct tern_sampler_params p;
    struct tern_sampler *s = NULL;
    tern_sampler_params_default(&p);
    CALL(TERN_USAGE, tern_sampler_create, &s, &p, 0);
    p.temperature = -1.0f;
    CALL(TERN_USAGE, tern_sampler_create, &s, &p, 4);
    p.temperature = 1.0f;
    CALL(TERN_OK, tern_sampler_create, &s, &p, 4);
    if (!s)
        return;
    CALL(TERN_OK, tern_sampler_sample, s, logits, 4, 4, &id);
    CALL(TERN_USAGE, tern_sampler_sample, s, logits, 8, 8, &id);
    CALL(TERN_INTERNAL, tern_sampler_sample, s, broken, 1, 1, &id);
    CALL(TERN_OK, tern_sampler_distribution, s, logits, 4, 4, ids, probabilities, &n);
    CALL(TERN_USAGE, tern_sampler_distribution, s, logits, 8, 8, ids, probabilities, &n);
    tern_sampler_free(s);
}

/* ---- text ---- */

static void call_text(void)
{
    static char run[4000]; /* one piece, for which the tokenizer allocates memory */
    const struct tern_tokenizer *t = tern_model_tokenizer(model);
    const struct tern_message message = {"user", 4, "hello", 5};
    const struct tern_chat_template *qwen3 = tern_chat_template_find("qwen3");
    const struct tern_chat_params params = {.add_generation_prompt = true};
    struct tern_ids ids = {0};
    unsigned char *map = NULL;
    char *text = NULL;
    size_t n;
    memset(run, 'a', sizeof run);
    struct tern_chat_template *own;
    const struct tern_chat_template *of_model;
    CALL(TERN_UNSUPPORTED, tern_chat_template_parse, &own, "{% x %}", 7);
    CALL(TERN_OK, tern_chat_template_parse, &own, "{{ x.y }}", 9);
    if (own) {
        CALL(TERN_USAGE, tern_chat_render_json, own, "[]", 2, &params, &text, &n, &map);
        CALL(TERN_USAGE, tern_chat_encode_json, t, own, "nonsense", 8, &params, &ids);
        CALL(TERN_USAGE, tern_chat_encode_json_within, t, own, "nonsense", 8, &params, 5, &n,
             &ids);
    }
    tern_chat_template_free(own);
    CALL(TERN_OK, tern_model_chat_template, &of_model, model);
    assert_non_null(of_model);
    CALL(TERN_OK, tern_tokenizer_encode, t, run, sizeof run, TERN_ENCODE_ADD_SPECIAL, &ids);
    CALL(TERN_OK, tern_tokenizer_add_special, t, &ids, 0, NULL);
    CALL(TERN_OK, tern_tokenizer_decode, t, ids.ids, ids.n, true, &text, &n);
    tern_text_free(text);
    text = NULL;
    CALL(TERN_USAGE, tern_tokenizer_decode, t, &(uint32_t){TERN_NO_ID}, 1, true, &text, &n);
    CALL(TERN_OK, tern_chat_encode, t, qwen3, &message, 1, &params, &ids);
    CALL(TERN_USAGE, tern_chat_encode, t, qwen3, NULL, 0, &params, &ids);
    tern_ids_free(&ids);
    CALL(TERN_USAGE, tern_chat_render, qwen3, NULL, 0, &params, &text, &n, &map);
    CALL(TERN_OK, tern_chat_render, qwen3, &message, 1, &params, &text, &n, &map);
    tern_text_free(text);
    tern_text_free(map);
}

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
    assert_true(rates.stream_gb_s > 0 && rates.fast_gw_s > 0 && rates.small_gw_s > 0);
    CALL(TERN_OK, tern_fingerprint, &hash, session, &id, 1);
}

/* ---- conversion ---- */

static struct model_dir source;

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

static void call_convert_refused(void)
{
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

static void call_machine(void)
{
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

/* ---- tests ---- */

static void test_engine(void **state)
{
    (void)state;
    with_short_memory(call_engine, 1);
}

static void test_model(void **state)
{
    (void)state;
    with_short_memory(call_model, 1);
}

static void test_session_create(void **state)
{
    (void)state;
    with_short_memory(call_session, 1);
}

static void test_scheduler(void **state)
{
    (void)state;
    with_short_memory(call_scheduler, 1);
}

static void test_sampler(void **state)
{
    (void)state;
    with_short_memory(call_sampler, 1);
}

static void test_text(void **state)
{
    (void)state;
    with_short_memory(call_text, 1);
}

static void call_grammar(void)
{
    static const char schema[] = "{\"enum\":[1,12]}";
    struct tern_grammar *g;
    size_t n_fit;
    bool is_whole;
    CALL(TERN_UNSUPPORTED, tern_grammar_from_schema, &g, "{\"not\":{}}", 10, 0);
    CALL(TERN_OK, tern_grammar_json_object, &g);
    tern_grammar_free(g);
    CALL(TERN_OK, tern_grammar_from_schema_between, &g, "<", schema, strlen(schema), ">", 0);
    tern_grammar_free(g);
    CALL(TERN_OK, tern_grammar_from_schema, &g, schema, strlen(schema), 0);
    if (g)
        CALL(TERN_OK, tern_grammar_match, g, "12", 2, &n_fit, &is_whole);
    tern_grammar_free(g);
}

static void call_calls(void)
{
    static const char request[] = "{\"messages\":[],\"tools\":[{}]}";
    static const char answer[] = "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>";
    static const char template[] = "{% if tools %}<tool_call>{% endif %}";
    const struct tern_chat_params params = {.add_generation_prompt = true};
    struct tern_chat_template *t;
    enum tern_call_form form;
    struct tern_calls *calls;
    CALL(TERN_OK, tern_chat_template_parse, &t, template, strlen(template));
    if (t)
        CALL(TERN_OK, tern_chat_call_form, &form, t, request, strlen(request), &params);
    tern_chat_template_free(t);
    CALL(TERN_OK, tern_calls_create, &calls, TERN_CALLS_TAGGED, false);
    if (calls) {
        CALL(TERN_OK, tern_calls_push, calls, answer, strlen(answer));
        CALL(TERN_OK, tern_calls_end, calls);
    }
    tern_calls_free(calls);
}

static bool take_part(void *arg, enum tern_part part, const char *text, size_t n)
{
    (void)arg, (void)part, (void)text, (void)n;
    return true;
}

static void call_thinking(void)
{
    static const char answer[] = "<think>a</think>b";
    static const char template[] = "{{ enable_thinking }}";
    const struct tern_chat_params params = {.add_generation_prompt = true};
    struct tern_chat_template *t;
    struct tern_chat_reasoning known;
    struct tern_thinking *thinking;
    const struct tern_ids none = {0};
    const char *close;
    CALL(TERN_OK, tern_thinking_opened_by_ids, &close, tern_model_tokenizer(model), &none);
    CALL(TERN_OK, tern_chat_template_parse, &t, template, strlen(template));
    if (t)
        CALL(TERN_OK, tern_chat_reasoning, &known, t, &params);
    tern_chat_template_free(t);
    CALL(TERN_OK, tern_thinking_create, &thinking, take_part, NULL);
    if (thinking) {
        CALL(TERN_OK, tern_thinking_push, thinking, answer, strlen(answer));
        CALL(TERN_OK, tern_thinking_end, thinking);
    }
    tern_thinking_free(thinking);
}

static void test_grammar(void **state)
{
    (void)state;
    with_short_memory(call_grammar, 1);
    with_short_memory(call_calls, 1);
    with_short_memory(call_thinking, 1);
}

static void test_verify(void **state)
{
    (void)state;
    with_short_memory(call_verify, 5);
}

static void test_measures(void **state)
{
    (void)state;
    with_short_memory(call_measures, 3);
    with_short_memory(call_embed, 1);
}

static void test_convert(void **state)
{
    (void)state;
    with_short_memory(call_convert, 7);
}

static void test_plan(void **state)
{
    (void)state;
    double gb_s;
    CALL(TERN_OK, tern_stream_rate, &gb_s, 1);
    with_short_memory(call_plan, 1);
}

static void test_others(void **state)
{
    (void)state;
    call_unchanged();
    call_prefetch();
    call_eval();
    call_generate();
    call_convert_refused();
    call_machine();
}

/* ---- completeness ---- */

/* Replaces comments by blanks. */
static void blank_comments(char *text)
{
    for (char *begin; (begin = strstr(text, "/*")) != NULL;) {
        char *end = strstr(begin, "*/");
        assert_non_null(end);
        memset(begin, ' ', (size_t)(end + 2 - begin));
    }
}

static unsigned count(const char *text, const char *word)
{
    unsigned n = 0;
    while ((text = strstr(text, word)) != NULL) {
        text += strlen(word);
        n++;
    }
    return n;
}

/* Checks all declarations "tern_status name(..., struct tern_error *err);" of a header.  Returns
 * their number. */
static unsigned check_header(const char *path)
{
    static const char status[] = "\ntern_status ", error[] = "struct tern_error *";
    char *text;
    size_t n_text;
    unsigned n = 0;
    struct tern_error err;
    assert_int_equal(tn_file_read_all(&text, &n_text, path, 1u << 20, &err), TERN_OK);
    blank_comments(text);
    for (char *at = text; (at = strstr(at, status)) != NULL;) {
        char word[64], *name = at + sizeof status - 1, *end = strchr(name, ';');
        assert_non_null(end);
        *end = '\0';
        if (strstr(name, error)) {
            snprintf(word, sizeof word, " %.*s ", (int)strcspn(name, "("), name);
            if (!strstr(called, word))
                fail_msg("%s:%sis not called with a NULL error", path, word);
            n++;
        }
        *end = ';';
        at = end;
    }
    assert_int_equal(n, count(text, error)); /* every declaration has this format */
    tn_free(text);
    return n;
}

static void test_no_function_is_missing(void **state)
{
    (void)state;
    static const char *const headers[] = {PUBLIC_HEADERS};
    unsigned n = 0;
    for (size_t i = 0; i < TN_COUNT_OF(headers); i++)
        n += check_header(headers[i]);
    assert_true(n >= 20);
}

/* ---- conversations ---- */

static struct tern_sampler *sampler_of_talk;

static void talk(void)
{
    const struct tern_saved saved = {"demo", 1, NULL};
    const struct tern_turn question = {.role = {"user", 4}, .content = {"Hi", 2}};
    const struct tern_chat_template *t = tern_chat_template_find("chatml");
    const struct tern_chat_params chat = {.add_generation_prompt = true};
    const struct tern_answer_params params = {
        .generate = {.sampler = sampler_of_talk, .max_tokens = 2}};
    struct tern_answer_result result;
    struct tern_conversation *c;
    struct tern_ids ids = {0};
    tn_file_remove(OUT);
    CALL(TERN_OK, tern_conversation_create, &c);
    if (!c)
        return;
    CALL(TERN_USAGE, tern_conversation_encode, c, &ids);
    tern_conversation_set_template(c, tern_model_tokenizer(model), t, &chat);
    CALL(TERN_OK, tern_conversation_set_system, c, "Be kind.", 8);
    CALL(TERN_USAGE, tern_conversation_set_tools, c, "{}", 2);
    CALL(TERN_USAGE, tern_conversation_set_variables, c, "[]", 2);
    CALL(TERN_USAGE, tern_conversation_set_overrides, c, "[]", 2);
    CALL(TERN_USAGE, tern_conversation_regenerate, c, session, &params, &result);
    CALL(TERN_USAGE, tern_conversation_replace, c, session, &params, &result);
    CALL(TERN_USAGE, tern_conversation_continue, c, session, &params, &result);
    CALL(TERN_OK, tern_conversation_add, c, &question);
    CALL(TERN_OK, tern_conversation_encode, c, &ids);
    CALL(TERN_OK, tern_conversation_save, c, OUT, &saved);
    CALL(TERN_OK, tern_conversation_save, c, OUT, &saved);
    if (tn_path_kind(OUT) == TN_PATH_FILE)
        CALL(TERN_OK, tern_conversation_load, c, OUT, &saved, NULL);
    CALL(TERN_OUTPUT, tern_conversation_save, c, DEMO, &saved);
    CALL(TERN_INPUT, tern_conversation_load, c, DEMO, &saved, NULL);
    if (tern_conversation_n_turns(c) == 1)
        CALL(TERN_OK, tern_conversation_answer, c, session, &params, &result);
    tn_file_remove(OUT);
    if (tern_session_n_past(session) > 0)
        CALL(TERN_OK, tern_session_save_cache, session, OUT);
    if (tn_path_kind(OUT) == TN_PATH_FILE)
        CALL(TERN_OK, tern_session_load_cache, session, OUT);
    tn_file_remove(OUT);
    CALL(TERN_INPUT, tern_session_load_cache, session, OUT);
    CALL(TERN_USAGE, tern_session_save_cache, session, OUT);
    tern_ids_free(&ids);
    tern_conversation_free(c);
}

static void test_conversation(void **state)
{
    (void)state;
    const struct tern_sampler_params greedy = {.top_p = 1.0f, .repeat_penalty = 1.0f};
    assert_int_equal(tern_sampler_create(&sampler_of_talk, &greedy, vocab, NULL), TERN_OK);
    with_short_memory(talk, 1);
    tern_sampler_free(sampler_of_talk);
}

static int setup(void **state)
{
    (void)state;
    struct tern_error e;
    struct tern_convert_result result;
    const struct tern_convert_params convert = {.source = TERN_SOURCE_DIR "/dist/demo",
                                                .output = DEMO};
    const struct tern_session_params params = {.n_ctx = 64};
    tern_sysinfo_read(&live);
    tn_file_remove(OUT);
    model_dir_make(&source, MODEL_BF16);
    model_dir_write(&source, DIR);
    if (tern_convert(&convert, &result, &e) != TERN_OK ||
        tern_engine_create(&engine, &live, &(struct tern_engine_params){.n_threads = 1}, &e) !=
            TERN_OK ||
        tern_model_open(&model, DEMO, &e) != TERN_OK ||
        tern_session_create(&session, engine, model, &params, &e) != TERN_OK) {
        fprintf(stderr, "%s\n", e.detail);
        return 1;
    }
    vocab = tern_model_config(model)->vocab;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tern_session_free(session);
    tern_model_free(model);
    tern_engine_free(engine);
    tn_file_remove(DEMO);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_engine),
        cmocka_unit_test(test_model),
        cmocka_unit_test(test_session_create),
        cmocka_unit_test(test_scheduler),
        cmocka_unit_test(test_sampler),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_grammar),
        cmocka_unit_test(test_verify),
        cmocka_unit_test(test_measures),
        cmocka_unit_test(test_convert),
        cmocka_unit_test(test_plan),
        cmocka_unit_test(test_others),
        cmocka_unit_test(test_conversation),
        cmocka_unit_test(test_no_function_is_missing), /* must be last */
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
