/* SPDX-License-Identifier: MIT
 *
 * The states of all layers of a sequence: sizes, and the last position that all layers can reach.
 * state.h has the contracts.
 */
#include "model/state.h"

#include "base/bits.h"
#include "model/mixer.h"
#include "model/weights.h"

/* Blocks and checkpoints start on pages of any system (16 KiB on Apple silicon). */
#define PAGE_BYTES 16384u

static const struct tn_state_ops *ops_of(const struct tn_layer *layer)
{
    return layer->mixer->state;
}

size_t tn_draft_block_bytes(const struct tn_layer *layer)
{
    return tn_kvcache_of(&layer->dims, TN_KV_F32).layer_bytes; /* the largest */
}

void tn_state_plan_make(struct tn_state_plan *out, struct tn_state_layer *layers,
                        const struct tn_weights *weights, const struct tn_state_input *input)
{
    struct tn_state_bytes sum = {0};
    const uint32_t n_layer = weights->config->n_layer;
    const struct tn_layer *draft = tn_draft_layer(weights);
    if (layers && draft) /* its blocks are separate (engine/draft_head.h) */
        layers[n_layer] = (struct tn_state_layer){
            .layer = draft, .bytes.block = tn_draft_block_bytes(draft), .input = *input};
    for (uint32_t i = 0; i < n_layer; i++) {
        const struct tn_layer *layer = &weights->layers[i];
        const struct tn_state_bytes own = ops_of(layer)->bytes(weights, layer, input);
        if (layers)
            layers[i] = (struct tn_state_layer){layer, sum, own, *input};
        sum.block += own.block;
        sum.sequence += own.sequence;
        sum.checkpoint += own.checkpoint;
    }
    /* At least one byte: positions are counted in blocks even if no layer stores anything in
     * them. */
    sum.block = tn_align_up(TN_MAX(sum.block, (size_t)1), PAGE_BYTES);
    sum.checkpoint = tn_align_up(sum.checkpoint, PAGE_BYTES);
    *out = (struct tn_state_plan){sum, layers, n_layer};
}

uint64_t tn_kv_bytes_per_token(const struct tn_weights *weights,
                               const struct tn_state_input *input)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < weights->config->n_layer; i++) {
        const struct tn_layer *layer = &weights->layers[i];
        sum += ops_of(layer)->bytes(weights, layer, input).block;
    }
    return (sum + TN_KV_BLOCK - 1) / TN_KV_BLOCK;
}

/* ---- positions that all layers can reach ---- */

/* The next layer with a state after l, from the first one on for NULL; NULL: there is none. */
static const struct tn_state_layer *next_layer(const struct tn_state_plan *plan,
                                               const struct tn_state_layer *l)
{
    const struct tn_state_layer *end = plan->layers + plan->n_layer;
    for (l = l ? l + 1 : plan->layers; l < end; l++)
        if (l->bytes.sequence > 0)
            return l;
    return NULL;
}

/* A layer may reach only a position that another cannot: repeats until all agree. */
static uint32_t reach_all(const struct tn_state_plan *plan, const unsigned char *state,
                          const unsigned char *kept, uint32_t position)
{
    uint32_t asked;
    do {
        asked = position;
        for (const struct tn_state_layer *l = NULL; (l = next_layer(plan, l)) != NULL;)
            position = ops_of(l->layer)->reach(
                l, kept ? kept + l->at.checkpoint : state + l->at.sequence, position);
    } while (position != asked);
    return position;
}

uint32_t tn_state_reach(const struct tn_state_plan *plan, const unsigned char *state,
                        uint32_t position)
{
    return reach_all(plan, state, NULL, position);
}

uint32_t tn_state_kept_reach(const struct tn_state_plan *plan, const unsigned char *kept,
                             uint32_t position)
{
    return reach_all(plan, NULL, kept, position);
}

/* ---- all layers ---- */

void tn_state_truncate(const struct tn_state_plan *plan, unsigned char *state, uint32_t position)
{
    for (const struct tn_state_layer *l = NULL; (l = next_layer(plan, l)) != NULL;)
        ops_of(l->layer)->truncate(l, state + l->at.sequence, position);
}

void tn_state_checkpoint(const struct tn_state_plan *plan, const unsigned char *state,
                         uint32_t position, unsigned char *kept)
{
    for (const struct tn_state_layer *l = NULL; (l = next_layer(plan, l)) != NULL;)
        ops_of(l->layer)->checkpoint(l, state + l->at.sequence, position, kept + l->at.checkpoint);
}

void tn_state_restore(const struct tn_state_plan *plan, unsigned char *state,
                      const unsigned char *kept)
{
    for (const struct tn_state_layer *l = NULL; (l = next_layer(plan, l)) != NULL;)
        ops_of(l->layer)->restore(l, state + l->at.sequence, kept + l->at.checkpoint);
}

void tn_state_pretend(const struct tn_state_plan *plan, unsigned char *state, uint32_t position)
{
    for (const struct tn_state_layer *l = NULL; (l = next_layer(plan, l)) != NULL;)
        ops_of(l->layer)->pretend(l, state + l->at.sequence, position);
}

bool tn_state_is_sound(const struct tn_state_plan *plan, const unsigned char *kept,
                       uint32_t position)
{
    for (const struct tn_state_layer *l = NULL; (l = next_layer(plan, l)) != NULL;)
        if (!ops_of(l->layer)->is_sound(l, kept + l->at.checkpoint, position))
            return false;
    return true;
}
