/* SPDX-License-Identifier: MIT
 *
 * Rings of windows: their sizes, the positions that they can be rolled back to, and their
 * checkpoints.
 */
#include "model/mixers/attention_state.h"

#include <assert.h>
#include <string.h>

#include "base/bits.h"

/* Begins a state or a checkpoint; blocks follow. */
struct ring_header {
    uint32_t begin, end; /* readable positions */
    uint32_t unused[14];
};
static_assert(sizeof(struct ring_header) == 64, "blocks begin at a multiple of 64 bytes");

/* ---- sizes ---- */

static uint32_t ring_blocks(uint32_t window, uint32_t n_batch)
{
    return tn_div_ceil_u32(window - 1 + n_batch, TN_KV_BLOCK);
}

static uint32_t kept_blocks(uint32_t window)
{
    return tn_div_ceil_u32(window - 1, TN_KV_BLOCK);
}

uint32_t tn_rings_above(const struct tn_weights *weights, uint32_t n_batch)
{
    uint32_t window = 0;
    for (uint32_t i = 0; i < weights->config->n_layer; i++)
        window = TN_MAX(window, weights->layers[i].spec->window);
    const uint32_t n_blocks =
        window ? ring_blocks(window, n_batch) + TN_RING_CHECKPOINTS * kept_blocks(window) : 0;
    return window ? n_blocks * TN_KV_BLOCK : UINT32_MAX;
}

static struct tn_state_bytes state_bytes(const struct tn_weights *weights,
                                         const struct tn_layer *layer,
                                         const struct tn_state_input *input)
{
    const size_t block = tn_kvcache_of(&layer->dims, input->kv).layer_bytes;
    const uint32_t window = layer->spec->window;
    if (window == 0 || input->n_ctx <= tn_rings_above(weights, input->n_batch))
        return (struct tn_state_bytes){.block = block};
    return (struct tn_state_bytes){
        .sequence = sizeof(struct ring_header) + block * ring_blocks(window, input->n_batch),
        .checkpoint = sizeof(struct ring_header) + block * kept_blocks(window)};
}

/* ---- rows ---- */

static uint32_t n_blocks_of(const struct tn_state_layer *l)
{
    return ring_blocks(l->layer->spec->window, l->input.n_batch);
}

unsigned char *tn_ring_block(const struct tn_state_layer *l, void *state, uint32_t i)
{
    const uint32_t n = n_blocks_of(l);
    const size_t block = (l->bytes.sequence - sizeof(struct ring_header)) / n;
    return (unsigned char *)state + sizeof(struct ring_header) + block * (i % n);
}

/* The first position left in a ring whose last one was `end` - 1. */
static uint32_t first_left(const struct tn_state_layer *l, uint32_t end)
{
    const uint32_t n = n_blocks_of(l) * TN_KV_BLOCK;
    return end > n ? end - n : 0;
}

void tn_ring_append(const struct tn_state_layer *l, void *state, uint32_t position,
                    uint32_t n_rows)
{
    struct ring_header *h = state;
    assert(h->end == position);
    h->end = position + n_rows;
    h->begin = TN_MAX(h->begin, first_left(l, h->end));
}

/* Copies the rows of the positions of *h from the ring to a checkpoint, or back. */
static void copy_rows(const struct tn_state_layer *l, unsigned char *kept, void *state,
                      const struct ring_header *h, bool to_kept)
{
    const struct tn_kvcache kv = tn_kvcache_of(&l->layer->dims, l->input.kv);
    for (uint32_t position = h->begin; position < h->end; position++) {
        const uint32_t row = position - h->begin;
        unsigned char *block = kept + sizeof *h + row / TN_KV_BLOCK * kv.layer_bytes;
        unsigned char *in_ring = tn_ring_block(l, state, position / TN_KV_BLOCK);
        for (uint32_t g = 0; g < kv.n_kv_head; g++) {
            const struct tn_kv_rows a = tn_kvcache_rows(&kv, block, g);
            const struct tn_kv_rows b = tn_kvcache_rows(&kv, in_ring, g);
            if (to_kept)
                tn_kvcache_copy_row(&kv, &a, row % TN_KV_BLOCK, &b, position % TN_KV_BLOCK);
            else
                tn_kvcache_copy_row(&kv, &b, position % TN_KV_BLOCK, &a, row % TN_KV_BLOCK);
        }
    }
}

/* ---- the contract (model/state.h) ---- */

static uint32_t reach(const struct tn_state_layer *l, const void *state, uint32_t position)
{
    const struct ring_header *h = state;
    position = TN_MIN(position, h->end);
    return tn_first_seen(l->layer, position) >= h->begin ? position : 0;
}

static void truncate_to(const struct tn_state_layer *l, void *state, uint32_t position)
{
    struct ring_header *h = state;
    assert(position == reach(l, state, position));
    (void)l;
    h->end = position;
    if (position == 0)
        h->begin = 0;
}

static void checkpoint(const struct tn_state_layer *l, const void *state, uint32_t position,
                       void *kept)
{
    struct ring_header *h = kept;
    assert(position == reach(l, state, position));
    memset(kept, 0, l->bytes.checkpoint);
    *h = (struct ring_header){.begin = tn_first_seen(l->layer, position), .end = position};
    copy_rows(l, kept, (void *)(uintptr_t)state, h, true);
}

static void restore(const struct tn_state_layer *l, void *state, const void *kept)
{
    const struct ring_header *h = kept;
    memcpy(state, h, sizeof *h);
    copy_rows(l, (void *)(uintptr_t)kept, state, h, false);
}

static bool is_sound(const struct tn_state_layer *l, const void *kept, uint32_t position)
{
    const struct ring_header expected = {.begin = tn_first_seen(l->layer, position),
                                         .end = position};
    return memcmp(kept, &expected, sizeof expected) == 0;
}

static void pretend(const struct tn_state_layer *l, void *state, uint32_t position)
{
    *(struct ring_header *)state =
        (struct ring_header){.begin = first_left(l, position), .end = position};
}

const struct tn_state_ops tn_attention_state_ops = {
    .bytes = state_bytes,
    .reach = reach,
    .truncate = truncate_to,
    .checkpoint = checkpoint,
    .restore = restore,
    .is_sound = is_sound,
    .pretend = pretend,
};
