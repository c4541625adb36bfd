/* SPDX-License-Identifier: MIT
 *
 * Answers written at the same time: tokens per second of all together, for 1, 2, 4 and 8 requests
 * with different prompts.  What is measured begins when all prompts are read.
 *
 *   bench_sequences MODEL.tern [THREADS [TOKENS [LEVEL]]]
 *
 * LEVEL is the highest level of kernels, as with --cpu.
 */
#include <stdio.h>
#include <stdlib.h>

#include "plat/plat.h"
#include "tern/scheduler.h"

#define N_PROMPT 8u
#define MOST 8u

/* What n requests together gave. */
struct result {
    double tokens_per_s;
    double step_ms;
};

static void die(const struct tern_error *err)
{
    fprintf(stderr, "bench_sequences: %s\n", err->detail);
    exit(tern_status_exit_code(err->status));
}

static void submit(struct tern_scheduler *s, uint32_t i, uint32_t n_vocab, uint32_t n_new)
{
    uint32_t ids[N_PROMPT];
    struct tern_error err;
    uint64_t id;
    struct tern_request r = {
        .ids = ids, .n_ids = N_PROMPT, .max_tokens = n_new, .ignore_eos = true};
    tern_sampler_params_default(&r.sampler);
    r.sampler.seed = i;
    for (uint32_t k = 0; k < N_PROMPT; k++)
        ids[k] = (i * 7919 + k * 104729 + 17) % n_vocab;
    if (tern_scheduler_submit(s, &r, &id, &err) != TERN_OK)
        die(&err);
}

/* n requests together, once each has its first token. */
static struct result measure(struct tern_scheduler *s, uint32_t n, uint32_t n_vocab,
                             uint32_t n_new)
{
    struct tern_error err;
    struct result r;
    uint32_t n_first = 0, n_tokens = 0, n_steps = 0;
    uint64_t start = tn_now_ns();
    for (uint32_t i = 0; i < n; i++)
        submit(s, i + n * MOST, n_vocab, n_new);
    for (bool is_idle = false; !is_idle;) {
        const struct tern_event *events;
        size_t n_events;
        const bool was_first = n_first < n;
        if (tern_scheduler_step(s, &events, &n_events, &is_idle, &err) != TERN_OK)
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
    r.tokens_per_s = n_tokens / tn_seconds_since(start);
    r.step_ms = 1e3 * tn_seconds_since(start) / n_steps;
    return r;
}

static void print_result(uint32_t n, const struct result *r, double one)
{
    printf("%8u %9.2f %6.2f %9.1f\n", n, r->tokens_per_s, r->tokens_per_s / one, r->step_ms);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static struct tern_sysinfo machine;
    struct tern_engine *engine;
    struct tern_model *model;
    struct tern_scheduler *s;
    struct tern_error err;
    if (argc < 2) {
        fprintf(stderr, "usage: bench_sequences MODEL.tern [THREADS [TOKENS [LEVEL]]]\n");
        return 2;
    }
    const struct tern_engine_params ep = {.n_threads = argc > 2 ? (uint32_t)atoi(argv[2]) : 0,
                                          .cpu_level = argc > 4 ? argv[4] : NULL};
    const struct tern_scheduler_params sp = {.n_sequences = MOST, .n_ctx = 512, .kv = TERN_KV_F16};
    const uint32_t n_new = argc > 3 ? (uint32_t)atoi(argv[3]) : 32;
    tern_sysinfo_read(&machine);
    if (tern_engine_create(&engine, &machine, &ep, &err) != TERN_OK ||
        tern_model_open(&model, argv[1], &err) != TERN_OK ||
        tern_scheduler_create(&s, engine, model, &sp, &err) != TERN_OK)
        die(&err);
    const uint32_t n_vocab = tern_model_config(model)->vocab;
    measure(s, 1, n_vocab, 4); /* pages are there then */
    printf("%s, threads: %u\nrequests     tok/s      x   ms/step\n", tern_engine_cpu_level(engine),
           tern_engine_n_threads(engine));
    double one = 0;
    for (uint32_t n = 1; n <= MOST; n *= 2) {
        const struct result r = measure(s, n, n_vocab, n_new);
        one = n == 1 ? r.tokens_per_s : one;
        print_result(n, &r, one);
    }
    tern_scheduler_free(s);
    tern_model_free(model);
    tern_engine_free(engine);
    return 0;
}
