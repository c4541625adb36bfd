/* SPDX-License-Identifier: MIT
 *
 * The scheduler through the public API, one feature at a time: parameters of requests, every way to
 * stop and to be refused, memory.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "answers.h"
#include "base/alloc.h"
#include "base/compiler.h"
#include "demo.h"
#include "events.h"
#include "plat/plat.h"

#define N_CTX 640u /* several blocks of the cache */

static struct demo demo;

static int setup(void **state)
{
    (void)state;
    return !demo_open(&demo, TERN_BUILD_DIR "/test_scheduler.tern", 2);
}

static int teardown(void **state)
{
    (void)state;
    demo_close(&demo);
    return 0;
}

/* ---- single features ---- */

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
    assert_ok(tern_scheduler_create(&s, demo.engine, demo.model, &p, &e));
    return s;
}

/* Steps until it is idle; counts events of each kind and keeps the last end. */
struct outcome {
    uint32_t n[TERN_EVENT_END + 1];
    struct tern_event end;
};

static struct outcome finish(struct tern_scheduler *s)
{
    struct outcome out = {0};
    struct events events = {.scheduler = s};
    for (const struct tern_event *event; (event = events_next(&events));) {
        out.n[event->kind]++;
        if (event->kind == TERN_EVENT_END)
            out.end = *event;
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
        {.n_sequences = 1, .n_ctx = tern_model_config(demo.model)->context + 1}};
    for (size_t i = 0; i < TN_COUNT_OF(bad); i++) {
        assert_int_equal(tern_scheduler_create(&s, demo.engine, demo.model, &bad[i], &err),
                         TERN_USAGE);
        assert_null(s);
    }
    s = open_scheduler(1, 1);
    static const char *const empty = "";
    const uint32_t vocab = tern_model_config(demo.model)->vocab;
    static uint32_t many[N_CTX + 1];
    uint64_t id;
    struct tern_request r[] = {request_of(story, 4, 1), request_of(&vocab, 1, 1),
                               request_of(story, 0, 1), request_of(story, 4, 1),
                               request_of(story, 4, 1), request_of(story, 4, 1)};
    r[0].sampler.temperature = -1;
    r[3].stop_strings = &empty, r[3].n_stop_strings = 1;
    r[4].n_logprobs = TERN_MAX_LOGPROBS + 1;
    r[5].n_draft = TERN_MAX_DRAFT + 1;
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
    /* the other request's prompt was still cached */
    assert_int_equal(out.end.result.n_prompt_evaluated, 1);
    assert_ok(tern_scheduler_submit(s, &good, &id, &e));
    tern_scheduler_free(s); /* drops the queued request */
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

/* ln softmax(logits)[id], computed directly. */
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
    uint32_t n_larger = 0; /* than the last listed one */
    for (uint32_t i = 0; i < vocab; i++)
        n_larger += logits[i] > logits[event->logprobs[n_want - 1].id];
    assert_true(n_want == 1 || n_larger <= n_want - 2);
}

static void log_probabilities_are_those_of_the_logits(void **state)
{
    (void)state;
    enum { N_PROMPT = 20, N_NEW = 6, N_EACH = 5 };
    const uint32_t vocab = tern_model_config(demo.model)->vocab;
    uint32_t ids[N_PROMPT + N_NEW], n_ids = N_PROMPT, n_seen = 0;
    struct tern_scheduler *s = open_scheduler(3, 0);
    struct tern_session *session;
    const struct tern_session_params sp = {.n_ctx = N_CTX, .kv = TERN_KV_F16};
    float *logits = test_malloc((N_PROMPT + N_NEW) * vocab * sizeof *logits);
    for (uint32_t i = 0; i < N_PROMPT; i++)
        ids[i] = 300 + i * 17;
    assert_ok(tern_session_create(&session, demo.engine, demo.model, &sp, &e));
    assert_ok(tern_session_eval(session, ids, N_PROMPT, logits, &e));
    struct tern_request r = request_of(ids, N_PROMPT, N_NEW);
    uint64_t id, other;
    r.n_logprobs = N_EACH;
    r.prompt_logprobs = true;
    assert_ok(tern_scheduler_submit(s, &r, &id, &e));
    r.prompt_logprobs = false, r.n_logprobs = 0;
    assert_ok(tern_scheduler_submit(s, &r, &other, &e));
    struct events events = {.scheduler = s};
    for (const struct tern_event *event; (event = events_next(&events));) {
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
    assert_int_equal(n_seen, N_PROMPT);
    assert_int_equal(n_ids, N_PROMPT + N_NEW);
    test_free(logits);
    tern_session_free(session);
    tern_scheduler_free(s);
}

/* ---- adjusted logits ---- */

/* Forces the ids 100, 101, ... in order. */
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
    struct events events = {.scheduler = s};
    for (const struct tern_event *event; (event = events_next(&events));) {
        if (event->request == id && event->kind == TERN_EVENT_TOKEN) {
            assert_int_equal(event->id, 100 + n++);
            /* The model's value, although no other id could be chosen. */
            assert_true(event->logprobs[0].logprob < -0.01f);
        }
        if (event->request == dead && event->kind == TERN_EVENT_END)
            assert_int_equal(event->status, TERN_USAGE);
    }
    assert_int_equal(n, 10);
    tern_scheduler_free(s);
}

/* ---- stopping ---- */

