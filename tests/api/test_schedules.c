/* SPDX-License-Identifier: MIT
 *
 * Many concurrent requests: each gets the answer of tern_generate, whatever runs beside it, joins
 * or leaves, with and without drafts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../coarse_mixer.h"
#include "../slot_model.h"
#include "../tiny_model.h"
#include "answers.h"
#include "arch/arch.h"
#include "base/compiler.h"
#include "base/rng.h"
#include "demo.h"
#include "events.h"
#include "plat/plat.h"

#define TINY_PATH TERN_BUILD_DIR "/test_schedules_tiny.tern"
#define WINDOWED_PATH TERN_BUILD_DIR "/test_schedules_windowed.tern"
#define HYBRID_PATH TERN_BUILD_DIR "/test_schedules_hybrid.tern"
#define N_CTX 640u /* several blocks of the cache */
#define N_CTX_RINGS 1024u

static struct demo demo;
static struct tern_model *tiny, *coarse; /* coarse: with states that allow few rollbacks */
static struct tern_model *windowed;      /* with a window, which long contexts keep in a ring */

static int setup(void **state)
{
    (void)state;
    struct tern_error e;
    const struct tiny_variant variant = {.embed_layout = TERN_LAYOUT_Q8_PLANES,
                                         .has_sub_norms = true,
                                         .is_sparse = true,
                                         .context = 2304};
    struct tiny_variant with_window = variant;
    with_window.window = 20;
    if (!tiny_model_open(&tiny, TINY_PATH, &variant) ||
        tern_model_open(&coarse, TINY_PATH, &e) != TERN_OK ||
        !tiny_model_open(&windowed, WINDOWED_PATH, &with_window))
        return 1;
    coarse_layers(coarse);
    return !demo_open(&demo, TERN_BUILD_DIR "/test_schedules.tern", 2);
}

static int teardown(void **state)
{
    (void)state;
    demo_close(&demo);
    tern_model_free(tiny);
    tern_model_free(coarse);
    tern_model_free(windowed);
    tn_file_remove(WINDOWED_PATH);
    tn_file_remove(TINY_PATH);
    return 0;
}

/* ---- jobs: requests with the answer of tern_generate ---- */

#define N_JOBS 40u
#define MAX_PROMPT 560u

struct job {
    uint32_t prompt[MAX_PROMPT];
    struct tern_request request;
    const char *stop;
    char stop_text[8];
    struct answer want;
};

static uint32_t below(struct tn_rng *rng, uint32_t n)
{
    return (uint32_t)(tn_rng_next(rng) % n);
}

static void make_sampler_params(struct tern_sampler_params *p, struct tn_rng *rng)
{
    tern_sampler_params_default(p);
    p->seed = below(rng, 1000);
    if (below(rng, 3) == 0)
        p->temperature = 0;
    if (below(rng, 3) == 0)
        p->repeat_penalty = 1, p->presence_penalty = 0;
    p->top_k = below(rng, 4) == 0 ? 0 : 1 + below(rng, 30);
    p->penalty_last = below(rng, 3) == 0 ? TERN_MAX_CONTEXT : below(rng, 64);
}

