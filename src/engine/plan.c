/* SPDX-License-Identifier: MIT
 *
 * The plan for a machine: threads, kernel level, available memory, tier and caps.
 *
 *   threads    one per physical core that is fast enough, within the CPU quota
 *   tier       by available memory, before the model is mapped
 *   context    plan_memory.c
 *   new tokens the minimum of the request or default, the cap, and the room in the context
 *
 * Pure computation from the caller's description of the machine; every decision adds a reason.
 */
#include "engine/plan.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "engine/cpu_level.h"

/* ---- threads ---- */

/* Speed of the fastest kind of core that is allowed; low-power cores count only if there are no
 * others. */
static uint32_t top_capacity(const struct tern_sysinfo *m, bool low_power)
{
    uint32_t top = 0;
    for (uint32_t i = 0; i < m->n_kinds; i++)
        if (m->kinds[i].n_allowed > 0 && m->kinds[i].low_power == low_power)
            top = TN_MAX(top, m->kinds[i].capacity);
    return top;
}

/* Cores for decoding: those with at least 60 % of the fastest kind's speed.  For prefill all but
 * the low-power ones, because work is handed out in small pieces. */
struct core_counts {
    uint32_t n_fast;
    uint32_t n_useful;
    bool hybrid;
};

static struct core_counts count_cores(const struct tern_sysinfo *m)
{
    struct core_counts c = {0, 0, false};
    bool low_power = top_capacity(m, false) == 0;
    uint32_t top = top_capacity(m, low_power), n_kinds_used = 0;
    for (uint32_t i = 0; i < m->n_kinds; i++) {
        const struct tern_cpu_kind *kind = &m->kinds[i];
        n_kinds_used += kind->n_allowed > 0;
        if (kind->low_power != low_power)
            continue;
        c.n_useful += kind->n_allowed;
        if ((uint64_t)kind->capacity * 100 >= (uint64_t)top * 60)
            c.n_fast += kind->n_allowed;
    }
    c.hybrid = n_kinds_used > 1;
    c.n_fast = TN_MAX(c.n_fast, 1u);
    c.n_useful = TN_MAX(c.n_useful, c.n_fast);
    return c;
}

/* A thread count while rules lower it, and the last rule that did. */
struct bounded {
    uint32_t n;
    const char *bound_by;
    char detail[128];
};

static void lower(struct bounded *b, uint32_t n, const char *bound_by, const char *format, ...)
    TN_PRINTF(4, 5);

static void lower(struct bounded *b, uint32_t n, const char *bound_by, const char *format, ...)
{
    if (n >= b->n && b->bound_by)
        return;
    b->n = n;
    b->bound_by = bound_by;
    va_list args;
    va_start(args, format);
    vsnprintf(b->detail, sizeof b->detail, format, args);
    va_end(args);
}

static uint32_t quota_floor(uint64_t millicpus)
{
    uint64_t n = millicpus / 1000;
    return n < 1 ? 1 : n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
}

/* Applies the rules common to both counts. */
static void apply_rules(struct bounded *b, uint32_t n_cores, const char *which,
                        const struct tern_sysinfo *m, const struct tern_plan_limits *limits)
{
    const char *taken = m->limited_by_affinity ? "affinity"
                        : m->limited_by_cpuset ? "cpuset"
                                               : NULL;
    if (taken)
        lower(b, n_cores, taken, "one per %s that may be used: %u of %u", which, n_cores,
              m->n_physical);
    else
        lower(b, n_cores, "cores", "one per %s: %u of %u hardware threads", which, n_cores,
              m->n_logical);
    if (limits->eco)
        lower(b, TN_MAX(n_cores / 2, 1u), "eco", "--eco: half of %u, one per %s", n_cores, which);
    if (m->quota_millicpus != TERN_UNKNOWN)
        lower(b, quota_floor(m->quota_millicpus), "quota",
              "CPU quota of %.2f, rounded down to whole threads",
              (double)m->quota_millicpus / 1000.0);
    lower(b, TERN_PLAN_MAX_THREADS, "limit", "at most %d threads", TERN_PLAN_MAX_THREADS);
}

