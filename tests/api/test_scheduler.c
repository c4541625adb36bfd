/* SPDX-License-Identifier: MIT
 *
 * The scheduler through the public API: what a request gets is what tern_generate gives, whoever
 * runs beside it, joins or leaves; and every way to stop and to be refused.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../tiny_model.h"
#include "base/alloc.h"
#include "base/compiler.h"
#include "base/rng.h"
#include "plat/plat.h"
#include "tern/convert.h"
#include "tern/scheduler.h"

#define DEMO_PATH TERN_BUILD_DIR "/test_scheduler.tern"
#define TINY_PATH TERN_BUILD_DIR "/test_scheduler_tiny.tern"
#define N_CTX 640u /* several blocks of the cache */
#define MAX_NEW 24u
#define MAX_TEXT 1024u

static struct tern_sysinfo live;
static struct tern_engine *engine;
static struct tern_model *demo, *tiny;

#define assert_ok(call)                                                                            \
    do {                                                                                           \
        struct tern_error e = {TERN_OK, ""};                                                       \
        if ((call) != TERN_OK)                                                                     \
            fail_msg("%s: %s", #call, e.detail);                                                   \
    } while (0)

static int setup(void **state)
{
    (void)state;
    struct tern_error e;
    struct tern_convert_result result;
    const struct tern_convert_params convert = {.source = TERN_SOURCE_DIR "/dist/demo",
                                                .output = DEMO_PATH};
    const struct tiny_variant variant = {.embed_layout = TERN_LAYOUT_Q8_PLANES,
                                         .has_sub_norms = true,
                                         .is_sparse = true,
                                         .context = 2304};
    tern_sysinfo_read(&live);
    if (tern_convert(&convert, &result, &e) != TERN_OK ||
        tiny_model_make(TINY_PATH, &variant, &e) != TERN_OK ||
        tern_engine_create(&engine, &live, &(struct tern_engine_params){.n_threads = 2}, &e) !=
            TERN_OK ||
        tern_model_open(&demo, DEMO_PATH, &e) != TERN_OK ||
        tern_model_open(&tiny, TINY_PATH, &e) != TERN_OK) {
        fprintf(stderr, "%s\n", e.detail);
        return 1;
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tern_model_free(demo);
    tern_model_free(tiny);
    tern_engine_free(engine);
    tn_file_remove(DEMO_PATH);
    tn_file_remove(TINY_PATH);
    return 0;
}

/* ---- jobs: requests with the answer that tern_generate gives ---- */

#define N_JOBS 40u
#define MAX_PROMPT 560u

struct answer {
    uint32_t ids[MAX_NEW];
    uint32_t n;
    char text[MAX_TEXT];
    size_t n_text;
    enum tern_stop stop;
};

struct job {
    uint32_t prompt[MAX_PROMPT];
    struct tern_request request;
    const char *stop;
    char stop_text[8];
    struct answer want;
};

static bool on_text(void *arg, const char *text, size_t n)
{
    struct answer *a = arg;
    assert_true(a->n_text + n <= MAX_TEXT);
    memcpy(a->text + a->n_text, text, n);
    a->n_text += n;
    return true;
}

static void on_token(void *arg, uint32_t id)
{
    struct answer *a = arg;
    a->ids[a->n++] = id;
}

/* What tern_generate answers in a new session. */
static void generate(struct answer *out, const struct tern_model *model,
                     const struct tern_request *r, enum tern_kv kv)
{
    struct tern_session *session;
    struct tern_sampler *sampler;
    struct tern_generate_result result;
    const struct tern_session_params sp = {.n_ctx = N_CTX, .kv = kv};
    *out = (struct answer){0};
    const struct tern_generate_params p = {.max_tokens = r->max_tokens,
                                           .ignore_eos = r->ignore_eos,
                                           .stop_strings = r->stop_strings,
                                           .n_stop_strings = r->n_stop_strings,
                                           .on_text = on_text,
                                           .on_token = on_token,
                                           .arg = out};
    struct tern_generate_params with = p;
    assert_ok(tern_session_create(&session, engine, model, &sp, &e));
    assert_ok(tern_sampler_create(&sampler, &r->sampler, tern_model_config(model)->vocab, &e));
    with.sampler = sampler;
    assert_ok(tern_generate(session, r->ids, r->n_ids, &with, &result, &e));
    out->stop = result.stop;
    tern_sampler_free(sampler);
    tern_session_free(session);
}

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

/* Prompts begin with a stretch of one of three texts, so that many have a beginning in common. */
static void make_job(struct job *job, const struct tern_model *model, struct tn_rng *rng,
                     enum tern_kv kv)
{
    const uint32_t vocab = model == demo ? 4000 : 38, stem = below(rng, 3) * 7919u + 13;
    const uint32_t longest = below(rng, 4) == 0 ? MAX_PROMPT : 40;
    const uint32_t n = 1 + below(rng, longest), n_stem = below(rng, n + 1);
    for (uint32_t i = 0; i < n; i++)
        job->prompt[i] = 2 + (i < n_stem ? i * stem % 1009 : below(rng, 1009)) % (vocab - 2);
    job->request = (struct tern_request){.ids = job->prompt, .n_ids = n,
                                         .max_tokens = below(rng, MAX_NEW + 1),
                                         .ignore_eos = below(rng, 2) == 0};
    make_sampler_params(&job->request.sampler, rng);
    generate(&job->want, model, &job->request, kv);
    if (below(rng, 3) > 0 || job->want.n_text < 12)
        return;
    /* A text that ends where this stretch of it comes. */
    memcpy(job->stop_text, job->want.text + 6, 4);
    job->stop = job->stop_text;
    job->request.stop_strings = &job->stop;
    job->request.n_stop_strings = 1;
    generate(&job->want, model, &job->request, kv);
    assert_int_equal(job->want.stop, TERN_STOP_STRING);
}

/* ---- schedules ---- */

struct running {
    const struct job *job;
    uint64_t id;
    struct answer got;
    bool has_ended;
    bool is_cancelled;
};

static void take_event(struct running *r, const struct tern_event *event)
{
    assert_false(r->has_ended);
    switch (event->kind) {
    case TERN_EVENT_PREFILL:
        assert_int_equal(r->got.n, 0);
        assert_true(event->n_done > 0 && event->n_done <= event->n_total);
        break;
    case TERN_EVENT_TOKEN:
        assert_true(r->got.n < MAX_NEW);
        r->got.ids[r->got.n++] = event->id;
        on_text(&r->got, event->text, event->n_text);
        break;
    case TERN_EVENT_END:
        on_text(&r->got, event->text, event->n_text);
        r->has_ended = true;
        r->got.stop = event->result.stop;
        assert_int_equal(event->status, TERN_OK);
        assert_int_equal(event->result.n_new, r->got.n);
        assert_int_equal(event->result.n_prompt, r->job->request.n_ids);
        break;
    default:
        fail_msg("event %d", (int)event->kind);
    }
}

/* All of the answer, or a beginning of it where the request was cancelled before it ended. */
static void check_answer(const struct running *r)
{
    const struct answer *want = &r->job->want, *got = &r->got;
    assert_true(r->has_ended);
    assert_true(got->n <= want->n && got->n_text <= want->n_text + 16);
    assert_memory_equal(got->ids, want->ids, got->n * sizeof *got->ids);
    if (r->is_cancelled && got->stop == TERN_STOP_INTERRUPT)
        return;
    assert_int_equal(got->n, want->n);
    assert_int_equal(got->stop, want->stop);
    assert_int_equal(got->n_text, want->n_text);
    assert_memory_equal(got->text, want->text, want->n_text);
}

/* Requests come, run, are cancelled and end as the generator has it. */
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
            r->job = &jobs[below(rng, N_JOBS)];
            struct tern_request request = r->job->request;
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
            take_event(r, &events[i]);
        }
    }
    for (uint32_t i = 0; i < n; i++)
        check_answer(&list[i]);
}

