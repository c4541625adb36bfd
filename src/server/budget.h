/* SPDX-License-Identifier: MIT
 *
 * The memory budget of requests: large bodies, their JSON, prompts and answers in progress.
 *
 * Its size is part of the plan; a request for which too little is left gets 503 and may be
 * repeated.
 */
#ifndef TN_BUDGET_H
#define TN_BUDGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct tn_budget {
    size_t n_bytes; /* total */
    _Atomic size_t n_held;
};

/* Any thread.  false: not enough is left, and nothing was taken. */
static inline bool tn_budget_take(struct tn_budget *budget, size_t n_bytes)
{
    size_t n_held = atomic_load(&budget->n_held);
    do {
        if (n_bytes > budget->n_bytes - n_held)
            return false;
    } while (!atomic_compare_exchange_weak(&budget->n_held, &n_held, n_held + n_bytes));
    return true;
}

static inline void tn_budget_release(struct tn_budget *budget, size_t n_bytes)
{
    atomic_fetch_sub(&budget->n_held, n_bytes);
}

#endif
