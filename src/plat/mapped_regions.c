/* SPDX-License-Identifier: MIT
 *
 * The list of mapped regions, by which the fault handlers distinguish a fault in a mapped file from
 * any other.
 */
#include <stdatomic.h>
#include <stdint.h>

#include "plat/plat_os.h"

#define N_REGIONS 64

/* An entry is free while begin is 0; end is written before begin, and cleared after it. */
static struct {
    _Atomic uintptr_t begin;
    _Atomic uintptr_t end;
} regions[N_REGIONS];
static _Atomic uint32_t n_unlisted_regions;

void tn_os_regions_add(const void *data, size_t n_bytes)
{
    for (size_t i = 0; i < N_REGIONS; i++) {
        uintptr_t is_free = 0;
        /* 1 is not the address of any mapping: it claims the entry until its end is known. */
        if (!atomic_compare_exchange_strong(&regions[i].begin, &is_free, 1))
            continue;
        atomic_store(&regions[i].end, (uintptr_t)data + n_bytes);
        atomic_store(&regions[i].begin, (uintptr_t)data);
        return;
    }
    atomic_fetch_add(&n_unlisted_regions, 1);
}

void tn_os_regions_remove(const void *data)
{
    for (size_t i = 0; i < N_REGIONS; i++) {
        if (atomic_load(&regions[i].begin) != (uintptr_t)data)
            continue;
        atomic_store(&regions[i].end, 0);
        atomic_store(&regions[i].begin, 0);
        return;
    }
    atomic_fetch_sub(&n_unlisted_regions, 1);
}

bool tn_os_regions_hold(const void *address)
{
    if (atomic_load(&n_unlisted_regions) > 0)
        return true;
    uintptr_t a = (uintptr_t)address;
    for (size_t i = 0; i < N_REGIONS; i++)
        if (a >= atomic_load(&regions[i].begin) && a < atomic_load(&regions[i].end))
            return true;
    return false;
}
