/* SPDX-License-Identifier: MIT
 *
 * Measures answers written at the same time: tokens per second of all together, for 1, 2, 4 and 8
 * requests with different prompts, from when all prompts are read.
 *
 *   bench_sequences MODEL.tern [THREADS [TOKENS [LEVEL [INPUTS]]]]
 *   bench_sequences MODEL.tern THREADS TOKENS LEVEL REQUESTS COMMON
 *
 * LEVEL is the highest level of kernels, as with --cpu, or "best"; INPUTS is 16 or 8, as with
 * --inputs.  The second form runs only REQUESTS requests whose prompts share a prefix of COMMON
 * ids, and prints the size of their caches, their speed, and how long one more of them waits for
 * its first token.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "plat/plat.h"
#include "tern/scheduler.h"

#define N_OWN 8u /* ids that differ between prompts */
#define MOST 8u

/* The result of n simultaneous requests. */
struct result {
    double tokens_per_s;
    double step_ms;
};

static void die(const struct tern_error *err)
{
    fprintf(stderr, "bench_sequences: %s\n", err->detail);
    exit(tern_status_exit_code(err->status));
}

struct setup {
    struct tern_engine *engine;
    struct tern_model *model;
    struct tern_scheduler *scheduler;
    uint32_t n_new;
    uint32_t n_common; /* length of the common prefix */
    uint32_t *ids;     /* [n_common + N_OWN] */
};

static void submit(struct setup *s, uint32_t i)
{
    const uint32_t n_vocab = tern_model_config(s->model)->vocab;
    struct tern_error err;
    uint64_t id;
    struct tern_request r = {.ids = s->ids, .n_ids = s->n_common + N_OWN,
                             .max_tokens = s->n_new, .ignore_eos = true};
    tern_sampler_params_default(&r.sampler);
    r.sampler.seed = i;
    for (uint32_t k = 0; k < s->n_common; k++)
        s->ids[k] = (uint32_t)((uint64_t)k * 7919 % n_vocab);
    for (uint32_t k = 0; k < N_OWN; k++)
        s->ids[s->n_common + k] = (i * 7919 + k * 104729 + 17) % n_vocab;
    if (tern_scheduler_submit(s->scheduler, &r, &id, &err) != TERN_OK)
        die(&err);
}

/* Measures n requests together, once each has its first token. */
static struct result measure(struct setup *s, uint32_t n)
{
    struct tern_error err;
    uint32_t n_first = 0, n_tokens = 0, n_steps = 0;
    uint64_t start = tn_now_ns();
    for (uint32_t i = 0; i < n; i++)
        submit(s, i + n * MOST);
    for (bool is_idle = false; !is_idle;) {
        const struct tern_event *events;
        size_t n_events;
        const bool was_first = n_first < n;
        if (tern_scheduler_step(s->scheduler, &events, &n_events, &is_idle, &err) != TERN_OK)
            die(&err);
        n_steps++;
        for (size_t i = 0; i < n_events; i++) {
            n_first += events[i].kind == TERN_EVENT_PREFILL &&
                       events[i].n_done == events[i].n_total;
            n_tokens += events[i].kind == TERN_EVENT_TOKEN;
        }
        if (was_first && n_first == n) {
            start = tn_now_ns();
            n_tokens = n_steps = 0;
        }
    }
    const double seconds = tn_seconds_since(start);
    return (struct result){n_tokens / seconds, 1e3 * seconds / n_steps};
}

/* Measures 1, 2, 4 and 8 requests. */
static void compare(struct setup *s)
{
    const uint32_t n_new = s->n_new;
    s->n_new = 4; /* warms up: pages are mapped afterwards */
    measure(s, 1);
    s->n_new = n_new;
    printf("%s, threads: %u\nrequests     tok/s      x   ms/step\n",
           tern_engine_cpu_level(s->engine), tern_engine_n_threads(s->engine));
    double one = 0;
    for (uint32_t n = 1; n <= MOST; n *= 2) {
        const struct result r = measure(s, n);
        one = n == 1 ? r.tokens_per_s : one;
        printf("%8u %9.2f %6.2f %9.1f\n", n, r.tokens_per_s, r.tokens_per_s / one, r.step_ms);
        fflush(stdout);
    }
}

