/* SPDX-License-Identifier: MIT
 *
 * A bounded arena: memory that is freed all at once.
 *
 * Blocks grow with the demand; large requests get a block each.
 */
#include "text/jinja/pool.h"

#include <stdalign.h>
#include <string.h>

#include "base/alloc.h"

#define BLOCK_BYTES ((size_t)16 << 10)

struct tn_pool_block {
    struct tn_pool_block *next;
    size_t used;
    size_t capacity;
    alignas(max_align_t) char bytes[];
};

static struct tn_pool_block *add_block(struct tn_pool *pool, size_t n_bytes)
{
    size_t capacity = n_bytes > BLOCK_BYTES ? n_bytes : BLOCK_BYTES;
    if (capacity > pool->max_bytes - pool->n_bytes) {
        pool->is_full = true;
        return NULL;
    }
    struct tn_pool_block *block = tn_alloc(sizeof *block + capacity);
    if (!block)
        return NULL;
    *block = (struct tn_pool_block){.next = pool->blocks, .capacity = capacity};
    pool->blocks = block;
    pool->n_bytes += capacity;
    return block;
}

void *tn_pool_take(struct tn_pool *pool, size_t n_bytes)
{
    const size_t align = alignof(max_align_t);
    if (n_bytes > pool->max_bytes) {
        pool->is_full = true;
        return NULL;
    }
    n_bytes = (n_bytes + align - 1) / align * align;
    struct tn_pool_block *block = pool->blocks;
    if (!block || block->capacity - block->used < n_bytes)
        block = add_block(pool, n_bytes);
    if (!block)
        return NULL;
    void *p = block->bytes + block->used;
    block->used += n_bytes;
    memset(p, 0, n_bytes);
    return p;
}

void *tn_pool_grow(struct tn_pool *pool, void *items, size_t item_bytes, size_t n,
                   size_t *capacity)
{
    if (n < *capacity)
        return items;
    const size_t larger = *capacity ? 2 * *capacity : 4;
    void *grown = tn_pool_take(pool, larger * item_bytes);
    if (!grown)
        return NULL;
    if (n)
        memcpy(grown, items, n * item_bytes);
    *capacity = larger;
    return grown;
}

void tn_pool_fini(struct tn_pool *pool)
{
    while (pool->blocks) {
        struct tn_pool_block *next = pool->blocks->next;
        tn_free(pool->blocks);
        pool->blocks = next;
    }
    pool->n_bytes = 0;
}
