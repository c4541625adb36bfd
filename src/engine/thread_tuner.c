/* SPDX-License-Identifier: MIT
 *
 * What a run adapts to between tokens.  Each part uses the ones before it:
 *
 *   measurement   which thread count decodes fastest: a state machine without clock or threads
 *   watch         what happens to the machine while a model runs
 *   steering      applies both to the engine
 *
 * Throttled by the CPU quota in more than 10 % of the periods: one thread fewer.  Memory pressure,
 * or less than half of the reserve left: nothing grows any more.  Pressure from before the run is
 * the plan's business (it lowers the tier), otherwise nothing could run next to a busy neighbour.
 * Nothing is ever raised again during a run.
 */
#include "engine/thread_tuner.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/alloc.h"
#include "base/error.h"
#include "engine/engine.h"
#include "plat/plat.h"

#define LOOK_EVERY_NS 2000000000ull
#define PRESSURE_CENTI 1000u /* PSI some avg10 of 10 % */
#define PRESSURE_LEVEL 2u    /* macOS: warning */

/* ---- measurement ---- */

static void add_candidate(struct tn_thread_tuner *c, uint32_t n)
{
    for (uint32_t i = 0; i < c->n_candidates; i++)
        if (c->candidates[i] == n)
            return;
    c->candidates[c->n_candidates++] = n;
}

void tn_thread_tuner_start(struct tn_thread_tuner *c, uint32_t n, uint32_t n_ceil)
{
    memset(c, 0, sizeof *c);
    add_candidate(c, n);
    add_candidate(c, n / 4 * 3 + (n % 4 * 3 + 2) / 4);
    add_candidate(c, n / 2 + n % 2);
    uint32_t n_before = c->n_candidates;
    if (n_ceil > 0)
        add_candidate(c, n_ceil);
    c->has_ceiling = c->n_candidates > n_before;
    c->choice = n;
    if (c->n_candidates == 1)
        c->current = 1;
}

bool tn_thread_tuner_is_done(const struct tn_thread_tuner *c)
{
    return c->current == c->n_candidates && !c->is_confirming;
}

uint32_t tn_thread_tuner_threads(const struct tn_thread_tuner *c)
{
    return c->is_confirming             ? c->candidates[0]
           : tn_thread_tuner_is_done(c) ? c->choice
                                        : c->candidates[c->current];
}

static void sort(uint64_t *sorted, const uint64_t *values, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = i;
        for (; at > 0 && sorted[at - 1] > values[i]; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = values[i];
    }
}

/* The median of the current candidate's times.  If more than two of eight tokens were slow, other
 * programs interfered, and the measurement must not decide anything. */
static uint64_t take_median(struct tn_thread_tuner *c)
{
    uint64_t sorted[TN_THREAD_TUNER_TOKENS] = {0};
    sort(sorted, c->token_ns, c->n_fed);
    uint64_t median = sorted[c->n_fed / 2];
    if (c->n_fed == TN_THREAD_TUNER_TOKENS && sorted[c->n_fed - 2] > median + median / 2)
        c->is_noisy = true;
    c->n_fed = 0;
    return median;
}

/* slower <= faster * 1.03 */
static bool within_3_percent(uint64_t slower, uint64_t faster)
{
    return slower <= faster || slower - faster <= faster / 100 * 3 + faster % 100 * 3 / 100;
}

/* Chooses the smallest count within 3 % of the best; the rounded-up quota only if it is clearly
 * better, because too many threads throttle each other.  If the times are noisy, the plan's count
 * stays. */
static void choose(struct tn_thread_tuner *c)
{
    uint32_t n_plain = c->n_candidates - c->has_ceiling, best = 0;
    for (uint32_t i = 1; i < n_plain; i++)
        if (c->median_ns[i] < c->median_ns[best])
            best = i;
    if (c->is_noisy)
        return;
    uint32_t chosen = best, last = c->n_candidates - 1;
    for (uint32_t i = 0; i < n_plain; i++)
        if (c->candidates[i] < c->candidates[chosen] &&
            within_3_percent(c->median_ns[i], c->median_ns[best]))
            chosen = i;
    if (c->has_ceiling && !within_3_percent(c->median_ns[best], c->median_ns[last]))
        chosen = last;
    c->choice = c->candidates[chosen];
    c->choice_ns = c->median_ns[chosen];
    c->is_confirming = chosen != 0;
}

