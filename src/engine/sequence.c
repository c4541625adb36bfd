/* SPDX-License-Identifier: MIT
 *
 * Grows, rolls back and shares sequences.
 *
 * Attention layers can roll back to any position; recurrent layers only to a checkpoint, or to
 * where they are.
 */
#include "engine/sequence.h"

#include <assert.h>
#include <string.h>

#include "base/bits.h"

/* ---- blocks ---- */

/* Makes the block of position n_past, if there is one, exclusive to this sequence. */
static bool own_last_block(struct tn_sequence *s)
{
    const uint32_t i = s->n_past / TN_KV_BLOCK;
    if (i >= s->n_blocks || !tn_cache_pool_is_shared(s->pool, s->blocks[i]))
        return true;
    unsigned char *own = tn_cache_pool_take(s->pool);
    if (!own)
        return false;
    memcpy(own, s->blocks[i], s->pool->block_bytes);
    tn_cache_pool_release(s->pool, s->blocks[i]);
    s->blocks[i] = own;
    return true;
}

bool tn_sequence_grow(struct tn_sequence *s, uint32_t n)
{
    if (!own_last_block(s))
        return false;
    while (s->n_blocks < tn_div_ceil_u32(n, TN_KV_BLOCK)) {
        unsigned char *block = tn_cache_pool_take(s->pool);
        if (!block)
            return false;
        s->blocks[s->n_blocks++] = block;
    }
    return true;
}

/* ---- rollback ---- */

/* A reachable position and its source: a checkpoint, or (NULL) the current state. */
struct rollback {
    uint32_t position;
    struct tn_checkpoint *checkpoint;
};

/* The rollback to the last reachable position up to n. */
static struct rollback find_rollback(const struct tn_sequence *s, uint32_t n)
{
    struct rollback best = {TN_MIN(s->n_past, n), NULL};
    if (!s->state)
        return best;
    const uint32_t want = best.position;
    best.position = tn_state_reach(s->states, s->state, want);
    for (uint32_t i = 0; i < s->checkpoints->pool.n_blocks && best.position < want; i++) {
        struct tn_checkpoint *one = &s->checkpoints->list[i];
        if (!tn_checkpoint_is_of(one, s->number))
            continue;
        const uint32_t position = tn_state_kept_reach(s->states, one->kept, want);
        if (position > best.position)
            best = (struct rollback){position, one};
    }
    return best;
}

/* Sets the state of s to that of `from` at the rollback's position. */
static void apply_rollback(struct tn_sequence *s, const struct tn_sequence *from,
                           struct rollback rollback)
{
    if (!s->state)
        return;
    if (rollback.checkpoint) {
        tn_state_restore(s->states, s->state, rollback.checkpoint->kept);
        rollback.checkpoint->last_used = ++s->checkpoints->n_uses;
    } else if (s != from) {
        memcpy(s->state, from->state, s->states->bytes.sequence);
    }
    tn_state_truncate(s->states, s->state, rollback.position);
}

uint32_t tn_sequence_reach(const struct tn_sequence *s, uint32_t n)
{
    return find_rollback(s, n).position;
}

uint32_t tn_sequence_truncate(struct tn_sequence *s, uint32_t n)
{
    const struct rollback rollback = find_rollback(s, n);
    apply_rollback(s, s, rollback);
    s->n_past = rollback.position;
    if (s->state)
        tn_checkpoints_drop(s->checkpoints, s->number, s->n_past);
    while (s->n_blocks > tn_div_ceil_u32(s->n_past, TN_KV_BLOCK))
        tn_cache_pool_release(s->pool, s->blocks[--s->n_blocks]);
    return s->n_past;
}

/* ---- sharing ---- */

uint32_t tn_sequence_share(struct tn_sequence *s, const struct tn_sequence *from, uint32_t n)
{
    assert(n <= from->n_past && s != from);
    const struct rollback rollback = find_rollback(from, n);
    const uint32_t n_blocks = tn_div_ceil_u32(rollback.position, TN_KV_BLOCK);
    for (uint32_t i = 0; i < n_blocks; i++)
        tn_cache_pool_hold(s->pool, from->blocks[i]);
    (void)tn_sequence_truncate(s, 0);
    memcpy(s->blocks, from->blocks, n_blocks * sizeof *s->blocks);
    memcpy(s->ids, from->ids, rollback.position * sizeof *s->ids);
    s->n_blocks = n_blocks;
    s->n_past = rollback.position;
    apply_rollback(s, from, rollback);
    if (s->state)
        tn_checkpoints_share(s->checkpoints, s->number, from->number, s->n_past);
    /* Copied now, so that sharing never causes another sequence to run out of memory later. */
    if (!own_last_block(s))
        (void)tn_sequence_truncate(s, s->n_past - s->n_past % TN_KV_BLOCK);
    return s->n_past;
}

uint32_t tn_sequence_common(const struct tn_sequence *s, const uint32_t *ids, size_t n)
{
    uint32_t keep = 0, limit = (uint32_t)TN_MIN((size_t)s->n_past, n);
    while (keep < limit && s->ids[keep] == ids[keep])
        keep++;
    return keep;
}

/* ---- checkpoints ---- */

bool tn_sequence_checkpoint(struct tn_sequence *s, uint32_t n, enum tn_mark mark)
{
    assert(s->state && n <= s->n_past);
    const uint32_t position = tn_state_reach(s->states, s->state, n);
    struct tn_checkpoint *one = tn_checkpoints_find(s->checkpoints, s->number, position);
    if (position == 0)
        return false;
    if (!one) {
        one = tn_checkpoints_add(s->checkpoints, s->number, position, mark);
        if (!one)
            return false;
        tn_state_checkpoint(s->states, s->state, position, one->kept);
    }
    tn_checkpoints_mark(s->checkpoints, one, s->number, mark);
    return true;
}

void tn_sequence_checkpoint_spaced(struct tn_sequence *s)
{
    uint32_t last = 0;
    for (uint32_t i = 0; s->state && i < s->checkpoints->pool.n_blocks; i++)
        if (tn_checkpoint_is_of(&s->checkpoints->list[i], s->number))
            last = TN_MAX(last, s->checkpoints->list[i].position);
    if (s->state && s->n_past >= last + TN_CHECKPOINT_SPACING)
        (void)tn_sequence_checkpoint(s, s->n_past, TN_MARK_SPACED);
}

uint32_t tn_sequence_marked(const struct tn_sequence *s, enum tn_mark mark)
{
    for (uint32_t i = 0; s->state && i < s->checkpoints->pool.n_blocks; i++)
        if (tn_checkpoint_is_marked(&s->checkpoints->list[i], s->number, mark))
            return s->checkpoints->list[i].position;
    return UINT32_MAX;
}
