/* SPDX-License-Identifier: MIT
 *
 * Taking, sharing, copying and leaving blocks.
 */
#include "run/cache_pool.h"

#include <assert.h>
#include <string.h>

#include "base/bits.h"
#include "plat/plat.h"

/* ---- the pool ---- */

bool tn_cache_pool_init(struct tn_cache_pool *pool, size_t block_bytes, uint32_t n_blocks)
{
    pool->block_bytes = block_bytes;
    pool->n_blocks = n_blocks;
    pool->base = tn_pages_reserve(pool->block_bytes * n_blocks);
    if (pool->base)
        tn_pages_advise_huge(pool->base, pool->block_bytes * n_blocks);
    return pool->base != NULL;
}

void tn_cache_pool_fini(struct tn_cache_pool *pool)
{
    if (pool->base)
        tn_pages_release(pool->base, pool->block_bytes * pool->n_blocks);
}

static uint32_t number_of(const struct tn_cache_pool *pool, const unsigned char *block)
{
    return (uint32_t)((size_t)(block - pool->base) / pool->block_bytes);
}

/* NULL when memory is short. */
static unsigned char *take_block(struct tn_cache_pool *pool)
{
    uint32_t i = pool->n_ready;
    if (pool->n_free > 0) {
        i = pool->free[--pool->n_free];
    } else {
        assert(i < pool->n_blocks && "there are blocks for all positions of all sequences");
        if ((pool->may_grow && !pool->may_grow(pool->arg, pool->block_bytes)) ||
            !tn_pages_commit(pool->base + i * pool->block_bytes, pool->block_bytes))
            return NULL;
        pool->n_ready++;
    }
    pool->refs[i] = 1;
    return pool->base + i * pool->block_bytes;
}

static void leave_block(struct tn_cache_pool *pool, const unsigned char *block)
{
    const uint32_t i = number_of(pool, block);
    if (--pool->refs[i] == 0)
        pool->free[pool->n_free++] = i;
}

/* ---- sequences ---- */

/* The block that position n_past lies in belongs to this sequence alone, if there is one. */
static bool own_last_block(struct tn_sequence *s)
{
    const uint32_t i = s->n_past / TN_KV_BLOCK;
    if (i >= s->n_blocks || s->pool->refs[number_of(s->pool, s->blocks[i])] == 1)
        return true;
    unsigned char *own = take_block(s->pool);
    if (!own)
        return false;
    memcpy(own, s->blocks[i], s->pool->block_bytes);
    leave_block(s->pool, s->blocks[i]);
    s->blocks[i] = own;
    return true;
}

bool tn_sequence_grow(struct tn_sequence *s, uint32_t n)
{
    if (!own_last_block(s))
        return false;
    while (s->n_blocks < tn_div_ceil_u32(n, TN_KV_BLOCK)) {
        unsigned char *block = take_block(s->pool);
        if (!block)
            return false;
        s->blocks[s->n_blocks++] = block;
    }
    return true;
}

void tn_sequence_truncate(struct tn_sequence *s, uint32_t n_keep)
{
    s->n_past = TN_MIN(s->n_past, n_keep);
    while (s->n_blocks > tn_div_ceil_u32(s->n_past, TN_KV_BLOCK))
        leave_block(s->pool, s->blocks[--s->n_blocks]);
}

void tn_sequence_share(struct tn_sequence *s, const struct tn_sequence *from, uint32_t n)
{
    assert(n <= from->n_past && s != from);
    const uint32_t n_blocks = tn_div_ceil_u32(n, TN_KV_BLOCK);
    for (uint32_t i = 0; i < n_blocks; i++)
        s->pool->refs[number_of(s->pool, from->blocks[i])]++;
    tn_sequence_truncate(s, 0);
    memcpy(s->blocks, from->blocks, n_blocks * sizeof *s->blocks);
    memcpy(s->ids, from->ids, n * sizeof *s->ids);
    s->n_blocks = n_blocks;
    s->n_past = n;
    /* At once, so that nobody runs short of memory because others share with it. */
    if (!own_last_block(s))
        tn_sequence_truncate(s, n - n % TN_KV_BLOCK);
}

uint32_t tn_sequence_common(const struct tn_sequence *s, const uint32_t *ids, size_t n)
{
    uint32_t keep = 0, limit = (uint32_t)TN_MIN((size_t)s->n_past, n);
    while (keep < limit && s->ids[keep] == ids[keep])
        keep++;
    return keep;
}
