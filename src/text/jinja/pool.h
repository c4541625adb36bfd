/* SPDX-License-Identifier: MIT
 *
 * A bounded arena for a parsed template or for one rendering.
 *
 * It grows by blocks up to a limit, so a hostile template costs a bounded amount of memory, and no
 * code has to free single values.
 */
#ifndef TN_JINJA_POOL_H
#define TN_JINJA_POOL_H

#include <stdbool.h>
#include <stddef.h>

struct tn_pool_block;

/* Zero-initialise except for max_bytes; tn_pool_fini frees everything. */
struct tn_pool {
    struct tn_pool_block *blocks; /* newest first */
    size_t n_bytes;               /* allocated so far */
    size_t max_bytes;
    bool is_full; /* a request exceeded max_bytes (as opposed to: the system is out of memory) */
    bool is_deep; /* set by value.c: a value nests too deeply */
};

/* Returns n_bytes zeroed bytes, aligned for any type; NULL: beyond max_bytes, or out of memory. */
void *tn_pool_take(struct tn_pool *pool, size_t n_bytes);
/* The n items, or a copy of them with room for more if *capacity is n.  NULL: as tn_pool_take. */
void *tn_pool_grow(struct tn_pool *pool, void *items, size_t item_bytes, size_t n,
                   size_t *capacity);
void tn_pool_fini(struct tn_pool *pool);

#endif