struct stopper {
    struct tern_scheduler *scheduler;
    uint64_t cancel; /* request to cancel in the callback */
    uint32_t n_asked;
    uint32_t stop_at; /* returns true once, at this call */
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
    assert_ok(tern_scheduler_create(&st.scheduler, demo.engine, demo.model, &p, &e));
    assert_ok(tern_scheduler_submit(st.scheduler, &r, &st.cancel, &e));
    struct outcome out = finish(st.scheduler);
    assert_int_equal(out.n[TERN_EVENT_PREFILL], 0);
    assert_int_equal(out.end.result.stop, TERN_STOP_INTERRUPT);
    assert_int_equal(out.end.status, TERN_OK);
    tern_scheduler_cancel(st.scheduler, st.cancel); /* a second cancellation has no effect */
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
    struct tern_request r = request_of(story, 4, 24);
    answer_generate(&want, demo.engine, demo.model, &r, N_CTX, TERN_KV_F16);
    for (uint32_t stop_at = 1; stop_at < 60; stop_at += 7) {
        struct stopper st = {.stop_at = stop_at};
        const struct tern_scheduler_params p = {.n_sequences = 2, .n_ctx = N_CTX,
                                                .kv = TERN_KV_F16, .should_stop = should_stop,
                                                .arg = &st};
        struct running list[2] = {{.request = &r, .want = &want}, {.request = &r, .want = &want}};
        uint32_t n_stopped = 0;
        assert_ok(tern_scheduler_create(&st.scheduler, demo.engine, demo.model, &p, &e));
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
                running_take_event(events[i].arg, &events[i]);
        }
        assert_int_equal(n_stopped, 1);
        for (int i = 0; i < 2; i++)
            running_check(&list[i]);
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

static void short_memory_ends_only_the_request_that_needs_it(void **state)
{
    (void)state;
    uint32_t n_blocks = 2;
    const struct tern_scheduler_params p = {.n_sequences = 2, .n_ctx = N_CTX, .kv = TERN_KV_F16,
                                            .may_grow = refuse_when_zero, .arg = &n_blocks};
    static uint32_t ids[250];
    struct tern_scheduler *s;
    /* One request continues while the other reads its prompt, however slowly; it needs one block.
     */
    struct tern_request longer = request_of(ids, 250, 24), shorter = request_of(story, 4, 200);
    uint64_t long_id, short_id;
    uint32_t n_ends = 0;
    assert_ok(tern_scheduler_create(&s, demo.engine, demo.model, &p, &e));
    assert_ok(tern_scheduler_submit(s, &longer, &long_id, &e));
    assert_ok(tern_scheduler_submit(s, &shorter, &short_id, &e));
    struct events events = {.scheduler = s};
    for (const struct tern_event *event; (event = events_next(&events));) {
        if (event->kind != TERN_EVENT_END)
            continue;
        n_ends++;
        assert_int_equal(event->status, TERN_OK);
        const bool is_long = event->request == long_id;
        assert_int_equal(event->result.stop, is_long ? TERN_STOP_MEMORY : TERN_STOP_LENGTH);
        assert_int_equal(event->result.n_new, is_long ? 7 : 200);
    }
    assert_int_equal(n_ends, 2);
    tern_scheduler_free(s);
}

static void caches_of_ended_requests_are_evicted(void **state)
{
    (void)state;
    uint32_t n_blocks = 2;
    const struct tern_scheduler_params p = {.n_sequences = 2, .n_ctx = N_CTX, .kv = TERN_KV_F16,
                                            .may_grow = refuse_when_zero, .arg = &n_blocks};
    static uint32_t ids[300];
    struct tern_scheduler *s;
    uint64_t id;
    assert_ok(tern_scheduler_create(&s, demo.engine, demo.model, &p, &e));
    for (uint32_t i = 0; i < 300; i++)
        ids[i] = 100 + i;
    for (uint32_t i = 0; i < 2; i++) { /* concurrently, a block each */
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

/* ---- sharing time ---- */

static void a_long_prompt_does_not_block_others(void **state)
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
    /* A request in progress ends at the next step. */
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
        struct tern_request r = request_of(story, 1 + i % 4, 24);
        uint64_t id;
        r.n_logprobs = i % 3, r.sampler.seed = i, r.n_draft = i % 8;
        r.stop_strings = stops, r.n_stop_strings = i % 2 * 2;
        assert_ok(tern_scheduler_submit(s, &r, &id, &e));
    }
    tn_alloc_set_hook(count_allocation, &n_allocations);
    struct outcome out = finish(s);
    tn_alloc_set_hook(NULL, NULL);
    assert_int_equal(out.n[TERN_EVENT_TOKEN], 16 * 24);
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
        cmocka_unit_test(what_is_wrong_is_refused),
        cmocka_unit_test(no_tokens_are_only_the_prompt),
        cmocka_unit_test(log_probabilities_are_those_of_the_logits),
        cmocka_unit_test(logits_can_be_adjusted),
        cmocka_unit_test(one_that_is_cancelled_stops_between_layers),
        cmocka_unit_test(a_step_that_was_stopped_is_done_again),
        cmocka_unit_test(short_memory_ends_only_the_request_that_needs_it),
        cmocka_unit_test(caches_of_ended_requests_are_evicted),
        cmocka_unit_test(a_long_prompt_does_not_block_others),
        cmocka_unit_test(steps_allocate_nothing),
        cmocka_unit_test(another_thread_may_cancel),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
