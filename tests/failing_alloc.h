/* SPDX-License-Identifier: MIT
 *
 * Makes allocations of tern (base/alloc.h) fail, for tests of out-of-memory handling.
 *
 * Other threads must not allocate meanwhile.
 */
#ifndef TN_FAILING_ALLOC_H
#define TN_FAILING_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/alloc.h"

static struct {
    size_t n_good; /* allocations that still succeed */
    size_t n_asked; /* allocations after them */
    bool fails_once;
} failing_alloc;

static int failing_alloc_hook(void *arg, size_t n_bytes)
{
    (void)arg, (void)n_bytes;
    if (failing_alloc.n_good > 0) {
        failing_alloc.n_good--;
        return 1;
    }
    return failing_alloc.n_asked++ > 0 && failing_alloc.fails_once;
}

static inline void failing_alloc_arm(size_t n_good, bool fails_once)
{
    failing_alloc.n_good = n_good;
    failing_alloc.n_asked = 0;
    failing_alloc.fails_once = fails_once;
    tn_alloc_set_hook(failing_alloc_hook, NULL);
}

/* The next n_good allocations succeed, all later ones fail. */
static inline void fail_alloc_after(size_t n_good)
{
    failing_alloc_arm(n_good, false);
}

/* The next n_good allocations succeed, the next one fails, all later ones succeed. */
static inline void fail_alloc_once_after(size_t n_good)
{
    failing_alloc_arm(n_good, true);
}

/* Ends the failures; true: one has occurred. */
static inline bool fail_alloc_stop(void)
{
    tn_alloc_set_hook(NULL, NULL);
    return failing_alloc.n_asked > 0;
}

#endif
