/* SPDX-License-Identifier: MIT
 *
 * The sizes of a model as the plan takes them: linear pieces of what model/memplan.h computes.
 */
#include <assert.h>

#include "run/plan.h"
#include "run/session.h"

static_assert(TERN_PLAN_KV_BLOCK == TN_KV_BLOCK, "the plan counts in blocks of the cache");

/* With a q8 cache, which takes the most: the type is chosen later. */
static uint64_t scratch_bytes(const struct tern_file_config *config, uint32_t n_ctx,
                              uint32_t n_batch, uint32_t n_threads)
{
    struct tn_memplan memplan;
    struct tn_memplan_input input = {n_ctx, n_batch, n_threads, TN_KV_Q8};
    tn_memplan_make(&memplan, config, &input);
    return memplan.scratch_bytes;
}

void tern_plan_model_sizes(struct tern_plan_model *out, const struct tern_model *model,
                           uint32_t n_batch)
{
    enum { BLOCK = TERN_PLAN_KV_BLOCK, FAR = 64 };
    const struct tern_file_config *config = tern_model_config(model);
    struct tern_model_info info;
    tern_model_get_info(model, &info);
    *out = (struct tern_plan_model){.n_ctx = config->context, .file_bytes = info.file_bytes};
    if (n_batch == 0)
        n_batch = TN_MIN(TN_DEFAULT_BATCH, config->context);

    uint64_t one = scratch_bytes(config, BLOCK, n_batch, 1);
    uint64_t two_threads = scratch_bytes(config, BLOCK, n_batch, 2);
    uint64_t many_blocks = scratch_bytes(config, FAR * BLOCK, n_batch, 1);
    out->thread_bytes = two_threads - one;
    out->position_bytes = (many_blocks - one + (FAR - 1) * BLOCK - 1) / ((FAR - 1) * BLOCK);
    uint64_t counted = out->thread_bytes + out->position_bytes * BLOCK;
    out->base_bytes = one > counted ? one - counted : 0;
    for (int kv = TERN_KV_F32; kv <= TERN_KV_Q8; kv++) {
        struct tn_memplan memplan;
        struct tn_memplan_input input = {BLOCK, n_batch, 1, (enum tn_kv_type)kv};
        tn_memplan_make(&memplan, config, &input);
        out->kv_block_bytes[kv] = memplan.kv_block_bytes;
    }
}
