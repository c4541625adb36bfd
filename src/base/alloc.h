/* SPDX-License-Identifier: MIT
 *
 * The only access to the heap.  All allocations of the project go through these functions, so that
 * tests can make the n-th one fail, count them, and forbid them between the first and the last
 * token (tests/api/test_session.c).
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

/* Copies of a C string, and of n bytes as one; NULL on memory shortage. */
char *tn_copy_text(const char *text);
char *tn_copy_bytes(const char *bytes, size_t n);

/* A growing array: returns `items` if *capacity items of item_bytes are more than the n in use,
 * else a reallocated array with twice the capacity, and updates *capacity.  NULL on memory
 * shortage: `items` and *capacity are unchanged. */
void *tn_grow(void *items, size_t item_bytes, size_t n, size_t *capacity);

/* Bytes allocated by this thread so far; freed bytes are not subtracted.  The difference over a
 * stretch of code that frees nothing is the memory that the code holds. */
uint64_t tn_alloc_taken(void);

/* For tests: called before each allocation, which fails if it returns 0.  NULL (the default) allows
 * all.  Not thread-safe against concurrent allocations. */
void tn_alloc_set_hook(int (*allow)(void *arg, size_t n_bytes), void *arg);

#endif
