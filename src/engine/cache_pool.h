/* SPDX-License-Identifier: MIT
 *
 * A pool of reference-counted blocks of one size, for the key/value cache and for checkpoints.
 *
 * Address space is reserved for all blocks; a block is committed when it is first taken.  Nothing
 * here allocates: lists are in scratch memory (model/workspace_size.h), and only pages are
 * committed.
 */
#ifndef TN_CACHE_POOL_H
#define TN_CACHE_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tn_cache_pool {
    unsigned char *base; /* address space */
    size_t block_bytes;
    uint32_t n_blocks; /* capacity of the address space */
    uint32_t n_ready;  /* committed blocks: the first n_ready */
    uint32_t *refs;    /* [n_blocks] reference counts */
    uint32_t *free;    /* [n_blocks] stack of committed blocks with count 0 */
    uint32_t n_free;
    /* Called before another block is committed; NULL: always allowed. */
    bool (*may_grow)(void *arg, uint64_t n_bytes);
    void *arg;
};

/* Reserves address space.  false: there is not enough. */
bool tn_cache_pool_init(struct tn_cache_pool *pool, size_t block_bytes, uint32_t n_blocks);
void tn_cache_pool_fini(struct tn_cache_pool *pool);

/* A free block, with count 1; NULL: all are in use, or out of memory. */
unsigned char *tn_cache_pool_take(struct tn_cache_pool *pool);
/* Increments or decrements the reference count. */
void tn_cache_pool_hold(struct tn_cache_pool *pool, const unsigned char *block);
void tn_cache_pool_release(struct tn_cache_pool *pool, const unsigned char *block);
bool tn_cache_pool_is_shared(const struct tn_cache_pool *pool, const unsigned char *block);

#endif