/* Some schedulers, each for some schedules, so that what is left of one meets the next. */
static void run_schedules(const struct tern_model *model, uint32_t n_schedules)
{
    static struct job jobs[N_JOBS];
    struct tn_rng rng;
    tn_rng_seed(&rng, 16);
    for (uint32_t done = 0; done < n_schedules;) {
        const enum tern_kv kv = (enum tern_kv)below(&rng, 3);
        const struct tern_scheduler_params p = {.n_sequences = 1 + below(&rng, 8), .n_queue = 24,
                                                .n_ctx = N_CTX, .kv = kv,
                                                .n_batch = 1 + below(&rng, 100)};
        struct tern_scheduler *s;
        memset(jobs, 0, sizeof jobs);
        for (uint32_t i = 0; i < N_JOBS; i++)
            make_job(&jobs[i], model, &rng, kv);
        assert_ok(tern_scheduler_create(&s, engine, model, &p, &e));
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

/* TERN_CI_FULL asks for the long form; under ThreadSanitizer all take a hundred times as long. */
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
    run_schedules(tiny, n_schedules(60, 1000));
}

static void texts_do_not_depend_on_company(void **state)
{
    (void)state;
    run_schedules(demo, n_schedules(10, 100));
}

/* ---- one thing at a time ---- */

static const uint32_t story[] = {4080, 507, 458, 980};

static struct tern_request request_of(const uint32_t *ids, size_t n, uint32_t max_tokens)
{
    struct tern_request r = {.ids = ids, .n_ids = n, .max_tokens = max_tokens, .ignore_eos = true};
    tern_sampler_params_default(&r.sampler);
    r.sampler.seed = 7;
    return r;
}

static struct tern_scheduler *open_scheduler(uint32_t n_sequences, uint32_t n_queue)
{
    struct tern_scheduler *s;
    const struct tern_scheduler_params p = {
        .n_sequences = n_sequences, .n_queue = n_queue, .n_ctx = N_CTX, .kv = TERN_KV_F16};
    assert_ok(tern_scheduler_create(&s, engine, demo, &p, &e));
    return s;
}

/* Steps until nothing is left; events of each kind are counted, the last end is kept. */
struct outcome {
    uint32_t n[TERN_EVENT_END + 1];
    struct tern_event end;
};

static struct outcome finish(struct tern_scheduler *s)
{
    struct outcome out = {0};
    for (bool is_idle = false; !is_idle;) {
        const struct tern_event *events;
        size_t n_events;
        assert_ok(tern_scheduler_step(s, &events, &n_events, &is_idle, &e));
        for (size_t i = 0; i < n_events; i++) {
            out.n[events[i].kind]++;
            if (events[i].kind == TERN_EVENT_END)
                out.end = events[i];
        }
    }
    return out;
}

static void what_is_wrong_is_refused(void **state)
{
    (void)state;
    struct tern_error err;
    struct tern_scheduler *s;
    const struct tern_scheduler_params bad[] = {
        {.n_sequences = 0}, {.n_sequences = 65}, {.n_sequences = 1, .n_queue = 5000},
        {.n_sequences = 1, .n_batch = 513}, {.n_sequences = 1, .kv = (enum tern_kv)3},
        {.n_sequences = 1, .n_ctx = tern_model_config(demo)->context + 1}};
    for (size_t i = 0; i < TN_COUNT_OF(bad); i++) {
        assert_int_equal(tern_scheduler_create(&s, engine, demo, &bad[i], &err), TERN_USAGE);
        assert_null(s);
    }
    s = open_scheduler(1, 1);
    static const char *const empty = "";
    const uint32_t vocab = tern_model_config(demo)->vocab;
    static uint32_t many[N_CTX + 1];
    uint64_t id;
    struct tern_request r[] = {request_of(story, 4, 1), request_of(&vocab, 1, 1),
                               request_of(story, 0, 1), request_of(story, 4, 1),
                               request_of(story, 4, 1)};
    r[0].sampler.temperature = -1;
    r[3].stop_strings = &empty, r[3].n_stop_strings = 1;
    r[4].n_logprobs = TERN_MAX_LOGPROBS + 1;
    for (size_t i = 0; i < TN_COUNT_OF(r); i++)
        assert_int_equal(tern_scheduler_submit(s, &r[i], &id, &err), TERN_USAGE);
    struct tern_request good = request_of(many, N_CTX + 1, 1);
    assert_int_equal(tern_scheduler_submit(s, &good, &id, &err), TERN_LIMIT);
    good.n_ids = N_CTX;
    assert_ok(tern_scheduler_submit(s, &good, &id, &e));
    assert_ok(tern_scheduler_submit(s, &good, &id, &e));
    assert_int_equal(tern_scheduler_submit(s, &good, &id, &err), TERN_BUSY);
    struct outcome out = finish(s);
    assert_int_equal(out.n[TERN_EVENT_END], 2);
    assert_int_equal(out.n[TERN_EVENT_TOKEN], 2);
    assert_int_equal(out.end.result.n_prompt_evaluated, 1); /* the other one's was still there */
    assert_ok(tern_scheduler_submit(s, &good, &id, &e));
    tern_scheduler_free(s); /* drops it */
}

static void no_tokens_are_only_the_prompt(void **state)
{
    (void)state;
    struct tern_scheduler *s = open_scheduler(2, 0);
    struct tern_request r = request_of(story, 4, 0);
    uint64_t id;
    assert_ok(tern_scheduler_submit(s, &r, &id, &e));
    struct outcome out = finish(s);
    assert_int_equal(out.n[TERN_EVENT_PREFILL], 1);
    assert_int_equal(out.n[TERN_EVENT_TOKEN], 0);
    assert_int_equal(out.end.result.stop, TERN_STOP_LENGTH);
    assert_int_equal(out.end.n_text, 0);
    tern_scheduler_free(s);
}

/* ---- log-probabilities ---- */

/* ln softmax(logits)[id], the plain way. */
static double logprob(const float *logits, uint32_t n, uint32_t id)
{
    double max = logits[0], sum = 0;
    for (uint32_t i = 1; i < n; i++)
        max = TN_MAX(max, (double)logits[i]);
    for (uint32_t i = 0; i < n; i++)
        sum += exp((double)logits[i] - max);
    return (double)logits[id] - max - log(sum);
}

static void check_logprobs(const struct tern_event *event, const float *logits, uint32_t vocab,
                           uint32_t n_want)
{
    assert_int_equal(event->n_logprobs, n_want);
    assert_int_equal(event->logprobs[0].id, event->id);
    for (uint32_t i = 0; i < n_want; i++) {
        const struct tern_token_logprob *p = &event->logprobs[i];
        assert_true(fabs((double)p->logprob - logprob(logits, vocab, p->id)) < 1e-5);
        if (i < 2)
            continue;
        assert_true(p->logprob <= p[-1].logprob);
        assert_true(p->logprob < p[-1].logprob || p->id > p[-1].id);
    }
    uint32_t n_larger = 0; /* than the last that is listed */
    for (uint32_t i = 0; i < vocab; i++)
        n_larger += logits[i] > logits[event->logprobs[n_want - 1].id];
    assert_true(n_want == 1 || n_larger <= n_want - 2);
}

static void log_probabilities_are_those_of_the_logits(void **state)
{
    (void)state;
    enum { N_PROMPT = 20, N_NEW = 6, N_EACH = 5 };
    const uint32_t vocab = tern_model_config(demo)->vocab;
    uint32_t ids[N_PROMPT + N_NEW], n_ids = N_PROMPT, n_seen = 0;
    struct tern_scheduler *s = open_scheduler(3, 0);
    struct tern_session *session;
    const struct tern_session_params sp = {.n_ctx = N_CTX, .kv = TERN_KV_F16};
    float *logits = test_malloc((N_PROMPT + N_NEW) * vocab * sizeof *logits);
    for (uint32_t i = 0; i < N_PROMPT; i++)
        ids[i] = 300 + i * 17;
    assert_ok(tern_session_create(&session, engine, demo, &sp, &e));
    assert_ok(tern_session_eval(session, ids, N_PROMPT, logits, &e));
    struct tern_request r = request_of(ids, N_PROMPT, N_NEW);
    uint64_t id, other;
    r.n_logprobs = N_EACH;
    r.prompt_logprobs = true;
    assert_ok(tern_scheduler_submit(s, &r, &id, &e));
    r.prompt_logprobs = false, r.n_logprobs = 0;
    assert_ok(tern_scheduler_submit(s, &r, &other, &e));
    for (bool is_idle = false; !is_idle;) {
        const struct tern_event *events;
        size_t n;
        assert_ok(tern_scheduler_step(s, &events, &n, &is_idle, &e));
        for (size_t i = 0; i < n; i++) {
            const struct tern_event *event = &events[i];
            if (event->request != id) {
                assert_int_equal(event->n_logprobs, 0);
            } else if (event->kind == TERN_EVENT_PROMPT) {
                assert_int_equal(event->id, ids[n_seen]);
                if (n_seen > 0)
                    check_logprobs(event, logits + (n_seen - 1) * (size_t)vocab, vocab, N_EACH);
                else
                    assert_int_equal(event->n_logprobs, 0);
                n_seen++;
            } else if (event->kind == TERN_EVENT_TOKEN) {
                float *row = logits + (n_ids - 1) * (size_t)vocab;
                check_logprobs(event, row, vocab, N_EACH);
                ids[n_ids++] = event->id;
                assert_ok(tern_session_eval(session, &event->id, 1, row + vocab, &e));
            }
        }
    }
    assert_int_equal(n_seen, N_PROMPT);
    assert_int_equal(n_ids, N_PROMPT + N_NEW);
    test_free(logits);
    tern_session_free(session);
    tern_scheduler_free(s);
}

/* ---- adjusted logits ---- */

/* Only the ids 100, 101, ... in their order. */
static void force_id(void *arg, float *logits, uint32_t n_vocab)
{
    uint32_t *next = arg;
    for (uint32_t i = 0; i < n_vocab; i++)
        if (i != *next)
            logits[i] = -INFINITY;
        else
            assert_true(isfinite(logits[i]));
    ++*next;
}

static void forbid_all(void *arg, float *logits, uint32_t n_vocab)
{
    (void)arg;
    for (uint32_t i = 0; i < n_vocab; i++)
        logits[i] = -INFINITY;
}

static void logits_can_be_adjusted(void **state)
{
    (void)state;
    uint32_t next = 100, n = 0;
    uint64_t id, free_id, dead;
    struct tern_scheduler *s = open_scheduler(3, 0);
    struct tern_request r = request_of(story, 4, 10);
    assert_ok(tern_scheduler_submit(s, &r, &free_id, &e));
    r.adjust = force_id, r.arg = &next, r.n_logprobs = 1;
    assert_ok(tern_scheduler_submit(s, &r, &id, &e));
    r.adjust = forbid_all, r.n_logprobs = 0;
    assert_ok(tern_scheduler_submit(s, &r, &dead, &e));
    for (bool is_idle = false; !is_idle;) {
        const struct tern_event *events;
        size_t n_events;
        assert_ok(tern_scheduler_step(s, &events, &n_events, &is_idle, &e));
        for (size_t i = 0; i < n_events; i++) {
            if (events[i].request == id && events[i].kind == TERN_EVENT_TOKEN) {
                assert_int_equal(events[i].id, 100 + n++);
                /* The model's own, although nothing else could be chosen. */
                assert_true(events[i].logprobs[0].logprob < -0.01f);
            }
            if (events[i].request == dead && events[i].kind == TERN_EVENT_END)
                assert_int_equal(events[i].status, TERN_INTERNAL);
        }
    }
    assert_int_equal(n, 10);
    tern_scheduler_free(s);
}

/* ---- stopping ---- */

struct stopper {
    struct tern_scheduler *scheduler;
    uint64_t cancel; /* this one, when asked */
    uint32_t n_asked;
    uint32_t stop_at; /* true once, when asked for this time */
};

static bool should_stop(void *arg)
{
    struct stopper *st = arg;
    st->n_asked++;
    if (st->cancel)
        tern_scheduler_cancel(st->scheduler, st->cancel);
    return st->n_asked == st->stop_at;
}

static void one_that_is_cancelled_stops_between_layers(void **state)
{
    (void)state;
    struct stopper st = {0};
    const struct tern_scheduler_params p = {.n_sequences = 2, .n_ctx = N_CTX, .n_batch = 512,
                                            .should_stop = should_stop, .arg = &st};
    static uint32_t ids[500];
    struct tern_request r = request_of(ids, 500, 5);
    assert_ok(tern_scheduler_create(&st.scheduler, engine, demo, &p, &e));
    assert_ok(tern_scheduler_submit(st.scheduler, &r, &st.cancel, &e));
    struct outcome out = finish(st.scheduler);
    assert_int_equal(out.n[TERN_EVENT_PREFILL], 0);
    assert_int_equal(out.end.result.stop, TERN_STOP_INTERRUPT);
    assert_int_equal(out.end.status, TERN_OK);
    tern_scheduler_cancel(st.scheduler, st.cancel); /* again: nothing happens */
    st.cancel = 0;
    assert_ok(tern_scheduler_submit(st.scheduler, &r, &(uint64_t){0}, &e));
    out = finish(st.scheduler);
    assert_int_equal(out.end.result.n_new, 5);
    tern_scheduler_free(st.scheduler);
}

static void a_step_that_was_stopped_is_done_again(void **state)
{
    (void)state;
    struct answer want;
    struct tern_request r = request_of(story, 4, MAX_NEW);
    generate(&want, demo, &r, TERN_KV_F16);
    for (uint32_t stop_at = 1; stop_at < 60; stop_at += 7) {
        struct stopper st = {.stop_at = stop_at};
        const struct tern_scheduler_params p = {.n_sequences = 2, .n_ctx = N_CTX,
                                                .kv = TERN_KV_F16, .should_stop = should_stop,
                                                .arg = &st};
        struct running list[2] = {{.job = &(struct job){.request = r}}, {.job = list[0].job}};
        uint32_t n_stopped = 0;
        assert_ok(tern_scheduler_create(&st.scheduler, engine, demo, &p, &e));
        for (int i = 0; i < 2; i++) {
            r.arg = &list[i];
            assert_ok(tern_scheduler_submit(st.scheduler, &r, &list[i].id, &e));
        }
        for (bool is_idle = false; !is_idle;) {
            const struct tern_event *events;
            size_t n;
            struct tern_error err;
            tern_status status = tern_scheduler_step(st.scheduler, &events, &n, &is_idle, &err);
            assert_true(status == TERN_OK || status == TERN_INTERRUPTED);
            n_stopped += status == TERN_INTERRUPTED;
            for (size_t i = 0; i < n; i++)
                take_event(events[i].arg, &events[i]);
        }
        assert_int_equal(n_stopped, 1);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(list[i].got.n, want.n);
            assert_memory_equal(list[i].got.ids, want.ids, sizeof want.ids);
        }
        tern_scheduler_free(st.scheduler);
    }
}

