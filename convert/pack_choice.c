/* SPDX-License-Identifier: MIT
 *
 * Chooses the small layout if the source has a type below 2 bits, if fast would not fit into
 * memory, or if it decodes faster.
 */
#include "convert/pack_choice.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/error.h"
#include "convert/gguf/gguf.h"
#include "convert/outline.h"
#include "tern/measure.h"
#include "tern/sysinfo.h"

/* Small must be faster by this ratio, because measured rates vary. */
#define MIN_RATIO 1.05

static bool is_small_type(const struct tn_source_tensor *t)
{
    return t->dtype == TN_DTYPE_CODED &&
           (t->type_number == TN_GGML_PTQ1_0 || t->type_number == TN_GGML_TQ1_0 ||
            t->type_number == TN_GGML_IQ1_BN);
}

static const struct tn_source_tensor *find_small(const struct tn_tensor_plan *plan)
{
    for (uint32_t i = 0; i < plan->n_tensors; i++) {
        const struct tn_tensor_plan_row *t = &plan->tensors[i];
        if (t->file.layout == TERN_LAYOUT_T2 && t->weight && is_small_type(t->weight))
            return t->weight;
    }
    return NULL;
}

bool tn_pack_fits(char why[TN_PACK_REASON_BYTES], const struct tern_plan_model *sizes,
                  const struct tern_sysinfo *machine)
{
    const struct tern_plan_limits limits = {.n_ctx = TN_MIN(TN_PACK_CONTEXT, sizes->n_ctx)};
    struct tern_plan *plan = tn_alloc(sizeof *plan);
    /* If the plan has a shorter context, the rest of the cache does not fit. */
    const bool fits = plan && tern_plan_make(plan, machine, sizes, &limits, NULL) == TERN_OK &&
                      plan->n_ctx == limits.n_ctx && !plan->will_page;
    tn_free(plan);
    if (!fits)
        snprintf(why, TN_PACK_REASON_BYTES,
                 "in 2 bits the weights are %.1f MB, which do not stay in memory beside a "
                 "conversation of %u tokens",
                 (double)sizes->file_bytes * 1e-6, limits.n_ctx);
    return fits;
}

static tern_status measure_rates(struct tern_pack_rates *out, const struct tern_sysinfo *machine,
                                 bool int8_inputs, struct tern_error *err)
{
    struct tern_engine *engine = NULL;
    const struct tern_engine_params params = {.n_threads = TN_MIN(machine->n_allowed, 16u)};
    tern_status status = tern_engine_create(&engine, machine, &params, err);
    if (status == TERN_OK)
        status = tern_measure_packs(out, engine, int8_inputs, err);
    tern_engine_free(engine);
    return status;
}

/* Decides by memory, then by speed. */
static tern_status choose_here(bool *small, char why[TN_PACK_REASON_BYTES],
                               const struct tern_plan_model *sizes,
                               const struct tern_sysinfo *machine, bool int8_inputs,
                               struct tern_error *err)
{
    struct tern_pack_rates rates;
    *small = !tn_pack_fits(why, sizes, machine);
    if (*small)
        return TERN_OK;
    tern_status status = measure_rates(&rates, machine, int8_inputs, err);
    if (status != TERN_OK)
        return status;
    *small = rates.small_gw_s > MIN_RATIO * rates.fast_gw_s;
    snprintf(why, TN_PACK_REASON_BYTES,
             "products from memory take %.1f 10^9 weights per second in 2 bits, %.1f in 1.625",
             rates.fast_gw_s, rates.small_gw_s);
    return TERN_OK;
}

tern_status tn_pack_choose(bool *small, char why[TN_PACK_REASON_BYTES],
                           const struct tn_tensor_plan *plan, const struct tn_config_import *import,
                           struct tern_error *err)
{
    const struct tn_source_tensor *source = find_small(plan);
    const bool int8_inputs = import->config.inputs == TERN_INPUTS_I8_TOKEN;
    struct tern_source_sizes sizes;
    *small = source != NULL;
    if (source) {
        snprintf(why, TN_PACK_REASON_BYTES, "the source is of type %s", source->type);
        return TERN_OK;
    }
    tern_status status = tn_outline_settled(&sizes, plan, import, err);
    if (status != TERN_OK)
        return status;
    struct tern_sysinfo *machine = tn_alloc(sizeof *machine);
    if (!machine)
        return tn_fail(err, TERN_MEMORY, "no memory to describe the machine");
    tern_sysinfo_read(machine);
    status = choose_here(small, why, &sizes.plan, machine, int8_inputs, err);
    tn_free(machine);
    return status;
}

void tn_tensor_plan_make_small(struct tn_tensor_plan *plan)
{
    for (uint32_t i = 0; i < plan->n_tensors; i++)
        if (plan->tensors[i].file.layout == TERN_LAYOUT_T2)
            plan->tensors[i].file.layout = TERN_LAYOUT_T5;
}