/* Prompts start with a slice of one of three texts, so that many share a prefix. */
static void make_job(struct job *job, const struct tern_model *model, struct tn_rng *rng,
                     enum tern_kv kv)
{
    const uint32_t vocab = model == demo.model ? 4000 : 38, stem = below(rng, 3) * 7919u + 13;
    const uint32_t longest = below(rng, 4) == 0 ? MAX_PROMPT : 40;
    const uint32_t n = 1 + below(rng, longest), n_stem = below(rng, n + 1);
    for (uint32_t i = 0; i < n; i++)
        job->prompt[i] = 2 + (i < n_stem ? i * stem % 1009 : below(rng, 1009)) % (vocab - 2);
    job->request = (struct tern_request){.ids = job->prompt, .n_ids = n,
                                         .max_tokens = below(rng, 25),
                                         .ignore_eos = below(rng, 2) == 0,
                                         .n_draft = below(rng, TERN_MAX_DRAFT + 1),
                                         .n_system = below(rng, n + 1),
                                         .n_turn = below(rng, n + 1)};
    make_sampler_params(&job->request.sampler, rng);
    answer_generate(&job->want, demo.engine, model, &job->request, N_CTX, kv);
    if (below(rng, 3) > 0 || job->want.n_text < 12)
        return;
    /* The text ends where this slice of it occurs. */
    memcpy(job->stop_text, job->want.text + 6, 4);
    job->stop = job->stop_text;
    job->request.stop_strings = &job->stop;
    job->request.n_stop_strings = 1;
    answer_generate(&job->want, demo.engine, model, &job->request, N_CTX, kv);
    assert_int_equal(job->want.stop, TERN_STOP_STRING);
}

/* ---- schedules ---- */

static uint32_t n_drafted; /* total over all requests that ended */