static tern_status check_user_threads(const struct tern_plan_limits *limits, uint32_t n_fast,
                                      struct tern_error *err)
{
    if (limits->n_threads > TERN_PLAN_MAX_THREADS)
        return tn_fail(err, TERN_USAGE, "--threads %u is more than %d", limits->n_threads,
                       TERN_PLAN_MAX_THREADS);
    uint32_t n_eco = TN_MAX(n_fast / 2, 1u);
    if (limits->eco && limits->n_threads && limits->n_threads != n_eco)
        return tn_fail(err, TERN_USAGE,
                       "--threads %u and --eco, which means %u here, contradict each other; give "
                       "one of them",
                       limits->n_threads, n_eco);
    return tn_ok(err);
}

static void list_bound_cores(struct tern_plan *plan, const struct tern_sysinfo *m)
{
    uint32_t n = TN_MAX(plan->n_threads_decode, plan->n_threads_prefill);
    /* With more threads than cores, some would have no core to be bound to. */
    if (n > m->n_cores)
        return;
    plan->bind_threads = true;
    plan->n_cores = n;
    for (uint32_t i = 0; i < n; i++)
        plan->cores[i] = m->cores[i].os_cpu;
}

static void use_user_threads(struct tern_plan *plan, const struct tern_sysinfo *m, uint32_t n)
{
    plan->n_threads_decode = plan->n_threads_prefill = n;
    plan->threads_fixed = true;
    tn_plan_reason(plan, "threads_decode", n, NULL, "user", "--threads %u", n);
    tn_plan_reason(plan, "threads_prefill", n, NULL, "user", "--threads %u", n);
    if (m->quota_millicpus != TERN_UNKNOWN && n > quota_floor(m->quota_millicpus))
        tn_plan_notice(plan, "--threads %u is more than the CPU quota of %.2f: threads will wait "
                             "for each other",
                       n, (double)m->quota_millicpus / 1000.0);
    else if (n > m->n_allowed)
        tn_plan_notice(plan, "--threads %u is more than the %u cores that may be used: more is "
                             "usually slower",
                       n, m->n_allowed);
}

static tern_status plan_threads(struct tern_plan *plan, const struct tern_sysinfo *m,
                                const struct tern_plan_limits *limits, struct tern_error *err)
{
    struct core_counts cores = count_cores(m);
    tern_status status = check_user_threads(limits, cores.n_fast, err);
    if (status != TERN_OK)
        return status;
    plan->eco = limits->eco;
    if (limits->n_threads) {
        use_user_threads(plan, m, limits->n_threads);
    } else {
        const char *fast = cores.n_fast < m->n_allowed ? "fast core" : "physical core";
        struct bounded decode = {0}, prefill = {0};
        apply_rules(&decode, cores.n_fast, fast, m, limits);
        apply_rules(&prefill, limits->eco ? cores.n_fast : cores.n_useful, "physical core", m,
                    limits);
        plan->n_threads_decode = decode.n;
        plan->n_threads_prefill = prefill.n;
        tn_plan_reason(plan, "threads_decode", decode.n, NULL, decode.bound_by, "%s",
                       decode.detail);
        tn_plan_reason(plan, "threads_prefill", prefill.n, NULL, prefill.bound_by, "%s",
                       prefill.detail);
        bool fraction = m->quota_millicpus != TERN_UNKNOWN && m->quota_millicpus > 1000 &&
                        m->quota_millicpus % 1000 != 0;
        if (fraction && !limits->eco && decode.n < TN_MIN(cores.n_fast, TERN_PLAN_MAX_THREADS))
            plan->n_threads_ceil = decode.n + 1;
    }
    /* Homogeneous machines are left to the scheduler, which knows the other load. */
    if (cores.hybrid && m->binding_works)
        list_bound_cores(plan, m);
    return tn_ok(err);
}

