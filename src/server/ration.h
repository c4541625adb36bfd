/* SPDX-License-Identifier: MIT
 *
 * Memory that requests may hold: large bodies, their JSON, prompts and answers in work.  It is a
 * part of the plan; a request that finds too little of it left is told to come again.
 */
#ifndef TN_RATION_H
#define TN_RATION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct tn_ration {
    size_t n_bytes; /* all of it */
    _Atomic size_t n_held;
};

/* Any thread.  false: nothing was taken. */
static inline bool tn_ration_take(struct tn_ration *ration, size_t n_bytes)
{
    size_t n_held = atomic_load(&ration->n_held);
    do {
        if (n_bytes > ration->n_bytes - n_held)
            return false;
    } while (!atomic_compare_exchange_weak(&ration->n_held, &n_held, n_held + n_bytes));
    return true;
}

static inline void tn_ration_give(struct tn_ration *ration, size_t n_bytes)
{
    atomic_fetch_sub(&ration->n_held, n_bytes);
}

#endif
