/* SPDX-License-Identifier: MIT
 *
 * The bump allocator of arena.h.  Every block begins at a multiple of 64 bytes.  A request beyond
 * the capacity is an error of the memory plan, not of the data, and asserts.
 */
#include "base/arena.h"

#include <assert.h>

#include "base/bits.h"

void *tn_arena_take(struct tn_arena *arena, size_t n_bytes)
{
    size_t start = arena->used;
    arena->used = start + tn_align_up(n_bytes, 64);
    if (!arena->base)
        return NULL;
    assert(arena->used <= arena->capacity && "workspace_size counted fewer bytes than are used");
    return arena->base + start;
}
