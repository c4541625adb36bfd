/* SPDX-License-Identifier: MIT
 *
 * A bump allocator over one block of memory whose size is known in advance.
 *
 *   |used...........|free..........................|
 *   base            base + used                    base + capacity
 *
 * Does not own the block and never grows: model/workspace_size.c computes the size with the same
 * sequence of requests (a NULL base only counts).
 */
#ifndef TN_ARENA_H
#define TN_ARENA_H

#include <stddef.h>

struct tn_arena {
    char *base; /* 64-byte aligned, or NULL to count only */
    size_t capacity;
    size_t used;
};

/* Returns n_bytes bytes at a 64-byte boundary; NULL when counting.  Exceeding the capacity is a
 * programming error (the plan and the use disagree) and asserts. */
void *tn_arena_take(struct tn_arena *arena, size_t n_bytes);

#endif
