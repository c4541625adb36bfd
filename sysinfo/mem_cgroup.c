/* SPDX-License-Identifier: MIT
 *
 * The memory available in a control group: its limit minus the memory that it uses and that cannot
 * be reclaimed.  limits.c finds the groups.
 */
#include "sysinfo_private.h"

#include <stdio.h>

#include "base/compiler.h"

#define NO_LIMIT ((uint64_t)1 << 62)

/* Parses a limit file: TERN_UNKNOWN for no limit, which is "max" (v2), a number near 2^63 (v1), or
 * more than the machine has.  Zero is impossible, because the process runs. */
static uint64_t parse_limit(const char *text, uint64_t total, uint32_t *unreadable)
{
    uint64_t limit;
    if (!text || tn_fact_is_word(text, "max") || tn_fact_is_word(text, "-1"))
        return TERN_UNKNOWN;
    if (!tn_fact_whole_u64(text, &limit) || limit == 0) {
        *unreadable |= TERN_FACT_CGROUP_MEMORY;
        return TERN_UNKNOWN;
    }
    return limit >= NO_LIMIT || limit > total ? TERN_UNKNOWN : limit;
}

/* Bytes that the kernel reclaims before it kills processes: file pages, and in v2 slab. */
static uint64_t reclaimable(const char *stat, bool v2)
{
    static const char *const v1_keys[] = {"total_inactive_file ", "total_active_file "};
    static const char *const v2_keys[] = {"inactive_file ", "active_file ", "slab_reclaimable "};
    const char *const *keys = v2 ? v2_keys : v1_keys;
    size_t n_keys = v2 ? TN_COUNT_OF(v2_keys) : TN_COUNT_OF(v1_keys);
    uint64_t sum = 0;
    for (size_t i = 0; stat && i < n_keys; i++) {
        uint64_t value;
        if (tn_fact_line_u64(stat, keys[i], &value, NULL) &&
            __builtin_add_overflow(sum, value, &sum))
            return 0;
    }
    return sum;
}

uint64_t tn_cgroup_memory_left(const struct tn_cgroup_memory *group, uint64_t total,
                               uint64_t *limit, uint32_t *unreadable)
{
    *limit = parse_limit(group->limit, total, unreadable);
    if (group->v2) {
        uint64_t high = parse_limit(group->high, total, unreadable);
        *limit = TN_MIN(*limit, high);
    } else if (group->stat) {
        /* Includes limits of ancestors that a namespace hides. */
        uint64_t hidden;
        if (tn_fact_line_u64(group->stat, "hierarchical_memory_limit ", &hidden, NULL) &&
            hidden > 0 && hidden < NO_LIMIT && hidden <= total && hidden < *limit)
            *limit = hidden;
    }
    if (*limit == TERN_UNKNOWN)
        return TERN_UNKNOWN;
    uint64_t used;
    if (!group->current || !tn_fact_whole_u64(group->current, &used)) {
        /* The limit still applies; the use is unknown. */
        *unreadable |= TERN_FACT_CGROUP_MEMORY;
        used = 0;
    }
    return tn_fact_minus(*limit, tn_fact_minus(used, reclaimable(group->stat, group->v2)));
}

static const char *read_in(const char *root, const char *dir, const char *name, char *text,
                           size_t capacity)
{
    char path[1100];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return tn_fact_read(root, path, text, capacity) < 0 ? NULL : text;
}

void tn_cgroup_memory_add(struct tern_sysinfo *out, const char *root, const char *dir, bool v2)
{
    char max[64], high[64], current[64], stat[8192];
    struct tn_cgroup_memory group = {.v2 = v2};
    group.limit = read_in(root, dir, v2 ? "memory.max" : "memory.limit_in_bytes", max, sizeof max);
    group.high = v2 ? read_in(root, dir, "memory.high", high, sizeof high) : NULL;
    if (!group.limit && !group.high)
        return;
    group.current = read_in(root, dir, v2 ? "memory.current" : "memory.usage_in_bytes", current,
                            sizeof current);
    group.stat = read_in(root, dir, "memory.stat", stat, sizeof stat);
    uint64_t limit;
    uint64_t left = tn_cgroup_memory_left(&group, out->total_bytes, &limit, &out->unreadable);
    out->limit_bytes = TN_MIN(out->limit_bytes, limit);
    out->cgroup_available_bytes = TN_MIN(out->cgroup_available_bytes, left);
}
