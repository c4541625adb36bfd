/* SPDX-License-Identifier: MIT
 *
 * A pool of blocks of one size: of the key/value cache, and of checkpoints.
 *
 * Address space is reserved for all of them; a block is made usable when it is first taken, and
 * belongs to everybody who holds it.  Nothing here allocates: lists are in scratch memory
 * (model/workspace_size.h), and only pages are committed.
 */
#ifndef TN_CACHE_POOL_H
#define TN_CACHE_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tn_cache_pool {
    unsigned char *base; /* address space */
    size_t block_bytes;
    uint32_t n_blocks; /* of the address space */
    uint32_t n_ready;  /* usable: the first n_ready */
    uint32_t *refs;    /* [n_blocks] how many hold it */
    uint32_t *free;    /* [n_blocks] usable ones that nobody holds, the last is taken first */
    uint32_t n_free;
    /* Asked before a block more becomes usable; NULL: always. */
    bool (*may_grow)(void *arg, uint64_t n_bytes);
    void *arg;
};

/* Reserves address space; false when there is none. */
bool tn_cache_pool_init(struct tn_cache_pool *pool, size_t block_bytes, uint32_t n_blocks);
void tn_cache_pool_fini(struct tn_cache_pool *pool);

/* A block that nobody holds, now held once; NULL when all are held or memory is short. */
unsigned char *tn_cache_pool_take(struct tn_cache_pool *pool);
/* Holds it once more, or once less. */
void tn_cache_pool_hold(struct tn_cache_pool *pool, const unsigned char *block);
void tn_cache_pool_leave(struct tn_cache_pool *pool, const unsigned char *block);
bool tn_cache_pool_is_shared(const struct tn_cache_pool *pool, const unsigned char *block);

#endif