/* ---- memory ---- */

static bool refuse_when_zero(void *arg, uint64_t n_bytes)
{
    uint32_t *left = arg;
    assert_true(n_bytes > 0);
    return *left > 0 && (*left)--;
}

static void short_memory_ends_only_who_needs_it(void **state)
{
    (void)state;
    uint32_t n_blocks = 2;
    const struct tern_scheduler_params p = {.n_sequences = 2, .n_ctx = N_CTX, .kv = TERN_KV_F16,
                                            .may_grow = refuse_when_zero, .arg = &n_blocks};
    static uint32_t ids[250];
    struct tern_scheduler *s;
    /* The one goes on while the other reads its prompt, however slowly; it needs one block. */
    struct tern_request longer = request_of(ids, 250, MAX_NEW), shorter = request_of(story, 4, 200);
    uint64_t long_id, short_id;
    uint32_t n_ends = 0;
    assert_ok(tern_scheduler_create(&s, engine, demo, &p, &e));
    assert_ok(tern_scheduler_submit(s, &longer, &long_id, &e));
    assert_ok(tern_scheduler_submit(s, &shorter, &short_id, &e));
    for (bool is_idle = false; !is_idle;) {
        const struct tern_event *events;
        size_t n;
        assert_ok(tern_scheduler_step(s, &events, &n, &is_idle, &e));
        for (size_t i = 0; i < n; i++) {
            if (events[i].kind != TERN_EVENT_END)
                continue;
            n_ends++;
            assert_int_equal(events[i].status, TERN_OK);
            const bool is_long = events[i].request == long_id;
            assert_int_equal(events[i].result.stop, is_long ? TERN_STOP_MEMORY : TERN_STOP_LENGTH);
            assert_int_equal(events[i].result.n_new, is_long ? 7 : 200);
        }
    }
    assert_int_equal(n_ends, 2);
    tern_scheduler_free(s);
}

