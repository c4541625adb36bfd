/* SPDX-License-Identifier: MIT
 *
 * The engine: kernels and threads.
 *
 * It uses the caller's description of the machine, never the machine itself: creating an engine
 * reads no files and no environment and binds no thread but its own, so any thread may do it at any
 * time.
 */
#include "engine/engine.h"

#include "base/alloc.h"
#include "base/error.h"
#include "engine/cpu_level.h"
#include "tern/plan.h"
#include "tern/sysinfo.h"

/* Sets threads and level from the plan for the machine. */
static tern_status configure(struct tern_engine *engine, const struct tern_sysinfo *machine,
                             const struct tern_engine_params *params, struct tern_plan *plan,
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
    engine->inputs = params->inputs;
    tn_kernels_select(&engine->kernels, level->features & machine->cpu_features);
    engine->n_decode = params->n_threads ? params->n_threads : plan->n_threads_decode;
    engine->n_prefill = params->n_threads_prefill ? params->n_threads_prefill
                        : params->n_threads       ? params->n_threads
                                                  : plan->n_threads_prefill;
    return tn_team_create(&engine->team, TN_MAX(engine->n_decode, engine->n_prefill),
                          params->cpus, err);
}

tern_status tern_engine_create(struct tern_engine **out, const struct tern_sysinfo *machine,
                               const struct tern_engine_params *params, struct tern_error *err)
{
    static const struct tern_engine_params defaults;
    *out = NULL;
    params = params ? params : &defaults;
    uint32_t most = TN_MAX(params->n_threads, params->n_threads_prefill);
    if (!machine)
        return tn_fail(err, TERN_USAGE, "no description of the machine; see tern_sysinfo_read");
    if ((unsigned)params->inputs > TERN_INPUTS_AS_8)
        return tn_fail(err, TERN_USAGE, "activation precision %d is unknown", (int)params->inputs);
    if (most > TERN_PLAN_MAX_THREADS)
        return tn_fail(err, TERN_USAGE, "%u threads: at most %d", most, TERN_PLAN_MAX_THREADS);
    struct tern_plan *plan = tn_alloc(sizeof *plan);
    struct tern_engine *engine = tn_alloc_zeroed(1, sizeof *engine);
    tern_status status;
    if (plan && engine)
        status = configure(engine, machine, params, plan, err);
    else
        status = tn_fail(err, TERN_MEMORY, "no memory for an engine");
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
