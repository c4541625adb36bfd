/* SPDX-License-Identifier: MIT
 *
 * Memory that is freed all at once: what a template is parsed into, and what one
 * rendering makes.  Grows by blocks up to a limit, so that a hostile template
 * costs a bounded amount of memory and no code has to free single values.
 */
#ifndef TN_JINJA_POOL_H
#define TN_JINJA_POOL_H

#include <stdbool.h>
#include <stddef.h>

struct tn_pool_block;

/* Zero-initialise except for max_bytes; tn_pool_fini frees everything. */
struct tn_pool {
    struct tn_pool_block *blocks; /* the newest first */
    size_t n_bytes;               /* obtained so far */
    size_t max_bytes;
    bool is_full; /* a request failed because of max_bytes, not for want of memory */
    bool is_deep; /* for value.c: a value was refused because it nests too deeply */
};

/* n_bytes zeroed bytes, aligned for any type; NULL beyond max_bytes or without memory. */
void *tn_pool_take(struct tn_pool *pool, size_t n_bytes);
void tn_pool_fini(struct tn_pool *pool);

#endif