static void what_ended_requests_left_makes_room(void **state)
{
    (void)state;
    uint32_t n_blocks = 2;
    const struct tern_scheduler_params p = {.n_sequences = 2, .n_ctx = N_CTX, .kv = TERN_KV_F16,
                                            .may_grow = refuse_when_zero, .arg = &n_blocks};
    static uint32_t ids[300];
    struct tern_scheduler *s;
    uint64_t id;
    assert_ok(tern_scheduler_create(&s, engine, demo, &p, &e));
    for (uint32_t i = 0; i < 300; i++)
        ids[i] = 100 + i;
    for (uint32_t i = 0; i < 2; i++) { /* side by side, a block each */
        struct tern_request r = request_of(ids + i, 20, 4);
        assert_ok(tern_scheduler_submit(s, &r, &id, &e));
    }
    finish(s);
    assert_int_equal(n_blocks, 0);
    struct tern_request r = request_of(ids + 2, 290, 4);
    assert_ok(tern_scheduler_submit(s, &r, &id, &e));
    struct outcome out = finish(s);
    assert_int_equal(out.end.status, TERN_OK);
    assert_int_equal(out.end.result.n_new, 4);
    tern_scheduler_free(s);
}

/* ---- what sequences have in common ---- */

/* 4 requests at once whose prompts begin with the same 2000 ids. */
static void a_common_beginning_is_computed_and_kept_once(void **state)
{
    (void)state;
    enum { N = 4, N_COMMON = 2000, N_PROMPT = N_COMMON + 10 };
    static uint32_t prompts[N][N_PROMPT];
    static struct job jobs[N];
    struct running list[N] = {0};
    struct tern_model_info info;
    struct tern_scheduler *s;
    struct tern_scheduler_state empty, full;
    const struct tern_scheduler_params p = {.n_sequences = N, .kv = TERN_KV_F16};
    uint32_t n_evaluated = 0;
    tern_model_get_info(tiny, &info);
    assert_ok(tern_scheduler_create(&s, engine, tiny, &p, &e));
    tern_scheduler_get_state(s, &empty);
    for (uint32_t i = 0; i < N; i++) {
        for (uint32_t k = 0; k < N_PROMPT; k++)
            prompts[i][k] = 2 + (k < N_COMMON ? k * 7 : k + i) % 36;
        list[i].job = &jobs[i];
        jobs[i].request = request_of(prompts[i], N_PROMPT, MAX_NEW);
        jobs[i].request.arg = &list[i];
        assert_ok(tern_scheduler_submit(s, &jobs[i].request, &list[i].id, &e));
    }
    for (bool is_idle = false; !is_idle;) {
        const struct tern_event *events;
        size_t n;
        assert_ok(tern_scheduler_step(s, &events, &n, &is_idle, &e));
        for (size_t i = 0; i < n; i++) {
            take_event(events[i].arg, &events[i]);
            n_evaluated += events[i].result.n_prompt_evaluated;
        }
    }
    tern_scheduler_get_state(s, &full);
    /* Whole blocks of 256 once; the last one of each, and one that was copied on the way. */
    const uint64_t block_bytes = 256 * info.kv_bytes_per_token[TERN_KV_F16];
    assert_true(full.bytes - empty.bytes >= (N_COMMON / 256 + N) * block_bytes);
    assert_true(full.bytes - empty.bytes <= (N_COMMON / 256 + N + 1) * block_bytes);
    assert_true(n_evaluated <= N_COMMON + N * 10);
    tern_scheduler_free(s);
    struct tern_session *session;
    const struct tern_session_params sp = {.kv = TERN_KV_F16};
    for (uint32_t i = 0; i < N; i++) {
        struct tern_sampler *sampler;
        struct tern_generate_result result;
        struct answer want = {0};
        assert_ok(tern_session_create(&session, engine, tiny, &sp, &e));
        assert_ok(tern_sampler_create(&sampler, &jobs[i].request.sampler,
                                      tern_model_config(tiny)->vocab, &e));
        const struct tern_generate_params g = {.sampler = sampler, .max_tokens = MAX_NEW,
                                               .ignore_eos = true, .on_token = on_token,
                                               .arg = &want};
        assert_ok(tern_generate(session, prompts[i], N_PROMPT, &g, &result, &e));
        assert_int_equal(list[i].got.n, MAX_NEW);
        assert_memory_equal(list[i].got.ids, want.ids, sizeof want.ids);
        tern_sampler_free(sampler);
        tern_session_free(session);
    }
}

