/* SPDX-License-Identifier: MIT
 *
 * Facts that change while running.  On Linux every file is opened once and then read again;
 * elsewhere the system's functions are called.
 */
#include "sysinfo_private.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/error.h"

enum { MAX_LEVELS = 8 }; /* groups with a memory limit that are watched */

/* A group with a memory limit. */
struct level {
    bool v2;
    struct tn_fact_file limit, high, current, stat;
};

struct tern_monitor {
    bool by_files; /* else tn_memory_sample_live */
    uint64_t total_bytes;
    struct tn_fact_file meminfo, pressure, cpu_stat;
    uint32_t n_levels;
    struct level levels[MAX_LEVELS];
};

static void open_in(struct tn_fact_file *file, const char *root, const char *dir, const char *name)
{
    char path[1100];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    tn_fact_open(file, root, path);
}

static void close_level(struct level *level)
{
    tn_fact_close(&level->limit);
    tn_fact_close(&level->high);
    tn_fact_close(&level->current);
    tn_fact_close(&level->stat);
}

/* The memory left in a group now; TERN_UNKNOWN without a limit. */
static uint64_t level_left(const struct level *level, uint64_t total)
{
    char limit[64], high[64], current[64], stat[8192];
    struct tn_cgroup_memory group = {.v2 = level->v2};
    uint64_t bytes;
    uint32_t unreadable = 0;
    group.limit = tn_fact_reread(&level->limit, limit, sizeof limit) < 0 ? NULL : limit;
    group.high = tn_fact_reread(&level->high, high, sizeof high) < 0 ? NULL : high;
    group.current = tn_fact_reread(&level->current, current, sizeof current) < 0 ? NULL : current;
    group.stat = tn_fact_reread(&level->stat, stat, sizeof stat) < 0 ? NULL : stat;
    return tn_cgroup_memory_left(&group, total, &bytes, &unreadable);
}

static void open_levels(struct tern_monitor *monitor, const struct tn_cgroups *groups, bool v2,
                        const char *root)
{
    char dir[1024] = "";
    while (monitor->n_levels < MAX_LEVELS &&
           tn_cgroups_next(groups, v2 ? TN_CGROUP_V2 : TN_CGROUP_V1_MEMORY, dir)) {
        struct level *level = &monitor->levels[monitor->n_levels];
        level->v2 = v2;
        level->high.handle = -1;
        open_in(&level->limit, root, dir, v2 ? "memory.max" : "memory.limit_in_bytes");
        if (v2)
            open_in(&level->high, root, dir, "memory.high");
        open_in(&level->current, root, dir, v2 ? "memory.current" : "memory.usage_in_bytes");
        open_in(&level->stat, root, dir, "memory.stat");
        if (level_left(level, monitor->total_bytes) != TERN_UNKNOWN)
            monitor->n_levels++;
        else
            close_level(level);
    }
}

/* Opens cpu.stat of the group with the smallest quota, which counts the throttled periods. */
static void open_cpu_stat(struct tern_monitor *monitor, const struct tn_cgroups *groups,
                          const char *root)
{
    uint64_t least = TERN_UNKNOWN;
    uint32_t unreadable = 0;
    for (int h = TN_CGROUP_V2; h <= TN_CGROUP_V1_CPU; h++) {
        char dir[1024] = "";
        while (tn_cgroups_next(groups, (enum tn_hierarchy)h, dir)) {
            uint64_t quota = tn_cgroup_quota(root, dir, h == TN_CGROUP_V2, &unreadable);
            if (quota >= least)
                continue;
            least = quota;
            tn_fact_close(&monitor->cpu_stat);
            open_in(&monitor->cpu_stat, root, dir, "cpu.stat");
        }
    }
}

static void open_files(struct tern_monitor *monitor, const struct tn_cgroups *groups,
                       const char *root)
{
    char text[8192];
    tn_fact_open(&monitor->meminfo, root, "/proc/meminfo");
    tn_fact_open(&monitor->pressure, root, "/proc/pressure/memory");
    uint64_t kib;
    if (tn_fact_reread(&monitor->meminfo, text, sizeof text) < 0 ||
        !tn_fact_line_u64(text, "MemTotal:", &kib, NULL) || kib == 0 ||
        __builtin_mul_overflow(kib, 1024u, &monitor->total_bytes))
        monitor->total_bytes = TERN_UNKNOWN;
    open_levels(monitor, groups, true, root);
    open_levels(monitor, groups, false, root);
    open_cpu_stat(monitor, groups, root);
}

static bool live_has_proc(void)
{
#if defined(_WIN32) || defined(__APPLE__)
    return false;
#else
    return true;
#endif
}

tern_status tern_monitor_open(struct tern_monitor **out, const char *root, struct tern_error *err)
{
    *out = NULL;
    struct tern_monitor *monitor = tn_alloc_zeroed(1, sizeof *monitor);
    struct tn_cgroups *groups = tn_alloc(sizeof *groups);
    if (!monitor || !groups) {
        tn_free(monitor);
        tn_free(groups);
        return tn_fail(err, TERN_MEMORY, "no memory to watch the machine (%zu bytes)",
                       sizeof *monitor + sizeof *groups);
    }
    monitor->meminfo.handle = monitor->pressure.handle = monitor->cpu_stat.handle = -1;
    monitor->by_files = root || live_has_proc();
    if (monitor->by_files) {
        tn_cgroups_find(groups, root ? root : "");
        open_files(monitor, groups, root ? root : "");
    }
    tn_free(groups);
    *out = monitor;
    return tn_ok(err);
}

static void read_throttling(const struct tern_monitor *monitor, struct tern_monitor_sample *out)
{
    char text[1024];
    uint64_t n_periods, n_throttled;
    if (tn_fact_reread(&monitor->cpu_stat, text, sizeof text) > 0 &&
        tn_fact_line_u64(text, "nr_periods ", &n_periods, NULL) &&
        tn_fact_line_u64(text, "nr_throttled ", &n_throttled, NULL)) {
        out->n_periods = n_periods;
        out->n_throttled = n_throttled;
    }
}

void tern_monitor_read(struct tern_monitor *monitor, struct tern_monitor_sample *out)
{
    *out = (struct tern_monitor_sample){TERN_UNKNOWN, TERN_UNKNOWN, TERN_UNKNOWN, TERN_UNKNOWN, 0};
    if (!monitor->by_files) {
        tn_memory_sample_live(out);
        return;
    }
    char text[8192];
    if (tn_fact_reread(&monitor->meminfo, text, sizeof text) > 0)
        out->available_bytes = tn_meminfo_available(text);
    for (uint32_t i = 0; i < monitor->n_levels; i++) {
        uint64_t left = level_left(&monitor->levels[i], monitor->total_bytes);
        out->available_bytes = TN_MIN(out->available_bytes, left);
    }
    if (tn_fact_reread(&monitor->pressure, text, sizeof text) > 0)
        out->pressure_centi = tn_pressure_parse(text);
    read_throttling(monitor, out);
}

void tern_monitor_close(struct tern_monitor *monitor)
{
    if (!monitor)
        return;
    for (uint32_t i = 0; i < monitor->n_levels; i++)
        close_level(&monitor->levels[i]);
    tn_fact_close(&monitor->meminfo);
    tn_fact_close(&monitor->pressure);
    tn_fact_close(&monitor->cpu_stat);
    tn_free(monitor);
}