/* Time until the first token of one request, ms. */
static double wait_for_first(struct setup *s, uint32_t i)
{
    struct tern_error err;
    const uint64_t start = tn_now_ns();
    double ms = 0;
    submit(s, i);
    for (bool is_idle = false; !is_idle;) {
        const struct tern_event *events;
        size_t n_events;
        if (tern_scheduler_step(s->scheduler, &events, &n_events, &is_idle, &err) != TERN_OK)
            die(&err);
        for (size_t k = 0; k < n_events; k++)
            if (events[k].kind == TERN_EVENT_TOKEN && ms == 0)
                ms = 1e3 * tn_seconds_since(start);
    }
    return ms;
}

static void share(struct setup *s, uint32_t n)
{
    struct tern_scheduler_state before, after;
    tern_scheduler_get_state(s->scheduler, &before);
    const struct result r = measure(s, n);
    double ms[3];
    tern_scheduler_get_state(s->scheduler, &after);
    for (uint32_t i = 0; i < 3; i++)
        ms[i] = wait_for_first(s, MOST * MOST + i);
    printf("%u requests, %u ids in common: %.1f MB of cache, %.2f tok/s, first token of the next "
           "%.2f ms\n",
           n, s->n_common, (double)(after.bytes - before.bytes) * 1e-6, r.tokens_per_s,
           TN_MIN(TN_MIN(ms[0], ms[1]), ms[2]));
}

static uint32_t number(int argc, char **argv, int i, uint32_t otherwise)
{
    return argc > i ? (uint32_t)atoi(argv[i]) : otherwise;
}

static enum tern_inputs_as inputs_as(int argc, char **argv)
{
    if (argc != 6)
        return TERN_INPUTS_AS_MODEL;
    return strcmp(argv[5], "8") == 0 ? TERN_INPUTS_AS_8 : TERN_INPUTS_AS_16;
}

int main(int argc, char **argv)
{
    static struct tern_sysinfo machine;
    struct tern_error err;
    const uint32_t n_requests = argc > 6 ? number(argc, argv, 5, 0) : 0;
    if (argc < 2 || n_requests > MOST) {
        fprintf(stderr, "usage: bench_sequences MODEL.tern [THREADS [TOKENS [LEVEL "
                        "[INPUTS | REQUESTS COMMON]]]]\n");
        return 2;
    }
    struct setup s = {.n_new = number(argc, argv, 3, 32), .n_common = number(argc, argv, 6, 0)};
    const struct tern_engine_params ep = {
        .n_threads = number(argc, argv, 2, 0),
        .inputs = inputs_as(argc, argv),
        .cpu_level = argc > 4 && strcmp(argv[4], "best") != 0 ? argv[4] : NULL};
    const struct tern_scheduler_params sp = {
        .n_sequences = MOST, .n_ctx = 512 + s.n_common, .kv = TERN_KV_F16};
    tern_sysinfo_read(&machine);
    s.ids = tn_alloc((s.n_common + N_OWN) * sizeof *s.ids);
    if (!s.ids || tern_engine_create(&s.engine, &machine, &ep, &err) != TERN_OK ||
        tern_model_open(&s.model, argv[1], &err) != TERN_OK ||
        tern_scheduler_create(&s.scheduler, s.engine, s.model, &sp, &err) != TERN_OK)
        die(&err);
    if (n_requests > 0)
        share(&s, n_requests);
    else
        compare(&s);
    tern_scheduler_free(s.scheduler);
    tern_model_free(s.model);
    tern_engine_free(s.engine);
    tn_free(s.ids);
    return 0;
}