static void a_long_prompt_lets_others_go_on(void **state)
{
    (void)state;
    static uint32_t ids[500];
    struct tern_scheduler *s = open_scheduler(2, 0);
    struct tern_request talker = request_of(story, 4, 600), reader = request_of(ids, 500, 1);
    uint64_t talker_id, reader_id;
    uint32_t n_before = 0, n_steps = 0;
    assert_ok(tern_scheduler_submit(s, &talker, &talker_id, &e));
    assert_ok(tern_scheduler_step(s, &(const struct tern_event *){0}, &(size_t){0}, &(bool){0},
                                  &e));
    assert_ok(tern_scheduler_submit(s, &reader, &reader_id, &e));
    for (bool has_read = false; !has_read; n_steps++) {
        const struct tern_event *events;
        size_t n;
        bool is_idle;
        uint32_t n_tokens = 0;
        assert_ok(tern_scheduler_step(s, &events, &n, &is_idle, &e));
        for (size_t i = 0; i < n; i++) {
            n_tokens += events[i].request == talker_id && events[i].kind == TERN_EVENT_TOKEN;
            has_read = has_read || events[i].kind == TERN_EVENT_END;
            if (events[i].kind == TERN_EVENT_PREFILL) {
                assert_true(events[i].n_done - n_before < 32);
                n_before = events[i].n_done;
            }
        }
        assert_int_equal(n_tokens, 1);
    }
    assert_true(n_steps >= 500 / 31);
    /* A request that is being answered ends at the next step. */
    const struct tern_event *events;
    size_t n;
    bool is_idle;
    tern_scheduler_cancel(s, talker_id);
    assert_ok(tern_scheduler_step(s, &events, &n, &is_idle, &e));
    assert_true(is_idle);
    assert_int_equal(n, 1);
    assert_int_equal(events[0].kind, TERN_EVENT_END);
    assert_int_equal(events[0].result.stop, TERN_STOP_INTERRUPT);
    tern_scheduler_free(s);
}