static tern_status plan_level(struct tern_plan *plan, const struct tern_sysinfo *m,
                              const struct tern_plan_limits *limits, struct tern_error *err)
{
    const struct tn_cpu_level *level;
    tern_status status = tn_cpu_level_choose(&level, limits->cpu_level, m->cpu_features, err);
    if (status != TERN_OK)
        return status;
    plan->cpu_level = level->name;
    if (limits->cpu_level)
        tn_plan_reason(plan, "kernel", 0, level->name, "user", "--cpu %s", level->name);
    else
        tn_plan_reason(plan, "kernel", 0, level->name, "cpu",
                       "the best that this CPU and its operating system can run");
    return tn_ok(err);
}

/* ---- memory and tiers ---- */

static void plan_available(struct tern_plan *plan, const struct tern_sysinfo *m,
                           const struct tern_plan_limits *limits)
{
    struct tn_plan_size size;
    plan->available_bytes = m->available_bytes;
    plan->limited_by = m->limited_by;
    if (plan->available_bytes == TERN_UNKNOWN) {
        plan->available_bytes = TN_MIN(TN_PLAN_ASSUMED_BYTES, m->total_bytes / 2);
        plan->limited_by = TERN_BOUND_NONE;
        tn_plan_notice(plan, "the available memory is unknown: planned with %s; --ram says it",
                       tn_plan_size_text(&size, plan->available_bytes));
    }
    if (limits->ram_bytes &&
        (limits->ram_bytes < plan->available_bytes || plan->limited_by == TERN_BOUND_NONE)) {
        plan->available_bytes = limits->ram_bytes;
        plan->limited_by = TERN_BOUND_USER;
    }
    tn_plan_reason(plan, "available", plan->available_bytes, NULL,
                   tern_bound_text(plan->limited_by), "%s, the lowest of the limits",
                   tn_plan_size_text(&size, plan->available_bytes));
}

static const struct {
    uint64_t below_bytes;
    uint32_t default_new, cap;
    const char *range;
} tiers[] = {
    {4 * TN_PLAN_GIB, 256, 512, "less than 4 GiB"},
    {8 * TN_PLAN_GIB, 512, 1024, "4 to 8 GiB"},
    {12 * TN_PLAN_GIB, 1024, 2048, "8 to 12 GiB"},
    {UINT64_MAX, 2048, 8192, "12 GiB or more"},
};

/* Lowers the tier when memory is already under pressure. */
static uint32_t pressure_steps(const struct tern_sysinfo *m)
{
    if (m->pressure_level >= 4)
        return TN_COUNT_OF(tiers);
    bool psi = m->pressure_centi != TERN_UNKNOWN && m->pressure_centi > 1000;
    return psi || m->pressure_level >= 2 ? 1 : 0;
}

static uint32_t tier_of(uint64_t available_bytes)
{
    uint32_t tier = 0;
    while (tier + 1 < TN_COUNT_OF(tiers) && available_bytes >= tiers[tier].below_bytes)
        tier++;
    return tier;
}

static void plan_tier(struct tern_plan *plan, const struct tern_sysinfo *m)
{
    uint32_t tier = tier_of(plan->available_bytes);
    uint32_t steps = TN_MIN(tier, pressure_steps(m));
    const char *bound_by = steps > 0                             ? "pressure"
                           : plan->limited_by == TERN_BOUND_NONE ? "unknown"
                                                                 : "tier";
    tier -= steps;
    plan->tier = tier;
    plan->default_new_tokens = tiers[tier].default_new;
    plan->cap_new_tokens = tiers[tier].cap;
    tn_plan_reason(plan, "default_new_tokens", plan->default_new_tokens, NULL, bound_by,
                   "for %s of available memory", tiers[tier].range);
}

