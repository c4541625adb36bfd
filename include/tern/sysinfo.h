/* SPDX-License-Identifier: MIT
 *
 * What machine is this: a description, never a decision (those are run/plan.c's).
 */
#ifndef TERN_SYSINFO_H
#define TERN_SYSINFO_H

#include <stdbool.h>
#include <stdint.h>

#include "tern/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TERN_UNKNOWN UINT64_MAX /* a size that is unknown or unlimited */

struct tern_sysinfo {
    char cpu_name[64];
    uint32_t cpu_features; /* TN_CPU_* bits of base/cpu_bits.h */
    uint32_t n_physical;   /* cores of the machine */
    uint32_t n_logical;
    uint32_t n_allowed;    /* physical cores that this process may use (affinity, cpuset) */
    uint64_t total_bytes;
    uint64_t available_bytes;
};

/* Reads the machine. Unknown facts are 0 (counts: never 0, at least 1) or TERN_UNKNOWN. */
void tern_sysinfo_read(struct tern_sysinfo *out);

#ifdef __cplusplus
}
#endif
#endif
