/* SPDX-License-Identifier: MIT
 *
 * Reference counting of cache blocks, and growth of the pool.
 *
 * A freed block stays committed and is reused first.
 */
#include "engine/cache_pool.h"

#include "plat/plat.h"

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

unsigned char *tn_cache_pool_take(struct tn_cache_pool *pool)
{
    uint32_t i = pool->n_ready;
    if (pool->n_free > 0) {
        i = pool->free[--pool->n_free];
    } else {
        if (i == pool->n_blocks ||
            (pool->may_grow && !pool->may_grow(pool->arg, pool->block_bytes)) ||
            !tn_pages_commit(pool->base + i * pool->block_bytes, pool->block_bytes))
            return NULL;
        pool->n_ready++;
    }
    pool->refs[i] = 1;
    return pool->base + i * pool->block_bytes;
}

void tn_cache_pool_hold(struct tn_cache_pool *pool, const unsigned char *block)
{
    pool->refs[number_of(pool, block)]++;
}

void tn_cache_pool_release(struct tn_cache_pool *pool, const unsigned char *block)
{
    const uint32_t i = number_of(pool, block);
    if (--pool->refs[i] == 0)
        pool->free[pool->n_free++] = i;
}

bool tn_cache_pool_is_shared(const struct tn_cache_pool *pool, const unsigned char *block)
{
    return pool->refs[number_of(pool, block)] > 1;
}
