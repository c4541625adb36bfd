/* SPDX-License-Identifier: MIT
 *
 * Heap allocation with a test hook.
 */
#include "base/alloc.h"

#include <stdint.h>
#include <stdlib.h>
#if defined(_WIN32)
#include <malloc.h>
#endif

static int (*allow_hook)(void *arg, size_t n_bytes);
static void *allow_arg;

void tn_alloc_set_hook(int (*allow)(void *arg, size_t n_bytes), void *arg)
{
    allow_hook = allow;
    allow_arg = arg;
}

static int allowed(size_t n_bytes)
{
    return !allow_hook || allow_hook(allow_arg, n_bytes);
}

void *tn_alloc(size_t n_bytes)
{
    return allowed(n_bytes) ? malloc(n_bytes ? n_bytes : 1) : NULL;
}

void *tn_alloc_zeroed(size_t n_items, size_t item_bytes)
{
    if (item_bytes && n_items > SIZE_MAX / item_bytes)
        return NULL;
    size_t n_bytes = n_items * item_bytes;
    return allowed(n_bytes) ? calloc(1, n_bytes ? n_bytes : 1) : NULL;
}

void *tn_realloc(void *p, size_t n_bytes)
{
    return allowed(n_bytes) ? realloc(p, n_bytes ? n_bytes : 1) : NULL;
}

void *tn_alloc_aligned(size_t n_bytes, size_t align)
{
    if (!allowed(n_bytes) || n_bytes > SIZE_MAX - align)
        return NULL;
#if defined(_WIN32)
    return _aligned_malloc(n_bytes ? n_bytes : 1, align);
#else
    void *p = NULL;
    return posix_memalign(&p, align, n_bytes ? n_bytes : 1) == 0 ? p : NULL;
#endif
}

void tn_free(void *p)
{
    free(p);
}

static _Thread_local bool noted;

void *tn_alloc_noted(size_t n_bytes)
{
    void *p = tn_alloc(n_bytes);
    if (!p)
        noted = true;
    return p;
}

bool tn_alloc_take_note(void)
{
    bool was_noted = noted;
    noted = false;
    return was_noted;
}

void tn_free_aligned(void *p)
{
#if defined(_WIN32)
    _aligned_free(p);
#else
    free(p);
#endif
}