static int count_allocation(void *arg, size_t n_bytes)
{
    (void)n_bytes;
    ++*(uint32_t *)arg;
    return 1;
}

static void steps_allocate_nothing(void **state)
{
    (void)state;
    uint32_t n_allocations = 0;
    struct tern_scheduler *s = open_scheduler(8, 8);
    for (uint32_t i = 0; i < 16; i++) {
        static const char *const stops[] = {"qqqq", "zzzz"};
        struct tern_request r = request_of(story, 1 + i % 4, MAX_NEW);
        uint64_t id;
        r.n_logprobs = i % 3, r.sampler.seed = i;
        r.stop_strings = stops, r.n_stop_strings = i % 2 * 2;
        assert_ok(tern_scheduler_submit(s, &r, &id, &e));
    }
    tn_alloc_set_hook(count_allocation, &n_allocations);
    struct outcome out = finish(s);
    tn_alloc_set_hook(NULL, NULL);
    assert_int_equal(out.n[TERN_EVENT_TOKEN], 16 * MAX_NEW);
    assert_int_equal(n_allocations, 0);
    tern_scheduler_free(s);
}

static void cancel_one_after_the_other(void *arg)
{
    const struct stopper *st = arg;
    for (uint64_t id = 1; id < st->cancel; id++)
        tern_scheduler_cancel(st->scheduler, id);
}

