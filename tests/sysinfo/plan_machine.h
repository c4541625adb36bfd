/* SPDX-License-Identifier: MIT
 *
 * A fictitious machine, the model of 2B-4T, and the plan made for both, with its reasons and
 * notices.
 */
#ifndef TEST_PLAN_MACHINE_H
#define TEST_PLAN_MACHINE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "engine/plan.h"

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

static struct tern_sysinfo machine;
static struct tern_plan plan;
static struct tern_error err;

/* One kind of n cores, no limits. */
static inline void set_machine(uint32_t n_cores, uint64_t available)
{
    memset(&machine, 0, sizeof machine);
    machine.n_physical = machine.n_logical = machine.n_allowed = n_cores;
    machine.n_allowed_logical = n_cores;
    machine.n_kinds = machine.n_packages = machine.n_numa = 1;
    machine.kinds[0] = (struct tern_cpu_kind){.n_cores = n_cores, .n_allowed = n_cores,
                                              .capacity = 1024};
    machine.n_cores = n_cores;
    for (uint32_t i = 0; i < n_cores; i++)
        machine.cores[i] = (struct tern_core){i, 0};
    machine.binding_works = true;
    machine.quota_millicpus = TERN_UNKNOWN;
    machine.total_bytes = 64 * GIB;
    machine.available_bytes = machine.system_available_bytes = available;
    machine.limited_by = TERN_BOUND_MEMINFO;
    machine.limit_bytes = machine.rlimit_as_left_bytes = TERN_UNKNOWN;
    machine.commit_left_bytes = machine.pressure_centi = TERN_UNKNOWN;
}

/* A second, slower kind. */
static inline void add_kind(uint32_t n_cores, uint32_t capacity, bool low_power)
{
    uint32_t kind = machine.n_kinds++;
    machine.kinds[kind] = (struct tern_cpu_kind){
        .n_cores = n_cores, .n_allowed = n_cores, .capacity = capacity, .low_power = low_power};
    for (uint32_t i = 0; i < n_cores; i++)
        machine.cores[machine.n_cores + i] = (struct tern_core){100 + i, kind};
    machine.n_cores += n_cores;
    machine.n_allowed += n_cores;
    machine.n_physical += n_cores;
}

/* 2B-4T: cache 76,800 bytes per token in f16, 39,600 in q8. */
static const struct tern_plan_model model_2b = {
    .n_ctx = 4096,
    .file_bytes = 860 * MIB,
    .model_bytes = 200 * KIB,
    .sampler_bytes = 2 * MIB,
    .base_bytes = 10 * MIB,
    .thread_bytes = 64 * KIB,
    .position_bytes = 4,
    .kv_block_bytes = {256 * 153600, 256 * 76800, 256 * 39600},
    .kv = TERN_KV_Q8,
};

static inline tern_status make(const struct tern_plan_model *model,
                               const struct tern_plan_limits *limits)
{
    return tern_plan_make(&plan, &machine, model, limits, &err);
}

static const struct tern_plan_reason *reason(const char *what)
{
    for (uint32_t i = 0; i < plan.n_reasons; i++)
        if (strcmp(plan.reasons[i].what, what) == 0)
            return &plan.reasons[i];
    fail_msg("no reason for %s", what);
    return NULL;
}

static inline bool noticed(const char *text)
{
    for (uint32_t i = 0; i < plan.n_notices; i++)
        if (strstr(plan.notices[i], text))
            return true;
    return false;
}

#endif
