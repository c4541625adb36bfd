/* SPDX-License-Identifier: MIT
 *
 * Steering a run: the calibration of decode threads (thread_tuner.c) and the watch over the machine
 * (watch.c), applied between tokens.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "engine/engine.h"
#include "engine/thread_tuner.h"
#include "plat/plat.h"
#include "tern/plan.h"

struct tern_steering {
    struct tern_engine *engine;
    struct tern_watch *watch;
    struct tn_calibrate calibrate;
    bool is_calibrating;
    bool must_save;
    uint32_t n_threads;  /* decode */
    uint64_t token_start_ns;
    uint64_t key;
    char *cache_path; /* or NULL */
};

/* The plan's count, or the start of a measurement.  Only that the plan's is the fastest is
 * remembered: what speaks for fewer may have been a neighbour that kept a core busy just then, and
 * would slow every later run. */
static void choose_threads(struct tern_steering *s, const struct tern_plan *plan)
{
    s->n_threads = plan->n_threads_decode;
    if (plan->threads_fixed)
        return;
    uint32_t known = tn_calibrate_load(s->cache_path, s->key, plan->n_threads_decode);
    if (known == plan->n_threads_decode)
        return;
    tn_calibrate_start(&s->calibrate, plan->n_threads_decode, plan->n_threads_ceil);
    s->is_calibrating = !tn_calibrate_is_done(&s->calibrate);
    s->n_threads = tn_calibrate_threads(&s->calibrate);
}

tern_status tern_steering_create(struct tern_steering **out, struct tern_engine *engine,
                                 const struct tern_model *model,
                                 const struct tern_sysinfo *machine,
                                 const struct tern_plan *plan, struct tern_error *err)
{
    *out = NULL;
    struct tern_steering *s = tn_alloc_zeroed(1, sizeof *s);
    if (!s)
        return tn_fail(err, TERN_MEMORY, "no memory to steer a run");
    tern_status status = tern_watch_create(&s->watch, plan, NULL, err);
    if (status != TERN_OK) {
        tn_free(s);
        return status;
    }
    s->engine = engine;
    s->cache_path = tn_calibrate_cache_path();
    s->key = tn_calibrate_key(machine, plan, model->file.header->head_hash);
    choose_threads(s, plan);
    *out = s;
    return tn_ok(err);
}

void tern_steering_free(struct tern_steering *s)
{
    if (!s)
        return;
    if (s->must_save)
        tn_calibrate_save(s->cache_path, s->key, s->n_threads);
    tern_watch_free(s->watch);
    tn_free(s->cache_path);
    tn_free(s);
}

bool tern_steering_may_grow(struct tern_steering *s, uint64_t n_bytes)
{
    return tern_watch_may_grow(s->watch, n_bytes);
}

/* The quota stops us: one thread fewer, and no more experiments. */
static void slow_down(struct tern_steering *s)
{
    s->is_calibrating = s->must_save = false;
    if (s->n_threads > 1)
        s->n_threads--;
}

void tern_steering_before_token(struct tern_steering *s)
{
    s->token_start_ns = tn_now_ns();
    if (tern_watch_poll(s->watch, s->token_start_ns) == TERN_WATCH_SLOWER)
        slow_down(s);
    tern_engine_set_threads(s->engine, s->n_threads, s->engine->n_prefill);
}

void tern_steering_after_token(struct tern_steering *s)
{
    if (!s->is_calibrating)
        return;
    tn_calibrate_feed(&s->calibrate, tn_now_ns() - s->token_start_ns);
    s->n_threads = tn_calibrate_threads(&s->calibrate);
    if (tn_calibrate_is_done(&s->calibrate)) {
        s->is_calibrating = false;
        s->must_save = !s->calibrate.is_noisy && s->n_threads == s->calibrate.candidates[0];
    }
}
