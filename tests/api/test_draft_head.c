/* SPDX-License-Identifier: MIT
 *
 * The draft head of a model: its logits are those of the float64 reference, and whatever it drafts,
 * answers keep their bytes.
 *
 * usage: test_draft_head [source under reference/hybrids]
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "answers.h"
#include "base/compiler.h"
#include "demo.h"
#include "engine/session.h"
#include "events.h"
#include "plat/plat.h"
#include "tern/convert.h"
#include "tern/plan.h"

#define HYBRIDS TERN_SHARED_DIR "/reference/hybrids/"
#define GOLDEN HYBRIDS "models/tiny-qwen35/golden"
#define VOCAB 264u
#define HIDDEN 64u
#define N_IDS 17u
#define N_PAIRS (N_IDS - 1)
#define N_NEW 40u
#define N_CTX 128u

static const char *source = HYBRIDS "models/tiny-qwen35";
static char model_path[512];
static struct tern_sysinfo machine;
static struct tern_engine *engine;
static struct tern_model *model;
static uint32_t ids[N_IDS];

static struct tern_engine *open_engine(uint32_t n_threads, const char *level)
{
    struct tern_engine *out;
    const struct tern_engine_params p = {
        .n_threads = n_threads, .cpu_level = level, .inputs = TERN_INPUTS_AS_F32};
    return tern_engine_create(&out, &machine, &p, NULL) == TERN_OK ? out : NULL;
}

static int setup(void **state)
{
    const struct tern_convert_params p = {.source = source, .output = model_path, .force = true};
    struct tern_convert_result result;
    (void)state;
    tern_sysinfo_read(&machine);
    json_t *golden = json_load_file(GOLDEN "/ids.json", 0, NULL);
    const json_t *list = json_array_get(json_object_get(golden, "prompt_ids"), 1);
    assert_int_equal(json_array_size(list), N_IDS);
    for (size_t i = 0; i < N_IDS; i++)
        ids[i] = (uint32_t)json_integer_value(json_array_get(list, i));
    json_decref(golden);
    assert_ok(tern_convert(&p, &result, &e));
    assert_ok(tern_model_open(&model, model_path, &e));
    engine = open_engine(2, NULL);
    return engine ? 0 : 1;
}

static int teardown(void **state)
{
    (void)state;
    tern_model_free(model);
    tern_engine_free(engine);
    tn_file_remove(model_path);
    return 0;
}

/* ---- logits ---- */

/* Logits [N_PAIRS][VOCAB] of the head for the pairs of the prompt, n_step at a time. */
static void head_logits(float *out, struct tern_engine *with, uint32_t n_step, enum tern_kv kv)
{
    struct tern_session *s;
    float states[N_IDS * HIDDEN], last[HIDDEN];
    struct tn_logits_row wanted[N_PAIRS] = {{0}};
    const struct tern_session_params p = {.n_ctx = N_CTX, .n_draft = 1, .kv = kv};
    assert_ok(tern_session_create(&s, with, model, &p, &e));
    assert_ok(tern_session_eval_states(s, ids, N_IDS, states, &e));
    for (uint32_t t = 0; t < N_PAIRS; t += n_step) {
        const uint32_t n = TN_MIN(n_step, N_PAIRS - t);
        const struct tn_span span = {.blocks = s->work.forward.s.sequences[0].draft_blocks,
                                     .position = t, .n_rows = n};
        for (uint32_t i = 0; i < n; i++)
            wanted[i].row = i;
        const struct tn_batch batch = {.ids = ids + t + 1, .n_rows = n, .spans = &span,
                                       .n_spans = 1, .wanted = wanted, .n_wanted = n,
                                       .logits = out + (size_t)t * VOCAB};
        assert_true(tn_workspace_eval_draft(&s->work, &batch, states + (size_t)t * HIDDEN, last));
    }
    tern_session_free(s);
}

static void logits_are_the_reference_s(void **state)
{
    (void)state;
    static float want[N_PAIRS * VOCAB], got[N_PAIRS * VOCAB];
    FILE *file = fopen(GOLDEN "/mtp_1.f32", "rb");
    assert_non_null(file);
    assert_int_equal(fread(want, sizeof *want, TN_COUNT_OF(want), file), TN_COUNT_OF(want));
    fclose(file);
    head_logits(got, engine, N_PAIRS, TERN_KV_F32);
    for (size_t i = 0; i < TN_COUNT_OF(want); i++)
        if (!(fabs((double)got[i] - (double)want[i]) < 1e-4)) /* also NaN */
            fail_msg("logit %zu of the draft head is %g, of the reference %g", i, (double)got[i],
                     (double)want[i]);
}