static void another_thread_may_cancel(void **state)
{
    (void)state;
    struct stopper st = {.scheduler = open_scheduler(4, 60)};
    for (uint32_t i = 0; i < 64; i++) {
        struct tern_request r = request_of(story, 4, 5);
        assert_ok(tern_scheduler_submit(st.scheduler, &r, &st.cancel, &e));
    }
    struct tn_thread *thread = tn_thread_start(cancel_one_after_the_other, &st);
    assert_non_null(thread);
    struct outcome out = finish(st.scheduler);
    tn_thread_join(thread);
    assert_int_equal(out.n[TERN_EVENT_END], 64);
    tern_scheduler_free(st.scheduler);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_do_not_depend_on_company),
        cmocka_unit_test(texts_do_not_depend_on_company),
        cmocka_unit_test(what_is_wrong_is_refused),
        cmocka_unit_test(no_tokens_are_only_the_prompt),
        cmocka_unit_test(log_probabilities_are_those_of_the_logits),
        cmocka_unit_test(logits_can_be_adjusted),
        cmocka_unit_test(one_that_is_cancelled_stops_between_layers),
        cmocka_unit_test(a_step_that_was_stopped_is_done_again),
        cmocka_unit_test(short_memory_ends_only_who_needs_it),
        cmocka_unit_test(what_ended_requests_left_makes_room),
        cmocka_unit_test(a_common_beginning_is_computed_and_kept_once),
        cmocka_unit_test(a_long_prompt_lets_others_go_on),
        cmocka_unit_test(steps_allocate_nothing),
        cmocka_unit_test(another_thread_may_cancel),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
