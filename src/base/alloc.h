/* SPDX-License-Identifier: MIT
 *
 * The only way to the heap.  All allocation of the project goes through these
 * four, so that tests can make the n-th one fail, count them, and forbid them
 * between the first and the last token (tests/api/test_session.c).
 */
#ifndef TN_ALLOC_H
#define TN_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Each returns NULL when memory is short or the size overflows; n_bytes 0 is allowed. */
void *tn_alloc(size_t n_bytes);
void *tn_alloc_zeroed(size_t n_items, size_t item_bytes);
void *tn_realloc(void *p, size_t n_bytes);
/* `align` is a power of two, at least sizeof(void *). Free with tn_free_aligned. */
void *tn_alloc_aligned(size_t n_bytes, size_t align);
void tn_free(void *p);
void tn_free_aligned(void *p);

/* A growing array: returns `items` if *capacity places of item_bytes hold more than the n that are
 * used, else the same in new memory of twice as many places, and writes *capacity. NULL when memory
 * is short: `items` and *capacity are as they were. */
void *tn_grow(void *items, size_t item_bytes, size_t n, size_t *capacity);

/* Bytes that this thread has been given so far; what it freed is not taken off. The difference over
 * a stretch of code that frees nothing is what the code holds. */
uint64_t tn_alloc_taken(void);

/* For tests: called before each allocation; when it returns 0 the allocation fails. NULL (the
 * default) allows all. Not thread-safe against running allocations. */
void tn_alloc_set_hook(int (*allow)(void *arg, size_t n_bytes), void *arg);

#endif
