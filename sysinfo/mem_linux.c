/* SPDX-License-Identifier: MIT
 *
 * Memory of a Linux machine, read from /proc and /sys below a root.
 */
#include "sysinfo_private.h"

#include <stdio.h>
#include <string.h>

/* A size in KiB from /proc/meminfo or /proc/self/status, in bytes. */
static bool line_kib(const char *text, const char *key, uint64_t *out, bool *present)
{
    uint64_t kib;
    return tn_fact_line_u64(text, key, &kib, present) &&
           !__builtin_mul_overflow(kib, 1024u, out);
}

/* Kernels before 3.14 and some containers do not say what is available. */
static bool estimate_available(const char *text, uint64_t *out)
{
    uint64_t mem_free, buffers, cached, shmem;
    if (!line_kib(text, "MemFree:", &mem_free, NULL))
        return false;
    uint64_t sum = mem_free;
    if (line_kib(text, "Buffers:", &buffers, NULL) && __builtin_add_overflow(sum, buffers, &sum))
        return false;
    if (line_kib(text, "Cached:", &cached, NULL) && __builtin_add_overflow(sum, cached, &sum))
        return false;
    *out = line_kib(text, "Shmem:", &shmem, NULL) ? tn_fact_minus(sum, shmem) : sum;
    return true;
}

static void read_meminfo(struct tern_sysinfo *out, const char *root)
{
    char text[8192];
    if (tn_fact_read(root, "/proc/meminfo", text, sizeof text) < 0)
        return;
    bool present;
    if (!line_kib(text, "MemTotal:", &out->total_bytes, NULL) || out->total_bytes == 0)
        out->total_bytes = TERN_UNKNOWN;
    if (!line_kib(text, "MemAvailable:", &out->system_available_bytes, &present) &&
        (present || !estimate_available(text, &out->system_available_bytes)))
        out->system_available_bytes = TERN_UNKNOWN;
    if (out->total_bytes == TERN_UNKNOWN || out->system_available_bytes == TERN_UNKNOWN)
        out->unreadable |= TERN_FACT_MEMINFO;
    line_kib(text, "SwapTotal:", &out->swap_total_bytes, NULL);
    line_kib(text, "SwapFree:", &out->swap_free_bytes, NULL);
}

void tn_cpu_name_from_proc(struct tern_sysinfo *out, const char *root)
{
    char text[4096];
    if (tn_fact_read(root, "/proc/cpuinfo", text, sizeof text) < 0)
        return;
    const char *p = strstr(text, "model name");
    p = p ? strchr(p, ':') : NULL;
    if (!p)
        return;
    p += 1 + strspn(p + 1, " \t");
    size_t n = strcspn(p, "\r\n");
    snprintf(out->cpu_name, sizeof out->cpu_name, "%.*s", (int)n, p);
}

#if defined(__linux__)

void tn_memory_read_live(struct tern_sysinfo *out)
{
    read_meminfo(out, "");
}

#endif
