/* SPDX-License-Identifier: MIT
 *
 * What happens to the machine while a model runs, and what follows for the run.
 *
 *   CPU quota    stopped in more than 10 % of the periods since the last look: one thread fewer
 *   memory       pressure, or less than half of the reserve left: nothing grows any more
 *
 * Pressure that is there before the run is the plan's affair (it lowers the tier) and ignored here,
 * or nothing could run beside a busy neighbour.
 *
 * Half of the reserve: the plan leaves the whole reserve free, the other half absorbs what the plan
 * did not foresee. Nothing is ever raised again during a run.
 */
#include "tern/plan.h"

#include "base/alloc.h"
#include "base/error.h"

#define LOOK_EVERY_NS 2000000000ull
#define PRESSURE_CENTI 1000u /* PSI some avg10 of 10 % */
#define PRESSURE_LEVEL 2u    /* macOS: warning */

struct tern_watch {
    struct tern_monitor *monitor;
    uint64_t keep_bytes; /* memory that growth must leave free */
    uint64_t next_look_ns;
    uint64_t n_periods, n_throttled; /* at the last look */
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

/* Stopped in more than a tenth of the periods since the last sample? */
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

/* Is there memory for `bytes` more, and does nobody press? */
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
