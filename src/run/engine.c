/* SPDX-License-Identifier: MIT
 *
 * The engine: which kernels, how many threads.
 */
#include "run/engine.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/cpu_bits.h"
#include "base/log.h"
#include "tern/plan.h"
#include "tern/sysinfo.h"

const struct tn_cpu_level tn_cpu_levels[] = {
    {"ref", 0},
#if TN_ARCH_X86_64
    {"ssse3", TN_CPU_SSSE3},
    {"avx2", TN_CPU_SSSE3 | TN_CPU_AVX2},
    {"avxvnni", TN_CPU_SSSE3 | TN_CPU_AVX2 | TN_CPU_AVXVNNI},
    {"avx512", TN_CPU_SSSE3 | TN_CPU_AVX2 | TN_CPU_AVX512},
#elif TN_ARCH_AARCH64
    {"neon", TN_CPU_NEON},
    {"dotprod", TN_CPU_NEON | TN_CPU_DOTPROD},
    {"i8mm", TN_CPU_NEON | TN_CPU_DOTPROD | TN_CPU_I8MM},
#endif
};
const uint32_t tn_n_cpu_levels = TN_COUNT_OF(tn_cpu_levels);

const struct tn_cpu_level *tn_cpu_level_best(uint32_t features)
{
    const struct tn_cpu_level *best = &tn_cpu_levels[0];
    for (uint32_t i = 1; i < tn_n_cpu_levels; i++)
        if ((tn_cpu_levels[i].features & ~features) == 0)
            best = &tn_cpu_levels[i];
    return best;
}

/* "ref, ssse3, avx2": those that `features` can run. */
static const char *list_levels(struct tn_buf *buf, uint32_t features)
{
    for (uint32_t i = 0; i < tn_n_cpu_levels; i++)
        if ((tn_cpu_levels[i].features & ~features) == 0)
            tn_buf_printf(buf, "%s%s", buf->n_bytes ? ", " : "", tn_cpu_levels[i].name);
    return tn_buf_text(buf);
}

tern_status tn_cpu_level_choose(const struct tn_cpu_level **out, const char *name,
                                uint32_t features, struct tern_error *err)
{
    *out = tn_cpu_level_best(features);
    if (!name)
        return tn_ok(err);
    for (uint32_t i = 0; i < tn_n_cpu_levels; i++)
        if (strcmp(name, tn_cpu_levels[i].name) == 0)
            *out = &tn_cpu_levels[i];
    bool known = strcmp((*out)->name, name) == 0;
    if (known && ((*out)->features & ~features) == 0)
        return tn_ok(err);
    struct tn_buf buf = {0};
    tern_status status =
        known ? tn_fail(err, TERN_UNSUPPORTED, "this CPU lacks level \"%s\"; it has: %s", name,
                        list_levels(&buf, features))
              : tn_fail(err, TERN_USAGE, "unknown CPU level \"%s\"; levels here: %s", name,
                        list_levels(&buf, ~0u));
    tn_buf_fini(&buf);
    return status;
}

/* Threads and level as the plan for this machine has them. */
static tern_status configure(struct tern_engine *engine, const struct tern_engine_params *params,
                             const struct tern_sysinfo *machine, struct tern_plan *plan,
                             struct tern_error *err)
{
    struct tern_plan_limits limits = {.cpu_level = params->cpu_level};
    const struct tn_cpu_level *level;
    tern_status status = tern_plan_make(plan, machine, NULL, &limits, err);
    if (status == TERN_OK)
        status = tn_cpu_level_choose(&level, plan->cpu_level, machine->cpu_features, err);
    if (status != TERN_OK)
        return status;
    engine->level = level->name;
    tn_kernels_select(&engine->kernels, level->features & machine->cpu_features);
    engine->n_decode = params->n_threads ? params->n_threads : plan->n_threads_decode;
    engine->n_prefill = params->n_threads_prefill ? params->n_threads_prefill
                        : params->n_threads       ? params->n_threads
                                                  : plan->n_threads_prefill;
    return tn_team_create(&engine->team, TN_MAX(engine->n_decode, engine->n_prefill),
                          params->cpus, err);
}

tern_status tern_engine_create(struct tern_engine **out, const struct tern_engine_params *params,
                               struct tern_error *err)
{
    static const struct tern_engine_params defaults;
    *out = NULL;
    params = params ? params : &defaults;
    uint32_t most = TN_MAX(params->n_threads, params->n_threads_prefill);
    if (most > TERN_PLAN_MAX_THREADS)
        return tn_fail(err, TERN_USAGE, "%u threads: at most %d", most, TERN_PLAN_MAX_THREADS);
    struct tern_sysinfo *machine = tn_alloc(sizeof *machine);
    struct tern_plan *plan = tn_alloc(sizeof *plan);
    struct tern_engine *engine = tn_alloc_zeroed(1, sizeof *engine);
    tern_status status = tn_ok(err);
    if (!machine || !plan || !engine)
        status = tn_fail(err, TERN_MEMORY, "no memory for an engine");
    if (status == TERN_OK) {
        tern_sysinfo_read(machine);
        status = configure(engine, params, machine, plan, err);
    }
    tn_free(machine);
    tn_free(plan);
    if (status == TERN_OK)
        *out = engine;
    else
        tn_free(engine);
    return status;
}

void tern_engine_free(struct tern_engine *engine)
{
    if (!engine)
        return;
    tn_team_free(engine->team);
    tn_free(engine);
}

uint32_t tern_engine_n_threads(const struct tern_engine *engine)
{
    return TN_MIN(engine->n_decode, tn_team_n_threads(engine->team));
}

const char *tern_engine_cpu_level(const struct tern_engine *engine)
{
    return engine->level;
}

void tern_engine_set_threads(struct tern_engine *engine, uint32_t n_decode, uint32_t n_prefill)
{
    uint32_t limit = tn_team_n_threads(engine->team);
    engine->n_decode = TN_MAX(1u, TN_MIN(n_decode, limit));
    engine->n_prefill = TN_MAX(1u, TN_MIN(n_prefill, limit));
}