static void any_cut_and_engine_gives_the_same_bits(void **state)
{
    (void)state;
    static const char *const levels[] = {"ref", "ssse3", "avx2", "avx512", "amx", "neon"};
    static float want[N_PAIRS * VOCAB], got[N_PAIRS * VOCAB];
    head_logits(want, engine, N_PAIRS, TERN_KV_Q8);
    for (size_t i = 0; i < TN_COUNT_OF(levels); i++)
        for (uint32_t n_threads = 1; n_threads <= 3; n_threads++) {
            struct tern_engine *other = open_engine(n_threads, levels[i]);
            if (!other)
                continue;
            head_logits(got, other, 1 + (uint32_t)i + n_threads, TERN_KV_Q8);
            assert_memory_equal(got, want, sizeof want);
            tern_engine_free(other);
        }
}

/* ---- answers ---- */

struct drafted_answer {
    uint32_t ids[N_NEW], n;
    struct tern_generate_result result;
    uint32_t n_past;
};

struct way {
    float temperature;
    uint32_t n_draft, n_batch, n_ctx, max_tokens;
    enum tern_kv kv;
};

static void on_token(void *arg, uint32_t id)
{
    struct drafted_answer *a = arg;
    assert_true(a->n < N_NEW);
    a->ids[a->n++] = id;
}

static void write_answer(struct drafted_answer *out, struct tern_engine *with, const struct way *w)
{
    struct tern_session *s;
    const struct tern_session_params p = {
        .n_ctx = w->n_ctx, .n_batch = w->n_batch, .n_draft = w->n_draft, .kv = w->kv};
    struct tern_sampler_params sp = {.temperature = w->temperature, .top_p = 1, .top_k = 20,
                                     .repeat_penalty = 1, .seed = 3};
    struct tern_generate_params g = {.max_tokens = w->max_tokens, .ignore_eos = true,
                                     .n_draft = w->n_draft, .verify_all = true,
                                     .on_token = on_token, .arg = out};
    memset(out, 0, sizeof *out);
    assert_ok(tern_session_create(&s, with, model, &p, &e));
    assert_ok(tern_sampler_create(&g.sampler, &sp, VOCAB, &e));
    assert_ok(tern_generate(s, ids, N_IDS, &g, &out->result, &e));
    out->n_past = tern_session_n_past(s);
    tern_sampler_free(g.sampler);
    tern_session_free(s);
}

static void compare(struct tern_engine *with, const struct way *base)
{
    struct way plain = *base;
    struct drafted_answer want, got;
    plain.n_draft = 0;
    write_answer(&want, engine, &plain);
    write_answer(&got, with, base);
    assert_int_equal(got.n, want.n);
    assert_memory_equal(got.ids, want.ids, want.n * sizeof *want.ids);
    assert_int_equal(got.n_past, want.n_past);
    assert_int_equal(got.result.stop, want.result.stop);
    if (base->n_batch != 1 && base->n_ctx == N_CTX && base->max_tokens > 8)
        assert_true(got.result.n_drafted > 8);
}

static void drafts_change_no_answer(void **state)
{
    (void)state;
    for (uint32_t n_draft = 1; n_draft <= TERN_MAX_DRAFT; n_draft += 2)
        for (uint32_t n_batch = 1; n_batch <= 65; n_batch = 2 * n_batch + 1)
            for (int sampled = 0; sampled < 2; sampled++) {
                const struct way w = {.temperature = sampled ? 1.3f : 0, .n_draft = n_draft,
                                      .n_batch = n_batch, .n_ctx = N_CTX, .max_tokens = N_NEW,
                                      .kv = n_batch % 3};
                compare(engine, &w);
            }
}

static void drafts_end_where_the_text_does(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= 12; n++) {
        const struct way few = {.n_draft = 7, .n_ctx = N_CTX, .max_tokens = n};
        const struct way small = {.n_draft = 7, .n_ctx = N_IDS + n, .max_tokens = N_NEW};
        compare(engine, &few);
        compare(engine, &small);
    }
}