/* Checks the choice against a second run of the first candidate. */
static void confirm(struct tn_thread_tuner *c)
{
    uint64_t again = take_median(c);
    bool holds = c->choice > c->candidates[0] ? !within_3_percent(again, c->choice_ns)
                                              : within_3_percent(c->choice_ns, again);
    c->is_confirming = false;
    if (holds && !c->is_noisy)
        return;
    c->is_noisy = true;
    c->choice = c->candidates[0];
}

/* Both of its first tokens took a quarter longer than the first candidate's: skip the other six. */
static bool is_hopeless(const struct tn_thread_tuner *c)
{
    uint64_t limit = c->median_ns[0] + c->median_ns[0] / 4;
    return c->current > 0 && !c->is_confirming && c->n_fed == 2 && c->token_ns[0] > limit &&
           c->token_ns[1] > limit;
}

void tn_thread_tuner_feed(struct tn_thread_tuner *c, uint64_t token_ns)
{
    if (tn_thread_tuner_is_done(c))
        return;
    c->token_ns[c->n_fed++] = token_ns;
    if (c->n_fed < TN_THREAD_TUNER_TOKENS && !is_hopeless(c))
        return;
    if (c->is_confirming) {
        confirm(c);
        return;
    }
    c->median_ns[c->current] = take_median(c);
    if (++c->current == c->n_candidates)
        choose(c);
}

uint64_t tn_thread_cache_key(const struct tern_sysinfo *m, const struct tern_plan *plan,
                             uint64_t model_hash)
{
    struct {
        char cpu_name[64];
        char level[16];
        uint64_t model_hash, quota_millicpus;
        uint32_t counts[8];
        uint64_t cores_hash;
    } facts;
    memset(&facts, 0, sizeof facts); /* includes padding, because the bytes are hashed */
    memcpy(facts.cpu_name, m->cpu_name, sizeof facts.cpu_name);
    strncpy(facts.level, plan->cpu_level, sizeof facts.level - 1);
    facts.model_hash = model_hash;
    facts.quota_millicpus = m->quota_millicpus;
    const uint32_t counts[8] = {m->n_physical, m->n_logical,           m->n_allowed,
                                m->n_kinds,    m->n_packages,          m->n_numa,
                                plan->eco,     plan->n_threads_decode};
    memcpy(facts.counts, counts, sizeof counts);
    facts.cores_hash = XXH3_64bits(m->cores, m->n_cores * sizeof m->cores[0]);
    return XXH3_64bits(&facts, sizeof facts);
}

/* ---- watch ---- */

struct tern_watch {
    struct tern_monitor *monitor;
    uint64_t keep_bytes; /* memory that growth must leave free */
    uint64_t next_look_ns;
    uint64_t n_periods, n_throttled; /* at the last sample */
    bool ignore_pressure;
    bool is_short;
};

static bool is_under_pressure(const struct tern_monitor_sample *sample)
{
    return (sample->pressure_centi != TERN_UNKNOWN && sample->pressure_centi > PRESSURE_CENTI) ||
           sample->pressure_level >= PRESSURE_LEVEL;
}

tern_status tern_watch_create(struct tern_watch **out, const struct tern_plan *plan,
                              const char *root, struct tern_error *err)
{
    *out = NULL;
    struct tern_watch *watch = tn_alloc_zeroed(1, sizeof *watch);
    if (!watch)
        return tn_fail(err, TERN_MEMORY, "no memory to watch the machine");
    watch->keep_bytes = plan->reserve_bytes / 2;
    tern_status status = tern_monitor_open(&watch->monitor, root, err);
    if (status != TERN_OK) {
        tn_free(watch);
        return status;
    }
    struct tern_monitor_sample now;
    tern_monitor_read(watch->monitor, &now);
    watch->n_periods = now.n_periods;
    watch->n_throttled = now.n_throttled;
    watch->ignore_pressure = is_under_pressure(&now);
    *out = watch;
    return tn_ok(err);
}

void tern_watch_free(struct tern_watch *watch)
{
    if (!watch)
        return;
    tern_monitor_close(watch->monitor);
    tn_free(watch);
}

/* Throttled in more than a tenth of the periods since the last sample? */
static bool is_throttled(struct tern_watch *watch, const struct tern_monitor_sample *sample)
{
    bool known = watch->n_periods != TERN_UNKNOWN && sample->n_periods != TERN_UNKNOWN &&
                 sample->n_periods > watch->n_periods && sample->n_throttled >= watch->n_throttled;
    uint64_t periods = known ? sample->n_periods - watch->n_periods : 0;
    uint64_t stopped = known ? sample->n_throttled - watch->n_throttled : 0;
    watch->n_periods = sample->n_periods;
    watch->n_throttled = sample->n_throttled;
    return stopped > periods / 10;
}

