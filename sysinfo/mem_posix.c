/* SPDX-License-Identifier: MIT
 *
 * Memory and limits of the running Linux machine: /proc and /sys, and the limits that only system
 * calls report.
 */
#include "sysinfo_private.h"

#if !defined(_WIN32) && !defined(__APPLE__)

#include <sys/resource.h>
#include <unistd.h>

static uint64_t soft_limit(int resource)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return TERN_UNKNOWN;
    return limit.rlim_cur;
}

void tn_memory_read_live(struct tern_sysinfo *out)
{
    tn_memory_read_proc(out, "");
    tn_limits_read(out, "");
    long page = sysconf(_SC_PAGESIZE);
    struct tn_process_facts facts = {
        .rlimit_as = soft_limit(RLIMIT_AS),
        .rlimit_data = soft_limit(RLIMIT_DATA),
        .vm_size = TERN_UNKNOWN,
        .page_bytes = page > 0 ? (uint64_t)page : TERN_UNKNOWN,
    };
    tn_process_limits(out, &facts, "");
}

void tn_memory_sample_live(struct tern_monitor_sample *out)
{
    (void)out; /* monitor.c reads /proc */
}

#else
typedef int tn_mem_posix_is_empty; /* C requires at least one declaration */
#endif