/* Wrong drafts leave gaps in the head's cache: a long answer must not fill it. */
static void a_long_answer_goes_through_its_cache(void **state)
{
    (void)state;
    static uint32_t long_ids[700];
    struct tern_session *s;
    const struct tern_session_params p = {.n_ctx = 1024, .n_draft = 3};
    struct tern_sampler_params sp = {.top_p = 1, .repeat_penalty = 1};
    struct tern_generate_params g = {.max_tokens = 300, .ignore_eos = true, .verify_all = true};
    struct tern_generate_result result;
    uint32_t want[1000];
    for (uint32_t i = 0; i < TN_COUNT_OF(long_ids); i++)
        long_ids[i] = i * i % VOCAB;
    for (uint32_t n_draft = 0; n_draft <= 3; n_draft += 3) {
        g.n_draft = n_draft;
        assert_ok(tern_session_create(&s, engine, model, &p, &e));
        assert_ok(tern_sampler_create(&g.sampler, &sp, VOCAB, &e));
        assert_ok(tern_generate(s, long_ids, TN_COUNT_OF(long_ids), &g, &result, &e));
        assert_int_equal(result.n_new, 300);
        if (n_draft == 0)
            memcpy(want, tern_session_ids(s), 999 * sizeof *want);
        else
            assert_memory_equal(want, tern_session_ids(s), 999 * sizeof *want);
        assert_true(n_draft == 0 || result.n_drafted > 300);
        tern_sampler_free(g.sampler);
        tern_session_free(s);
    }
}

static void every_engine_drafts_the_same(void **state)
{
    (void)state;
    static const char *const levels[] = {"ref", "ssse3", "avx2", "avx512", "amx", "neon"};
    struct drafted_answer first = {.n = 0}, got;
    const struct way w = {.n_draft = 4, .n_ctx = N_CTX, .max_tokens = N_NEW};
    for (size_t i = 0; i < TN_COUNT_OF(levels); i++)
        for (uint32_t n_threads = 1; n_threads <= 3; n_threads++) {
            struct tern_engine *other = open_engine(n_threads, levels[i]);
            if (!other)
                continue;
            compare(other, &w);
            write_answer(&got, other, &w);
            if (first.n == 0)
                first = got;
            assert_int_equal(got.result.n_accepted, first.result.n_accepted);
            assert_int_equal(got.result.n_drafted, first.result.n_drafted);
            tern_engine_free(other);
        }
}

static bool stop_soon(void *arg)
{
    uint32_t *n = arg;
    return ++*n % 97 == 0;
}

/* A stop between the layers of the head or of the model: the answer so far is right. */
static void an_interrupted_head_leaves_no_trace(void **state)
{
    (void)state;
    const struct way plain = {.n_ctx = N_CTX, .max_tokens = N_NEW};
    struct drafted_answer want, got = {.n = 0};
    struct tern_session *s;
    uint32_t n_calls = 0;
    const struct tern_session_params p = {
        .n_ctx = N_CTX, .n_draft = 3, .should_stop = stop_soon, .arg = &n_calls};
    const struct tern_sampler_params sp = {.top_p = 1, .top_k = 20, .repeat_penalty = 1};
    struct tern_generate_params g = {.max_tokens = 10, .ignore_eos = true, .n_draft = 3,
                                     .verify_all = true, .on_token = on_token, .arg = &got};
    uint32_t text[N_CTX];
    size_t n = N_IDS;
    write_answer(&want, engine, &plain);
    memcpy(text, ids, sizeof ids);
    assert_ok(tern_session_create(&s, engine, model, &p, &e));
    assert_ok(tern_sampler_create(&g.sampler, &sp, VOCAB, &e));
    while (got.n < N_NEW) {
        g.max_tokens = N_NEW - got.n;
        (void)tern_generate(s, text, n, &g, &got.result, NULL);
        memcpy(text + N_IDS, got.ids, got.n * sizeof *text);
        n = N_IDS + got.n;
    }
    assert_memory_equal(got.ids, want.ids, sizeof want.ids);
    tern_sampler_free(g.sampler);
    tern_session_free(s);
}