/* Is there memory for `bytes` more, without pressure? */
static bool has_room(const struct tern_watch *watch, const struct tern_monitor_sample *sample,
                     uint64_t bytes)
{
    if (!watch->ignore_pressure && is_under_pressure(sample))
        return false;
    return sample->available_bytes == TERN_UNKNOWN ||
           (sample->available_bytes >= watch->keep_bytes &&
            sample->available_bytes - watch->keep_bytes >= bytes);
}

enum tern_watch_event tern_watch_inject(struct tern_watch *watch,
                                        const struct tern_monitor_sample *sample)
{
    bool throttled = is_throttled(watch, sample);
    if (!has_room(watch, sample, 0)) {
        watch->is_short = true;
        return TERN_WATCH_SHORT;
    }
    return throttled ? TERN_WATCH_SLOWER : TERN_WATCH_NONE;
}

enum tern_watch_event tern_watch_poll(struct tern_watch *watch, uint64_t now_ns)
{
    if (now_ns < watch->next_look_ns)
        return TERN_WATCH_NONE;
    watch->next_look_ns = now_ns + LOOK_EVERY_NS;
    struct tern_monitor_sample sample;
    tern_monitor_read(watch->monitor, &sample);
    return tern_watch_inject(watch, &sample);
}

bool tern_watch_may_grow(void *arg, uint64_t bytes)
{
    struct tern_watch *watch = arg;
    if (watch->is_short)
        return false;
    struct tern_monitor_sample sample;
    tern_monitor_read(watch->monitor, &sample);
    return has_room(watch, &sample, bytes);
}

/* ---- steering ---- */

struct tern_steering {
    struct tern_engine *engine;
    struct tern_watch *watch;
    struct tn_thread_tuner tuner;
    bool is_measuring;
    bool must_save;
    uint32_t n_threads;  /* of decoding */
    uint64_t token_start_ns;
    uint64_t key;
    char *cache_path; /* NULL: none */
};

/* Uses the plan's count or starts a measurement.  Only the result that the plan's count is fastest
 * is cached: evidence for fewer threads may come from a neighbour that kept a core busy, and would
 * slow every later run. */
static void choose_threads(struct tern_steering *s, const struct tern_plan *plan)
{
    s->n_threads = plan->n_threads_decode;
    if (plan->threads_fixed)
        return;
    uint32_t known = tn_thread_cache_load(s->cache_path, s->key, plan->n_threads_decode);
    if (known == plan->n_threads_decode)
        return;
    tn_thread_tuner_start(&s->tuner, plan->n_threads_decode, plan->n_threads_ceil);
    s->is_measuring = !tn_thread_tuner_is_done(&s->tuner);
    s->n_threads = tn_thread_tuner_threads(&s->tuner);
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
    s->cache_path = tn_thread_cache_path();
    s->key = tn_thread_cache_key(machine, plan, model->file.header->head_hash);
    choose_threads(s, plan);
    *out = s;
    return tn_ok(err);
}

void tern_steering_free(struct tern_steering *s)
{
    if (!s)
        return;
    if (s->must_save)
        tn_thread_cache_save(s->cache_path, s->key, s->n_threads);
    tern_watch_free(s->watch);
    tn_free(s->cache_path);
    tn_free(s);
}

bool tern_steering_may_save(const struct tern_steering *s)
{
    return s->cache_path && (s->is_measuring || s->must_save);
}

bool tern_steering_may_grow(struct tern_steering *s, uint64_t n_bytes)
{
    return tern_watch_may_grow(s->watch, n_bytes);
}

/* Reacts to throttling: one thread fewer, and no more measurements. */
static void slow_down(struct tern_steering *s)
{
    s->is_measuring = s->must_save = false;
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
    if (!s->is_measuring)
        return;
    tn_thread_tuner_feed(&s->tuner, tn_now_ns() - s->token_start_ns);
    s->n_threads = tn_thread_tuner_threads(&s->tuner);
    if (tn_thread_tuner_is_done(&s->tuner)) {
        s->is_measuring = false;
        s->must_save = !s->tuner.is_noisy && s->n_threads == s->tuner.candidates[0];
    }
}
