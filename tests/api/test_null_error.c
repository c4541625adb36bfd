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
#include "null_error.h"
#include "plat/plat.h"
#include "tern/convert.h"
#include "tern/plan.h"
#include "tern/scheduler.h"

struct tern_sysinfo live;
struct tern_engine *engine;
struct tern_model *model;
struct tern_session *session;
uint32_t vocab;
struct model_dir source;
bool is_short;

/* ---- the calls ---- */

static char called[4096]; /* " name name ... " */

void note_call(const char *name)
{
    char word[64];
    snprintf(word, sizeof word, " %s ", name);
    if (strstr(called, word))
        return;
    assert_true(strlen(called) + strlen(word) < sizeof called);
    strcat(called, called[0] ? word + 1 : word);
}

/* ---- failing allocations ---- */

void with_short_memory(void (*run)(void), unsigned step)
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

bool stop_reading(void *arg, uint64_t n_done, uint64_t n_total)
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

static void test_others(void **state)
{
    (void)state;
    call_unchanged();
    call_prefetch();
    call_eval();
    call_generate();
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
        cmocka_unit_test(test_convert_refused),
        cmocka_unit_test(test_machine),
        cmocka_unit_test(test_plan),
        cmocka_unit_test(test_others),
        cmocka_unit_test(test_conversation),
        cmocka_unit_test(test_no_function_is_missing), /* must be last */
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