/* Answers of 4 requests, of which n_sequences run at the same time. */
static void schedule(uint32_t out[4][N_NEW], uint32_t n_sequences, uint32_t n_draft)
{
    struct tern_scheduler_params p;
    struct tern_request list[4];
    tern_scheduler_params_default(&p, model);
    p.n_sequences = n_sequences;
    p.n_ctx = N_CTX;
    p.no_draft_head = n_draft == 0;
    for (uint32_t k = 0; k < 4; k++)
        list[k] = (struct tern_request){.ids = ids, .n_ids = N_IDS - k, .max_tokens = N_NEW,
                                        .ignore_eos = true, .n_draft = n_draft,
                                        .sampler = {.top_p = 1, .repeat_penalty = 1}};
    answers_schedule(out[0], N_NEW, engine, model, &p, list, 4);
}

static void sequences_answer_as_without_drafts(void **state)
{
    (void)state;
    uint32_t want[4][N_NEW], got[4][N_NEW];
    schedule(want, 1, 0);
    for (uint32_t n = 1; n <= 4; n++) {
        schedule(got, n, TERN_MAX_DRAFT);
        assert_memory_equal(got, want, sizeof want);
    }
}

/* Ids that the scheduler drafts for its only request, whose text repeats nothing. */
static uint32_t count_scheduled(bool has_head)
{
    struct tern_scheduler *s;
    struct tern_scheduler_params p;
    const struct tern_request request = {.ids = ids, .n_ids = N_IDS, .max_tokens = N_NEW,
                                         .ignore_eos = true, .n_draft = TERN_MAX_DRAFT,
                                         .sampler = {.temperature = 1.3f, .top_p = 1,
                                                     .repeat_penalty = 1, .seed = 3}};
    uint32_t n_drafted = 0;
    tern_scheduler_params_default(&p, model);
    p.n_ctx = N_CTX;
    p.no_draft_head = !has_head;
    assert_ok(tern_scheduler_create(&s, engine, model, &p, &e));
    assert_ok(tern_scheduler_submit(s, &request, &(uint64_t){0}, &e));
    struct events events = {.scheduler = s};
    for (const struct tern_event *event; (event = events_next(&events));)
        n_drafted = event->result.n_drafted;
    tern_scheduler_free(s);
    return n_drafted;
}

static void the_head_drafts_for_a_single_sequence(void **state)
{
    (void)state;
    assert_int_equal(count_scheduled(false), 0);
    assert_true(count_scheduled(true) > 0); /* the first opportunity is always taken */
}

static uint64_t session_bytes(uint32_t n_draft)
{
    struct tern_session *s;
    const struct tern_session_params p = {.n_ctx = N_CTX, .n_draft = n_draft, .kv = TERN_KV_Q8};
    assert_ok(tern_session_create(&s, engine, model, &p, &e));
    const uint64_t n = tern_session_bytes_full(s);
    tern_session_free(s);
    return n;
}

/* Without drafts the head takes no memory. */
static void the_plan_counts_the_head(void **state)
{
    (void)state;
    struct tern_plan_model sizes;
    tern_plan_model_sizes(&sizes, model, 0);
    const uint64_t more = session_bytes(3) - session_bytes(0);
    const uint64_t planned = sizes.draft_head_bytes + 3 * sizes.draft_bytes;
    assert_true(sizes.draft_head_bytes > 2 * TN_DRAFT_WINDOW * 2 * 64 * sizeof(float));
    assert_in_range(more, planned - tn_page_bytes(), planned + tn_page_bytes());
}

int main(int argc, char **argv)
{
    static char path[512];
    const bool is_gguf = argc > 1;
    if (is_gguf)
        snprintf(path, sizeof path, HYBRIDS "%s", argv[1]);
    source = is_gguf ? path : source;
    snprintf(model_path, sizeof model_path, TERN_BUILD_DIR "/test_draft_head-%d.tern", is_gguf);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logits_are_the_reference_s),
        cmocka_unit_test(any_cut_and_engine_gives_the_same_bits),
        cmocka_unit_test(drafts_change_no_answer),
        cmocka_unit_test(drafts_end_where_the_text_does),
        cmocka_unit_test(a_long_answer_goes_through_its_cache),
        cmocka_unit_test(every_engine_drafts_the_same),
        cmocka_unit_test(an_interrupted_head_leaves_no_trace),
        cmocka_unit_test(sequences_answer_as_without_drafts),
        cmocka_unit_test(the_head_drafts_for_a_single_sequence),
        cmocka_unit_test(the_plan_counts_the_head),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
