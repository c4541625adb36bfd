/* SPDX-License-Identifier: MIT
 *
 * Makes the plan of a run from flags and machine, prints its notices, and creates the engine that
 * it describes (planned.h).
 */
#include "planned.h"

#include "base/alloc.h"
#include "base/error.h"
#include "output.h"
#include "plat/plat.h"

void tn_planned_limits(struct tern_plan_limits *out, const struct tn_options *o)
{
    *out = (struct tern_plan_limits){
        .n_threads = (uint32_t)o->threads,
        .n_ctx = (uint32_t)o->ctx,
        .has_kv = o->kv >= 0,
        .kv = o->kv >= 0 ? (enum tern_kv)o->kv : TERN_KV_Q8,
        .cpu_level = o->cpu,
        .ram_bytes = o->ram,
        .eco = o->eco,
        .caps = (enum tern_caps)o->caps,
        .max_tokens = (uint32_t)o->max_tokens,
        .n_draft = (uint32_t)o->draft,
    };
}

void tn_planned_sizes(struct tern_plan_model *out, const struct tn_options *o,
                      const struct tern_model *model)
{
    tern_plan_model_sizes(out, model, 0);
    out->sampler_bytes =
        tern_sampler_bytes(tern_model_config(model)->vocab, (uint32_t)o->penalty_last);
}

tern_status tn_planned_make(struct tn_planned **out, const struct tn_options *o,
                            const struct tn_opened *opened, size_t n_prompt,
                            const struct tern_grammar *grammar, struct tern_error *err)
{
    struct tern_plan_limits limits;
    struct tern_plan_model sizes;
    struct tn_planned *planned = tn_alloc(sizeof *planned);
    *out = NULL;
    if (!planned)
        return tn_fail(err, TERN_MEMORY, "no memory for a plan");
    planned->machine = opened->machine;
    planned->inputs = (enum tern_inputs_as)o->inputs;
    tn_planned_sizes(&sizes, o, opened->model);
    sizes.base_bytes += tern_model_grammar_bytes(opened->model, grammar);
    tn_planned_limits(&limits, o);
    limits.n_prompt = (uint32_t)n_prompt;
    tern_status status = tern_plan_make(&planned->plan, planned->machine, &sizes, &limits, err);
    if (status != TERN_OK) {
        tn_free(planned);
        return status;
    }
    for (uint32_t i = 0; i < planned->plan.n_notices; i++)
        tn_note_say("%s", planned->plan.notices[i]);
    *out = planned;
    return TERN_OK;
}

tern_status tn_planned_create_engine(struct tern_engine **out, const struct tn_planned *planned,
                                     struct tern_error *err)
{
    const struct tern_plan *plan = &planned->plan;
    struct tern_engine_params params = {
        .n_threads = TN_MAX(plan->n_threads_decode, plan->n_threads_ceil),
        .n_threads_prefill = plan->n_threads_prefill,
        .cpu_level = plan->cpu_level,
        .inputs = planned->inputs,
        .cpus = plan->bind_threads && plan->n_threads_ceil <= plan->n_cores ? plan->cores : NULL,
    };
    tn_process_set_eco(plan->eco);
    return tern_engine_create(out, planned->machine, &params, err);
}
