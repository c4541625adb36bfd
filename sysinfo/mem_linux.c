/* SPDX-License-Identifier: MIT
 *
 * Memory, pressure and energy of a Linux machine, read from /proc and /sys below a root
 * directory.
 */
#include "sysinfo_private.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/utf8.h"

/* ---- meminfo ---- */

/* A size in KiB from /proc/meminfo or /proc/self/status, in bytes. */
static bool line_kib(const char *text, const char *key, uint64_t *out, bool *present)
{
    uint64_t kib, bytes;
    if (!tn_fact_line_u64(text, key, &kib, present) || __builtin_mul_overflow(kib, 1024u, &bytes))
        return false;
    *out = bytes;
    return true;
}

/* Kernels before 3.14 and some containers do not report the available memory. */
static uint64_t estimate_available(const char *text)
{
    uint64_t sum, buffers = 0, cached = 0, shmem = 0;
    if (!line_kib(text, "MemFree:", &sum, NULL))
        return TERN_UNKNOWN;
    line_kib(text, "Buffers:", &buffers, NULL);
    line_kib(text, "Cached:", &cached, NULL);
    line_kib(text, "Shmem:", &shmem, NULL);
    if (__builtin_add_overflow(sum, buffers, &sum) || __builtin_add_overflow(sum, cached, &sum))
        return TERN_UNKNOWN;
    return tn_fact_minus(sum, shmem);
}

uint64_t tn_meminfo_available(const char *text)
{
    uint64_t available, total;
    bool present;
    if (!line_kib(text, "MemAvailable:", &available, &present))
        available = present ? TERN_UNKNOWN : estimate_available(text);
    if (available != TERN_UNKNOWN && line_kib(text, "MemTotal:", &total, NULL) && total > 0)
        available = TN_MIN(available, total);
    return available;
}

static void read_meminfo(struct tern_sysinfo *out, const char *root)
{
    char text[8192];
    if (tn_fact_read(root, "/proc/meminfo", text, sizeof text) < 0)
        return;
    if (!line_kib(text, "MemTotal:", &out->total_bytes, NULL) || out->total_bytes == 0)
        out->total_bytes = TERN_UNKNOWN;
    out->system_available_bytes = tn_meminfo_available(text);
    if (out->total_bytes == TERN_UNKNOWN || out->system_available_bytes == TERN_UNKNOWN)
        out->unreadable |= TERN_FACT_MEMINFO;
    line_kib(text, "SwapTotal:", &out->swap_total_bytes, NULL);
    line_kib(text, "SwapFree:", &out->swap_free_bytes, NULL);
}

/* ---- process limits ---- */

/* The use according to /proc/self/status.  If it cannot be understood, that is recorded and it
 * counts as 0; the limit still applies. */
static uint64_t bytes_in_use(const char *status, const char *key, uint32_t *unreadable)
{
    uint64_t bytes = 0;
    bool present;
    if (!line_kib(status, key, &bytes, &present) && present)
        *unreadable |= TERN_FACT_RLIMITS;
    return bytes;
}

void tn_process_limits(struct tern_sysinfo *out, const struct tn_process_facts *facts,
                       const char *root)
{
    char status[TN_STATUS_BYTES]; /* "" if it cannot be read */
    uint64_t vm_size = facts->vm_size;
    tn_fact_read(root, "/proc/self/status", status, sizeof status);
    if (vm_size == TERN_UNKNOWN)
        vm_size = bytes_in_use(status, "VmSize:", &out->unreadable);
    out->rlimit_as_left_bytes = tn_fact_minus(facts->rlimit_as, vm_size);
    out->rlimit_data_left_bytes =
        tn_fact_minus(facts->rlimit_data, bytes_in_use(status, "VmData:", &out->unreadable));
    out->page_bytes = facts->page_bytes;
}

/* ---- pressure ---- */

