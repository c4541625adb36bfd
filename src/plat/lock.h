/* SPDX-License-Identifier: MIT
 *
 * A lock for critical sections of a few instructions, built on tn_wait_on.  The third state means
 * that a thread may be sleeping, so that an uncontended release wakes nobody.
 */
#ifndef TN_LOCK_H
#define TN_LOCK_H

#include <stdatomic.h>
#include <stdint.h>

#include "plat/plat.h"

struct tn_lock {
    _Atomic uint32_t state; /* 0 free, 1 taken, 2 taken and a thread may sleep */
};

static inline void tn_lock_take(struct tn_lock *lock)
{
    uint32_t expected = 0;
    if (atomic_compare_exchange_strong(&lock->state, &expected, 1))
        return;
    while (atomic_exchange(&lock->state, 2) != 0)
        tn_wait_on(&lock->state, 2, 0);
}

static inline void tn_lock_release(struct tn_lock *lock)
{
    if (atomic_exchange(&lock->state, 0) == 2)
        tn_wake_all(&lock->state);
}

#endif
