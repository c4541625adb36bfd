/* SPDX-License-Identifier: MIT
 *
 * The heap of alloc.h: the allocator of the C library, and the hook through which a test counts
 * allocations or makes one fail.
 */
#include "base/alloc.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
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

static _Thread_local uint64_t n_taken;

static void *count(void *p, size_t n_bytes)
{
    if (p)
        n_taken += n_bytes;
    return p;
}

uint64_t tn_alloc_taken(void)
{
    return n_taken;
}

void *tn_alloc(size_t n_bytes)
{
    return allowed(n_bytes) ? count(malloc(n_bytes ? n_bytes : 1), n_bytes) : NULL;
}

void *tn_alloc_zeroed(size_t n_items, size_t item_bytes)
{
    if (item_bytes && n_items > SIZE_MAX / item_bytes)
        return NULL;
    size_t n_bytes = n_items * item_bytes;
    return allowed(n_bytes) ? count(calloc(1, n_bytes ? n_bytes : 1), n_bytes) : NULL;
}

void *tn_realloc(void *p, size_t n_bytes)
{
    return allowed(n_bytes) ? count(realloc(p, n_bytes ? n_bytes : 1), n_bytes) : NULL;
}

char *tn_copy_bytes(const char *bytes, size_t n)
{
    char *copy = tn_alloc(n + 1);
    if (!copy)
        return NULL;
    if (n)
        memcpy(copy, bytes, n);
    copy[n] = '\0';
    return copy;
}

char *tn_copy_text(const char *text)
{
    return tn_copy_bytes(text, strlen(text));
}

void *tn_grow(void *items, size_t item_bytes, size_t n, size_t *capacity)
{
    if (n < *capacity)
        return items;
    if (*capacity > SIZE_MAX / 2 / item_bytes)
        return NULL;
    const size_t larger = *capacity ? 2 * *capacity : 16;
    void *grown = tn_realloc(items, larger * item_bytes);
    if (grown)
        *capacity = larger;
    return grown;
}

void *tn_alloc_aligned(size_t n_bytes, size_t align)
{
    if (!allowed(n_bytes) || n_bytes > SIZE_MAX - align)
        return NULL;
#if defined(_WIN32)
    return count(_aligned_malloc(n_bytes ? n_bytes : 1, align), n_bytes);
#else
    void *p = NULL;
    return posix_memalign(&p, align, n_bytes ? n_bytes : 1) == 0 ? count(p, n_bytes) : NULL;
#endif
}

void tn_free(void *p)
{
    free(p);
}

void tn_free_aligned(void *p)
{
#if defined(_WIN32)
    _aligned_free(p);
#else
    free(p);
#endif
}
