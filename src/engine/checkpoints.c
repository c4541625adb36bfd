/* SPDX-License-Identifier: MIT
 *
 * Adds, marks and evicts checkpoints.
 *
 * There are at most TN_MAX_CHECKPOINTS, so every lookup is a linear search.
 */
#include "engine/checkpoints.h"

#include <string.h>

#include "base/compiler.h"

static uint64_t bit(uint32_t i)
{
    return (uint64_t)1 << i;
}

static uint64_t holders(const struct tn_checkpoint *one)
{
    uint64_t all = 0;
    for (uint32_t mark = 0; mark < TN_N_MARKS; mark++)
        all |= one->of[mark];
    return all;
}

bool tn_checkpoint_is_of(const struct tn_checkpoint *one, uint32_t i)
{
    return holders(one) & bit(i);
}

bool tn_checkpoint_is_marked(const struct tn_checkpoint *one, uint32_t i, enum tn_mark mark)
{
    return one->of[mark] & bit(i);
}

struct tn_checkpoint *tn_checkpoints_find(struct tn_checkpoints *c, uint32_t i, uint32_t position)
{
    for (uint32_t k = 0; k < c->pool.n_blocks; k++)
        if (c->list[k].position == position && tn_checkpoint_is_of(&c->list[k], i))
            return &c->list[k];
    return NULL;
}

/* ---- eviction ---- */

/* The highest mark that any sequence has given it. */
static enum tn_mark importance(const struct tn_checkpoint *one)
{
    uint32_t mark = TN_N_MARKS - 1;
    while (mark > 0 && !one->of[mark])
        mark--;
    return (enum tn_mark)mark;
}

/* Positions to compute again if it were evicted: those since the previous checkpoint of the same
 * sequence. */
static uint32_t loss(const struct tn_checkpoints *c, const struct tn_checkpoint *one)
{
    uint32_t before = 0;
    for (uint32_t k = 0; k < c->pool.n_blocks; k++)
        if (c->list[k].position < one->position && (holders(&c->list[k]) & holders(one)))
            before = TN_MAX(before, c->list[k].position);
    return one->position - before;
}

static bool is_evicted_before(const struct tn_checkpoints *c, const struct tn_checkpoint *a,
                              const struct tn_checkpoint *b)
{
    if (importance(a) != importance(b))
        return importance(a) < importance(b);
    if (importance(a) == TN_MARK_SPACED && loss(c, a) != loss(c, b))
        return loss(c, a) < loss(c, b);
    return a->last_used < b->last_used;
}

static void free_one(struct tn_checkpoints *c, struct tn_checkpoint *one)
{
    tn_cache_pool_release(&c->pool, one->kept);
    *one = (struct tn_checkpoint){0};
}

static void evict(struct tn_checkpoints *c, enum tn_mark mark)
{
    struct tn_checkpoint *first = NULL;
    for (uint32_t k = 0; k < c->pool.n_blocks; k++) {
        struct tn_checkpoint *one = &c->list[k];
        if (one->kept && importance(one) <= mark && (!first || is_evicted_before(c, one, first)))
            first = one;
    }
    if (first)
        free_one(c, first);
}

/* ---- adding, marking ---- */

struct tn_checkpoint *tn_checkpoints_add(struct tn_checkpoints *c, uint32_t i, uint32_t position,
                                         enum tn_mark mark)
{
    unsigned char *kept = tn_cache_pool_take(&c->pool);
    if (!kept) {
        evict(c, mark);
        kept = c->pool.n_free > 0 ? tn_cache_pool_take(&c->pool) : NULL;
    }
    if (!kept)
        return NULL;
    struct tn_checkpoint *one = c->list;
    while (one->kept)
        one++;
    *one = (struct tn_checkpoint){.kept = kept, .position = position, .last_used = ++c->n_uses};
    one->of[TN_MARK_SPACED] = bit(i);
    return one;
}

void tn_checkpoints_mark(struct tn_checkpoints *c, struct tn_checkpoint *one, uint32_t i,
                         enum tn_mark mark)
{
    for (uint32_t k = 0; k < c->pool.n_blocks && mark != TN_MARK_SPACED; k++)
        if (&c->list[k] != one && tn_checkpoint_is_marked(&c->list[k], i, mark)) {
            c->list[k].of[mark] &= ~bit(i);
            c->list[k].of[TN_MARK_SPACED] |= bit(i);
        }
    one->of[mark] |= bit(i);
    one->last_used = ++c->n_uses;
}

void tn_checkpoints_drop(struct tn_checkpoints *c, uint32_t i, uint32_t position)
{
    for (uint32_t k = 0; k < c->pool.n_blocks; k++) {
        struct tn_checkpoint *one = &c->list[k];
        if (!one->kept || one->position <= position)
            continue;
        for (uint32_t mark = 0; mark < TN_N_MARKS; mark++)
            one->of[mark] &= ~bit(i);
        if (!holders(one))
            free_one(c, one);
    }
}

void tn_checkpoints_share(struct tn_checkpoints *c, uint32_t to, uint32_t from, uint32_t position)
{
    for (uint32_t k = 0; k < c->pool.n_blocks; k++)
        for (uint32_t mark = 0; mark < TN_N_MARKS && c->list[k].position <= position; mark++)
            if (c->list[k].of[mark] & bit(from))
                c->list[k].of[mark] |= bit(to);
}