uint64_t tn_pressure_parse(const char *text)
{
    const char *p = strstr(text, "some avg10=");
    if (!p)
        return TERN_UNKNOWN;
    p += strlen("some avg10=");
    uint64_t whole;
    if (!tn_fact_parse_u64(&p, &whole) || whole > 100)
        return TERN_UNKNOWN;
    uint64_t centi = whole * 100;
    if (p[0] == '.' && p[1] >= '0' && p[1] <= '9') {
        centi += (uint64_t)(p[1] - '0') * 10;
        if (p[2] >= '0' && p[2] <= '9')
            centi += (uint64_t)(p[2] - '0');
    }
    return centi;
}

static void read_pressure(struct tern_sysinfo *out, const char *root)
{
    char text[512];
    if (tn_fact_read(root, "/proc/pressure/memory", text, sizeof text) < 0)
        return;
    out->pressure_centi = tn_pressure_parse(text);
    if (out->pressure_centi == TERN_UNKNOWN)
        out->unreadable |= TERN_FACT_PRESSURE;
}

/* ---- modes ---- */

static void read_modes(struct tern_sysinfo *out, const char *root)
{
    char text[128];
    uint64_t mode;
    if (tn_fact_read(root, "/proc/sys/vm/overcommit_memory", text, sizeof text) >= 0 &&
        tn_fact_whole_u64(text, &mode) && mode <= 2)
        out->overcommit_mode = (int32_t)mode;
    if (tn_fact_read(root, "/sys/kernel/mm/transparent_hugepage/enabled", text, sizeof text) < 0)
        return;
    if (strstr(text, "[always]"))
        out->huge_pages = TERN_HUGE_PAGES_ALWAYS;
    else if (strstr(text, "[madvise]"))
        out->huge_pages = TERN_HUGE_PAGES_MADVISE;
    else if (strstr(text, "[never]"))
        out->huge_pages = TERN_HUGE_PAGES_NEVER;
}

/* ---- energy ---- */

#define SUPPLY(name) "/sys/class/power_supply/" name

/* The usual names: /sys has no fixed ones, and listing a folder is not worth the time for a fact
 * that is only reported. */
const char *const tn_mains_files[] = {
    SUPPLY("AC/online"),   SUPPLY("AC0/online"),  SUPPLY("ACAD/online"),
    SUPPLY("ADP0/online"), SUPPLY("ADP1/online"), SUPPLY("macsmc-ac/online"), NULL};
const char *const tn_battery_files[] = {
    SUPPLY("BAT0/status"),    SUPPLY("BAT1/status"), SUPPLY("BAT2/status"),
    SUPPLY("battery/status"), SUPPLY("macsmc-battery/status"), NULL};

static enum tern_power read_power(const char *root)
{
    char text[64];
    enum tern_power power = TERN_POWER_UNKNOWN;
    for (const char *const *path = tn_battery_files; *path; path++)
        if (tn_fact_read(root, *path, text, sizeof text) >= 0)
            power = strncmp(text, "Discharging", 11) == 0 ? TERN_POWER_BATTERY : TERN_POWER_MAINS;
    for (const char *const *path = tn_mains_files; *path; path++)
        if (tn_fact_read(root, *path, text, sizeof text) >= 0)
            return text[0] == '1' ? TERN_POWER_MAINS : TERN_POWER_BATTERY;
    return power;
}

static void read_energy(struct tern_sysinfo *out, const char *root)
{
    char text[64];
    uint64_t count;
    out->power = read_power(root);
    if (tn_fact_read(root, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", text,
                     sizeof text) > 0) {
        size_t n = strcspn(text, " \t\r\n");
        snprintf(out->governor, sizeof out->governor, "%.*s", (int)n, text);
        tn_utf8_make_printable(out->governor);
    }
    if (tn_fact_read(root, "/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count",
                     text, sizeof text) >= 0 &&
        tn_fact_whole_u64(text, &count))
        out->n_thermal_throttles = count;
}

void tn_memory_read_proc(struct tern_sysinfo *out, const char *root)
{
    read_meminfo(out, root);
    read_pressure(out, root);
    read_modes(out, root);
    read_energy(out, root);
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
    while (n > 0 && p[n - 1] == ' ')
        n--;
    snprintf(out->cpu_name, sizeof out->cpu_name, "%.*s", (int)TN_MIN(n, sizeof out->cpu_name), p);
    tn_utf8_make_printable(out->cpu_name);
}