/* Requests arrive, run, are cancelled and end at random. */
static void run_schedule(struct tern_scheduler *s, const struct job *jobs, struct tn_rng *rng)
{
    enum { MOST = 24 };
    static struct running list[MOST];
    const uint32_t n = 1 + below(rng, MOST), eagerness = 1 + below(rng, 6);
    uint32_t n_submitted = 0;
    memset(list, 0, sizeof list);
    for (bool is_idle = false; n_submitted < n || !is_idle;) {
        while (n_submitted < n && below(rng, eagerness) == 0) {
            struct running *r = &list[n_submitted++];
            const struct job *job = &jobs[below(rng, N_JOBS)];
            struct tern_request request = job->request;
            r->request = &job->request;
            r->want = &job->want;
            request.arg = r;
            assert_ok(tern_scheduler_submit(s, &request, &r->id, &e));
        }
        if (n_submitted > 0 && below(rng, 12) == 0) {
            struct running *r = &list[below(rng, n_submitted)];
            r->is_cancelled = r->is_cancelled || !r->has_ended;
            tern_scheduler_cancel(s, r->id);
        }
        const struct tern_event *events;
        size_t n_events;
        assert_ok(tern_scheduler_step(s, &events, &n_events, &is_idle, &e));
        for (size_t i = 0; i < n_events; i++) {
            struct running *r = events[i].arg;
            assert_int_equal(r->id, events[i].request);
            running_take_event(r, &events[i]);
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        running_check(&list[i]);
        n_drafted += list[i].result.n_drafted;
    }
}

/* Several schedulers with several schedules each, so that leftovers of one meet the next.  n_ctx:
 * of the scheduler; expected answers come from sessions of N_CTX. */
static void run_schedules(const struct tern_model *model, uint32_t n_ctx, uint32_t n_schedules)
{
    static struct job jobs[N_JOBS];
    struct tn_rng rng;
    tn_rng_seed(&rng, 16);
    for (uint32_t done = 0; done < n_schedules;) {
        const enum tern_kv kv = (enum tern_kv)below(&rng, 3);
        const struct tern_scheduler_params p = {.n_sequences = 1 + below(&rng, 8), .n_queue = 24,
                                                .n_ctx = n_ctx, .kv = kv,
                                                .n_checkpoints = 1 + below(&rng, 12),
                                                .n_batch = 1 + below(&rng, 100)};
        struct tern_scheduler *s;
        memset(jobs, 0, sizeof jobs);
        for (uint32_t i = 0; i < N_JOBS; i++)
            make_job(&jobs[i], model, &rng, kv);
        assert_ok(tern_scheduler_create(&s, demo.engine, model, &p, &e));
        for (uint32_t i = 0; i < 10 && done < n_schedules; i++, done++)
            run_schedule(s, jobs, &rng);
        tern_scheduler_free(s);
    }
}

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define IS_SLOW 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define IS_SLOW 1
#endif

/* TERN_CI_FULL selects the long form; under ThreadSanitizer everything takes a hundred times as
 * long. */
static uint32_t n_schedules(uint32_t few, uint32_t many)
{
#if defined(IS_SLOW)
    (void)many;
    return few / 5;
#endif
    const char *full = getenv("TERN_CI_FULL");
    return full && strcmp(full, "1") == 0 ? many : few;
}

static void answers_do_not_depend_on_company(void **state)
{
    (void)state;
    run_schedules(tiny, N_CTX, n_schedules(60, 1000));
    assert_true(n_drafted > 0); /* the first opportunity is always taken */
}

static void answers_of_states_do_not_depend_on_company(void **state)
{
    (void)state;
    n_drafted = 0;
    run_schedules(coarse, N_CTX, n_schedules(60, 1000));
    assert_true(n_drafted > 0);
}

/* ---- hybrids of random shapes ---- */

#define MAX_LAYERS 4u

static void fill_hybrid(void *arg, uint8_t *data, uint8_t *scales, const struct tern_file_tensor *t)
{
    float *x = (float *)(void *)data;
    const bool is_decay = t->role == TERN_ROLE_DELTA_DECAY;
    (void)scales;
    for (uint64_t i = 0; i < t->bytes / sizeof *x; i++)
        x[i] = is_decay       ? -0.02f - tn_rng_f32(arg)
               : t->rows == 1 ? 0.5f + tn_rng_f32(arg)
                              : (tn_rng_f32(arg) - 0.5f) * 0.6f;
}

/* A gated delta rule, or attention with or without a window; experts, or not. */
static struct tern_file_layer make_layer(struct tn_rng *rng, uint32_t i)
{
    static const uint32_t dims[] = {8, 16, 20, 32};
    struct tern_file_layer layer = tn_layer_default(16, TERN_ACT_SILU, 10000);
    if (i == 0 || below(rng, 2) == 0) {
        const uint32_t n_key_heads = 1 + below(rng, 3);
        layer = (struct tern_file_layer){.mixer = TERN_MIXER_GATED_DELTA,
                                         .activation = TERN_ACT_SILU,
                                         .n_head = n_key_heads * (1 + below(rng, 3)),
                                         .n_kv_head = n_key_heads,
                                         .head_dim = dims[below(rng, 4)],
                                         .value_dim = (uint16_t)dims[below(rng, 4)],
                                         .conv_taps = (uint8_t)(1 + below(rng, 6)),
                                         .delta_flags = below(rng, 2) ? TERN_DELTA_TILED : 0};
    } else if (below(rng, 2) == 0) {
        layer.window = 1 + below(rng, 40);
    }
    layer.ffn = below(rng, 2) ? TERN_FFN_EXPERTS : TERN_FFN_GATED;
    return layer;
}

static struct tern_model *make_hybrid(struct tn_rng *rng)
{
    struct tern_file_layer layers[MAX_LAYERS];
    struct slot_model m = {
        .layers = layers, .layout = TERN_LAYOUT_F32, .fill = fill_hybrid, .arg = rng};
    struct tern_model *model;
    bool has_experts = false;
    tn_config_default(&m.config);
    m.config.n_layer = 1 + below(rng, MAX_LAYERS);
    for (uint32_t i = 0; i < m.config.n_layer; i++) {
        layers[i] = make_layer(rng, i);
        has_experts = has_experts || layers[i].ffn == TERN_FFN_EXPERTS;
    }
    m.config.inputs = TERN_INPUTS_FLOAT;
    m.config.hidden = 64;
    m.config.vocab = 40;
    m.config.context = N_CTX_RINGS;
    m.config.n_head = 4;
    m.config.n_kv_head = 2;
    m.config.head_dim = 16;
    m.config.ffn = 48;
    if (has_experts) {
        m.config.n_experts = 1 + below(rng, 9);
        m.config.n_experts_used = 1 + below(rng, m.config.n_experts);
        m.config.expert_ffn = 32;
        m.config.expert_flags = TERN_EXPERTS_RENORMALISED;
    }
    assert_ok(slot_model_write(HYBRID_PATH, &m, &e));
    assert_ok(tern_model_open(&model, HYBRID_PATH, &e));
    return model;
}

static void answers_of_hybrids_do_not_depend_on_company(void **state)
{
    (void)state;
    const uint32_t n_models = n_schedules(6, 100);
    struct tn_rng rng;
    tn_rng_seed(&rng, 28);
    n_drafted = 0;
    for (uint32_t i = 0; i < n_models; i++) {
        struct tern_model *model = make_hybrid(&rng);
        run_schedules(model, i % 2 ? N_CTX : N_CTX_RINGS, 8);
        tern_model_free(model);
    }
    tn_file_remove(HYBRID_PATH);
    assert_true(n_drafted > 0);
}

/* The scheduler keeps the window in rings, the sessions that give the expected answers in blocks.
 */
static void answers_of_rings_do_not_depend_on_company(void **state)
{
    (void)state;
    n_drafted = 0;
    run_schedules(windowed, N_CTX_RINGS, n_schedules(60, 1000));
    assert_true(n_drafted > 0);
}

static void texts_do_not_depend_on_company(void **state)
{
    (void)state;
    run_schedules(demo.model, N_CTX, n_schedules(10, 100));
}

/* ---- shared prefixes ---- */

/* Four concurrent requests whose prompts share the first 2000 ids. */
static void a_shared_prefix_is_computed_and_stored_once(void **state)
{
    (void)state;
    enum { N = 4, N_COMMON = 2000, N_PROMPT = N_COMMON + 10 };
    static uint32_t prompts[N][N_PROMPT];
    static struct answer want[N];
    struct tern_request requests[N];
    struct running list[N] = {0};
    struct tern_model_info info;
    struct tern_scheduler *s;
    struct tern_scheduler_state empty, full;
    const struct tern_scheduler_params p = {.n_sequences = N, .kv = TERN_KV_F16};
    uint32_t n_evaluated = 0;
    tern_model_get_info(tiny, &info);
    assert_ok(tern_scheduler_create(&s, demo.engine, tiny, &p, &e));
    tern_scheduler_get_state(s, &empty);
    for (uint32_t i = 0; i < N; i++) {
        for (uint32_t k = 0; k < N_PROMPT; k++)
            prompts[i][k] = 2 + (k < N_COMMON ? k * 7 : k + i) % 36;
        requests[i] = (struct tern_request){.ids = prompts[i], .n_ids = N_PROMPT,
                                            .max_tokens = 24, .ignore_eos = true};
        tern_sampler_params_default(&requests[i].sampler);
        answer_generate(&want[i], demo.engine, tiny, &requests[i], 0, p.kv);
        list[i] = (struct running){.request = &requests[i], .want = &want[i]};
        requests[i].arg = &list[i];
        assert_ok(tern_scheduler_submit(s, &requests[i], &list[i].id, &e));
    }
    struct events events = {.scheduler = s};
    for (const struct tern_event *event; (event = events_next(&events));)
        running_take_event(event->arg, event);
    tern_scheduler_get_state(s, &full);
    for (uint32_t i = 0; i < N; i++) {
        running_check(&list[i]);
        n_evaluated += list[i].result.n_prompt_evaluated;
    }
    /* Whole blocks of 256 are stored once; in addition the last block of each, and one that was
     * copied. */
    const uint64_t block_bytes = 256 * info.kv_bytes_per_token[TERN_KV_F16];
    assert_true(full.bytes - empty.bytes >= (N_COMMON / 256 + N) * block_bytes);
    assert_true(full.bytes - empty.bytes <= (N_COMMON / 256 + N + 1) * block_bytes);
    assert_true(n_evaluated <= N_COMMON + N * 10);
    tern_scheduler_free(s);
}

/* ---- drafts ---- */

#define N_EACH 3u

/* Every token with its text and log-probabilities. */
struct record {
    struct answer answer;
    uint32_t ends[MAX_NEW]; /* offset in the text after each token */
    struct tern_token_logprob logprobs[MAX_NEW][N_EACH];
    struct tern_generate_result result;
};

static void record_event(struct record *r, const struct tern_event *event)
{
    struct answer *a = &r->answer;
    assert_true(a->n_text + event->n_text <= MAX_TEXT && a->n <= MAX_NEW);
    memcpy(a->text + a->n_text, event->text, event->n_text);
    a->n_text += event->n_text;
    if (event->kind == TERN_EVENT_END) {
        r->result = event->result;
        return;
    }
    assert_int_equal(event->n_logprobs, N_EACH);
    memcpy(r->logprobs[a->n], event->logprobs, sizeof r->logprobs[0]);
    r->ends[a->n] = (uint32_t)a->n_text;
    a->ids[a->n++] = event->id;
}

/* n concurrent requests with a repetitive text. */
static void record_all(struct record *out, uint32_t n, uint32_t n_draft)
{
    static uint32_t ids[2][30];
    struct tern_scheduler *s;
    const struct tern_scheduler_params p = {.n_sequences = n, .n_ctx = 200, .kv = TERN_KV_Q8};
    assert_ok(tern_scheduler_create(&s, demo.engine, demo.model, &p, &e));
    for (uint32_t i = 0; i < n; i++) {
        struct tern_request r = {.ids = ids[i], .n_ids = 30, .max_tokens = MAX_NEW, .arg = &out[i],
                                 .ignore_eos = true, .n_logprobs = N_EACH, .n_draft = n_draft};
        for (uint32_t k = 0; k < 30; k++)
            ids[i][k] = 300 + (i + 1) * 17 * (k % 5);
        r.sampler = (struct tern_sampler_params){.top_p = 1, .repeat_penalty = 1};
        assert_ok(tern_scheduler_submit(s, &r, &(uint64_t){0}, &e));
    }
    struct events events = {.scheduler = s};
    for (const struct tern_event *event; (event = events_next(&events));)
        if (event->kind != TERN_EVENT_PREFILL)
            record_event(event->arg, event);
    tern_scheduler_free(s);
}

static void drafts_change_no_event(void **state)
{
    (void)state;
    static struct record want[2], got[2];
    for (uint32_t n = 1; n <= 2; n++) {
        memset(want, 0, sizeof want);
        memset(got, 0, sizeof got);
        record_all(want, n, 0);
        record_all(got, n, TERN_MAX_DRAFT);
        for (uint32_t i = 0; i < n; i++) {
            assert_int_equal(want[i].answer.n, MAX_NEW);
            assert_memory_equal(&got[i].answer, &want[i].answer, sizeof want[i].answer);
            assert_memory_equal(got[i].ends, want[i].ends, sizeof want[i].ends);
            assert_memory_equal(got[i].logprobs, want[i].logprobs, sizeof want[i].logprobs);
            assert_int_equal(want[i].result.n_drafted, 0);
            assert_int_equal(want[i].result.n_steps, MAX_NEW - 1);
            assert_int_equal(got[i].result.n_steps + got[i].result.n_accepted, MAX_NEW - 1);
        }
        assert_true(got[0].result.n_drafted > 0); /* the first opportunity is always taken */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_do_not_depend_on_company),
        cmocka_unit_test(answers_of_states_do_not_depend_on_company),
        cmocka_unit_test(answers_of_rings_do_not_depend_on_company),
        cmocka_unit_test(answers_of_hybrids_do_not_depend_on_company),
        cmocka_unit_test(texts_do_not_depend_on_company),
        cmocka_unit_test(a_shared_prefix_is_computed_and_stored_once),
        cmocka_unit_test(drafts_change_no_event),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
