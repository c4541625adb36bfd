/* SPDX-License-Identifier: MIT
 *
 * Blocks of the key/value cache, and the sequences that hold them.
 *
 *   pool      address space for all blocks; a block is made usable when it is first taken, and
 *             belongs to as many sequences as have it in their lists
 *   sequence  the ids at its positions, and its list of blocks
 *
 * Blocks that two sequences have in common lie in memory once.  One that others hold too is copied
 * before a sequence writes into it.  Nothing here allocates: lists lie in scratch memory
 * (model/memplan.h), and only pages are committed.
 */
#ifndef TN_CACHE_POOL_H
#define TN_CACHE_POOL_H

#include <stdbool.h>

#include "model/kvcache.h"
#include "model/memplan.h"

struct tn_cache_pool {
    unsigned char *base; /* address space */
    size_t block_bytes;
    uint32_t n_blocks; /* of the address space */
    uint32_t n_ready;  /* usable: the first n_ready */
    uint32_t *refs;    /* [n_blocks] sequences that hold it */
    uint32_t *free;    /* [n_blocks] usable ones that nobody holds, the last is taken first */
    uint32_t n_free;
    /* Asked before a block more becomes usable; NULL: always. */
    bool (*may_grow)(void *arg, uint64_t n_bytes);
    void *arg;
};

/* Reserves address space; false when there is none. */
bool tn_cache_pool_init(struct tn_cache_pool *pool, size_t block_bytes, uint32_t n_blocks);
void tn_cache_pool_fini(struct tn_cache_pool *pool);

struct tn_sequence {
    struct tn_cache_pool *pool;
    uint32_t *ids;          /* [n_past] of those that the cache holds */
    unsigned char **blocks; /* [n_blocks] */
    uint32_t n_blocks;
    uint32_t n_past;
};

/* Makes positions [n_past, n) writable. False when memory is short: what is there stays. */
bool tn_sequence_grow(struct tn_sequence *s, uint32_t n);
/* Keeps positions below n_keep; s->n_past says what is left.  All of them while every layer is
 * attention; a layer with a state that cannot be taken back to n_keep would leave fewer, so callers
 * go on from n_past. */
void tn_sequence_truncate(struct tn_sequence *s, uint32_t n_keep);
/* Becomes the first n positions of another sequence, in the same memory but for a block that they
 * fill in part: that is copied.  Where memory for it is short, s has less than n. */
void tn_sequence_share(struct tn_sequence *s, const struct tn_sequence *from, uint32_t n);
/* Positions that hold the beginning of ids [n]. */
uint32_t tn_sequence_common(const struct tn_sequence *s, const uint32_t *ids, size_t n);

#endif
