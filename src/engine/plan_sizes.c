/* SPDX-License-Identifier: MIT
 *
 * A model's sizes as inputs of the plan: what it holds already, what its sampler needs, and a
 * linear form of what model/workspace_size.h computes for a session.
 */
#include <assert.h>

#include "base/error.h"
#include "engine/plan.h"
#include "engine/session.h"
#include "model/mixers/attention_state.h"

static_assert(TERN_PLAN_KV_BLOCK == TN_KV_BLOCK, "the plan counts in blocks of the cache");
static_assert(TN_RING_CHECKPOINTS == TN_PLAN_MIN_CHECKPOINTS, "what a plan has at least");

/* Size of the list of checkpoints; 0 for models without state. */
#define CHECKPOINT_LIST_BYTES \
    (TN_MAX_CHECKPOINTS * (sizeof(struct tn_checkpoint) + 2 * sizeof(uint32_t)) + 3 * 64)

/* Without state, and with a q8 cache, which needs the most: the type is chosen later. */
static uint64_t scratch_bytes(const struct tn_weights *weights, uint32_t n_ctx,
                              uint32_t n_batch, uint32_t n_threads, uint32_t n_logits,
                              bool has_drafts)
{
    struct tn_workspace_size size;
    const struct tn_workspace_input input = {.n_ctx = n_ctx, .n_batch = n_batch,
                                             .n_threads = n_threads, .kv = TN_KV_Q8,
                                             .n_sequences = 1, .n_logits = n_logits,
                                             .n_checkpoints = TN_MAX_CHECKPOINTS,
                                             .has_drafts = has_drafts};
    tn_workspace_size_make(&size, weights, &input);
    return size.scratch_bytes - size.state_bytes;
}

/* With a cache of one type: blocks, states and checkpoints. */
static struct tn_workspace_size cache_size(const struct tn_weights *weights, enum tern_kv kv,
                                           uint32_t n_ctx, uint32_t n_batch)
{
    struct tn_workspace_size size;
    const struct tn_workspace_input input = {.n_ctx = n_ctx, .n_batch = n_batch, .n_threads = 1,
                                             .kv = (enum tn_kv_type)kv, .n_sequences = 1,
                                             .n_logits = 1};
    tn_workspace_size_make(&size, weights, &input);
    return size;
}

static void size_cache(struct tern_plan_model *out, const struct tn_weights *weights,
                       uint32_t n_batch)
{
    const uint32_t above = tn_rings_above(weights, n_batch);
    struct tern_plan_rings *rings = &out->rings;
    rings->above = above < out->n_ctx ? above : 0;
    for (enum tern_kv kv = TERN_KV_F32; kv <= TERN_KV_Q8; kv++) {
        const struct tn_workspace_size blocks =
            cache_size(weights, kv, TERN_PLAN_KV_BLOCK, n_batch);
        out->kv_block_bytes[kv] = blocks.kv_block_bytes;
        out->checkpoint_bytes = blocks.checkpoint_bytes;
        if (rings->above == 0)
            continue;
        const struct tn_workspace_size with_rings = cache_size(weights, kv, above + 1, n_batch);
        rings->kv_block_bytes[kv] = with_rings.kv_block_bytes;
        rings->checkpoint_bytes[kv] = with_rings.checkpoint_bytes;
        rings->state_bytes[kv] = with_rings.state_bytes - blocks.state_bytes +
                                 (blocks.checkpoint_bytes ? 0 : CHECKPOINT_LIST_BYTES);
    }
}

void tern_plan_model_sizes(struct tern_plan_model *out, const struct tern_model *model,
                           uint32_t n_batch)
{
    enum { BLOCK = TERN_PLAN_KV_BLOCK, FAR = 64 };
    const struct tern_file_config *config = model->file.spec.config;
    const struct tn_weights *weights = &model->weights;
    struct tern_model_info info;
    tern_model_get_info(model, &info);
    *out = (struct tern_plan_model){.n_ctx = config->context, .file_bytes = info.file_bytes,
                                    .model_bytes = tern_model_bytes(model),
                                    .sampler_bytes = tern_sampler_bytes(config->vocab, 0),
                                    .kv = tern_model_config(model)->kv};
    if (info.n_experts > 0)
        out->unread_bytes =
            info.expert_bytes / info.n_experts * (info.n_experts - info.n_experts_used);
    if (n_batch == 0)
        n_batch = TN_MIN(TN_DEFAULT_BATCH, config->context);

    uint64_t one = scratch_bytes(weights, BLOCK, n_batch, 1, 1, false);
    uint64_t head = scratch_bytes(weights, BLOCK, n_batch, 1, 1, true) - one;
    uint64_t two_threads = scratch_bytes(weights, BLOCK, n_batch, 2, 1, false);
    uint64_t many_blocks = scratch_bytes(weights, FAR * BLOCK, n_batch, 1, 1, true) - head;
    uint64_t all_drafts = scratch_bytes(weights, BLOCK, n_batch, 1, 1 + TERN_MAX_DRAFT, false);
    out->thread_bytes = two_threads - one;
    out->draft_head_bytes = head;
    out->draft_bytes = (all_drafts - one + TERN_MAX_DRAFT - 1) / TERN_MAX_DRAFT;
    out->position_bytes = (many_blocks - one + (FAR - 1) * BLOCK - 1) / ((FAR - 1) * BLOCK);
    uint64_t counted = out->thread_bytes + out->position_bytes * BLOCK;
    const struct tn_workspace_size q8 = cache_size(weights, TERN_KV_Q8, BLOCK, n_batch);
    out->base_bytes =
        (one > counted ? one - counted : 0) + q8.state_bytes + sizeof(struct tern_session);
    size_cache(out, weights, n_batch);
}

tern_status tern_plan_outline_sizes(struct tern_plan_model *out, struct tern_model_info *info,
                                    const struct tern_file_config *config,
                                    const struct tern_file_layer *layers,
                                    const struct tern_file_tensor *tensors, uint32_t n_tensors,
                                    uint64_t data_bytes, struct tern_error *err)
{
    const struct tn_model_spec spec = {.config = config, .layers = layers};
    struct tern_model *model;
    *out = (struct tern_plan_model){0};
    *info = (struct tern_model_info){0};
    tern_status status = tn_model_outline(&model, &spec, tensors, n_tensors, data_bytes, err);
    if (status != TERN_OK)
        return status;
    tern_plan_model_sizes(out, model, 0);
    tern_model_get_info(model, info);
    tern_model_free(model);
    return tn_ok(err);
}
