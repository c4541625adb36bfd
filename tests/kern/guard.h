/* SPDX-License-Identifier: MIT
 *
 * Buffers for kernel tests between inaccessible pages, with canaries where a page border is
 * impossible, and the instruction sets of this CPU.
 *
 *   | no access | canary ... [ data ] canary | no access |     TN_GUARD_AT_END
 *   | no access | [ data ] canary ...        | no access |     TN_GUARD_AT_START
 *
 * The canary between the data and the near page is shorter than the alignment.
 */
#ifndef TN_TEST_GUARD_H
#define TN_TEST_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tn_guard_side { TN_GUARD_AT_END, TN_GUARD_AT_START };

struct tn_guard {
    unsigned char *data; /* n_bytes, filled with the canary byte */
    size_t n_bytes;
    unsigned char *pages; /* accessible */
    size_t page_bytes;
    void *reserved;
    size_t reserved_bytes;
};

#define TN_GUARD_BYTE 0xA5

/* Returns g->data, aligned to `align` (a power of two up to the page size). Fails the test when out
 * of memory. */
void *tn_guard_new(struct tn_guard *g, size_t n_bytes, size_t align, enum tn_guard_side side);
/* Are all canaries unchanged? */
bool tn_guard_is_intact(const struct tn_guard *g);
void tn_guard_free(struct tn_guard *g);

/* TN_CPU_* of this machine (base/cpu_bits.h). */
uint32_t tn_test_cpu_features(void);

#endif