/* Sets the cap that --caps requests; the context must be known. */
static void plan_caps(struct tern_plan *plan, const struct tern_plan_model *model,
                      enum tern_caps caps)
{
    if (caps == TERN_CAPS_MEMORY && model) {
        plan->cap_new_tokens = plan->n_ctx;
        tn_plan_reason(plan, "cap_new_tokens", plan->n_ctx, NULL, "memory",
                       "--caps memory: the planned context");
    } else if (caps == TERN_CAPS_OFF && model) {
        plan->cap_new_tokens = model->n_ctx;
        tn_plan_reason(plan, "cap_new_tokens", model->n_ctx, NULL, "model",
                       "--caps off: the model's context");
    } else {
        tn_plan_reason(plan, "cap_new_tokens", plan->cap_new_tokens, NULL, "tier",
                       "for %s of available memory; --caps memory or off replaces it",
                       tiers[plan->tier].range);
    }
}

static void plan_new_tokens(struct tern_plan *plan, const struct tern_plan_limits *limits)
{
    uint32_t requested = limits->max_tokens ? limits->max_tokens : plan->default_new_tokens;
    uint32_t room = plan->n_ctx - limits->n_prompt;
    plan->max_new_tokens = TN_MIN(requested, TN_MIN(plan->cap_new_tokens, room));
    plan->capped = limits->caps == TERN_CAPS_TIERS && plan->cap_new_tokens < requested &&
                   plan->cap_new_tokens <= room;
    const char *bound_by = plan->capped                       ? "cap"
                           : plan->max_new_tokens < requested ? "context"
                           : limits->max_tokens               ? "user"
                                                              : "default";
    tn_plan_reason(plan, "max_new_tokens", plan->max_new_tokens, NULL, bound_by,
                   "requested %u, cap %u, room in the context %u", requested,
                   plan->cap_new_tokens, room);
    bool pressed = plan->tier < tier_of(plan->available_bytes);
    if (plan->capped)
        tn_plan_notice(plan, "-n %u is more than the cap of %u (%s%s); --caps memory or off lifts "
                             "it",
                       requested, plan->cap_new_tokens,
                       pressed ? "memory is short here" : tiers[plan->tier].range,
                       pressed ? "" : " of memory available");
}

/* Notes a request for more new tokens than the context has room for, whatever the cap. */
static void plan_room(struct tern_plan *plan, const struct tern_plan_limits *limits)
{
    uint32_t room = plan->n_ctx - limits->n_prompt;
    plan->context_cuts = limits->max_tokens > room && room <= plan->cap_new_tokens;
    if (plan->context_cuts && limits->n_prompt)
        tn_plan_notice(plan, "-n %u is more than the context of %u leaves after a prompt of %u: "
                             "at most %u new tokens",
                       limits->max_tokens, plan->n_ctx, limits->n_prompt, room);
    else if (plan->context_cuts)
        tn_plan_notice(plan, "-n %u is more than the context of %u tokens", limits->max_tokens,
                       plan->n_ctx);
}

static tern_status make(struct tern_plan *plan, const struct tern_sysinfo *machine,
                        const struct tern_plan_model *model,
                        const struct tern_plan_limits *limits, struct tern_error *err)
{
    tern_status status = plan_threads(plan, machine, limits, err);
    if (status == TERN_OK)
        status = plan_level(plan, machine, limits, err);
    if (status != TERN_OK)
        return status;
    plan_available(plan, machine, limits);
    tn_plan_reserve(plan, machine);
    plan_tier(plan, machine);
    if (model)
        status = tn_plan_memory(plan, machine, model, limits, err);
    if (status != TERN_OK)
        return status;
    plan_caps(plan, model, limits->caps);
    if (model) {
        plan_new_tokens(plan, limits);
        plan_room(plan, limits);
    }
    return tn_ok(err);
}

tern_status tern_plan_make(struct tern_plan *out, const struct tern_sysinfo *machine,
                           const struct tern_plan_model *model,
                           const struct tern_plan_limits *limits, struct tern_error *err)
{
    static const struct tern_plan_limits none;
    memset(out, 0, sizeof *out);
    tern_status status = make(out, machine, model, limits ? limits : &none, err);
    if (status != TERN_OK)
        memset(out, 0, sizeof *out);
    return status;
}
