/* SPDX-License-Identifier: MIT
 *
 * Memory and limits of a Windows machine: physical memory, commit limit, job object, energy.
 */
#include "sysinfo_private.h"

#if defined(_WIN32)

#if !defined(_WIN32_WINNT) || _WIN32_WINNT < 0x0A00
#undef _WIN32_WINNT
#define _WIN32_WINNT 0x0A00
#endif
#include <windows.h>
#include <psapi.h>

#include "base/compiler.h"

static void read_memory(uint64_t *total, uint64_t *available, uint64_t *commit)
{
    MEMORYSTATUSEX status = {.dwLength = sizeof status};
    if (!GlobalMemoryStatusEx(&status))
        return;
    *total = status.ullTotalPhys;
    *available = status.ullAvailPhys;   /* the standby cache counts as available */
    *commit = status.ullAvailPageFile; /* the remaining commit charge, for anonymous memory only */
}

/* The page file is the part of the commit limit beyond physical memory. */
static void read_swap(struct tern_sysinfo *out)
{
    MEMORYSTATUSEX status = {.dwLength = sizeof status};
    if (GlobalMemoryStatusEx(&status))
        out->swap_total_bytes = tn_fact_minus(status.ullTotalPageFile, status.ullTotalPhys);
}

static uint64_t committed_bytes(void)
{
    PROCESS_MEMORY_COUNTERS counters = {.cb = sizeof counters};
    if (!GetProcessMemoryInfo(GetCurrentProcess(), &counters, sizeof counters))
        return 0;
    return counters.PagefileUsage;
}

/* The current commit charge of all processes of the job (Windows 10 and later; older headers lack
 * it), else its peak, which is an upper bound. */
static uint64_t job_committed_bytes(const JOBOBJECT_EXTENDED_LIMIT_INFORMATION *info)
{
    enum { MEMORY_USAGE = 28 }; /* JobObjectMemoryUsageInformation */
    struct {
        uint64_t now, peak;
    } usage = {0};
    if (QueryInformationJobObject(NULL, (JOBOBJECTINFOCLASS)MEMORY_USAGE, &usage, sizeof usage,
                                  NULL))
        return usage.now;
    return info->PeakJobMemoryUsed;
}

/* False if there is no job with a memory limit. */
static bool read_job(struct tn_job_memory *out)
{
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION info = {0};
    *out = (struct tn_job_memory){.process_limit = TERN_UNKNOWN, .job_limit = TERN_UNKNOWN};
    if (!QueryInformationJobObject(NULL, JobObjectExtendedLimitInformation, &info, sizeof info,
                                   NULL))
        return false; /* not in a job */
    const DWORD flags = info.BasicLimitInformation.LimitFlags;
    if ((flags & JOB_OBJECT_LIMIT_PROCESS_MEMORY) && info.ProcessMemoryLimit > 0)
        out->process_limit = info.ProcessMemoryLimit;
    if ((flags & JOB_OBJECT_LIMIT_JOB_MEMORY) && info.JobMemoryLimit > 0)
        out->job_limit = info.JobMemoryLimit;
    out->process_used = committed_bytes();
    out->job_used = job_committed_bytes(&info);
    return out->process_limit != TERN_UNKNOWN || out->job_limit != TERN_UNKNOWN;
}

static void read_job_memory(struct tern_sysinfo *out)
{
    struct tn_job_memory job;
    if (!read_job(&job))
        return;
    out->limit_bytes = TN_MIN(out->limit_bytes, TN_MIN(job.process_limit, job.job_limit));
    out->job_available_bytes = tn_job_memory_left(&job);
}

static void read_job_cpu_rate(struct tern_sysinfo *out)
{
    /* JOB_OBJECT_CPU_RATE_CONTROL_MIN_MAX_RATE: older headers lack it, and MaxRate, the upper half
     * of the union that holds CpuRate. */
    enum { MIN_MAX_RATE = 0x10 };
    JOBOBJECT_CPU_RATE_CONTROL_INFORMATION info = {0};
    if (!QueryInformationJobObject(NULL, JobObjectCpuRateControlInformation, &info, sizeof info,
                                   NULL))
        return;
    DWORD flags = info.ControlFlags;
    uint64_t rate = 0; /* 1/100 % of all processors */
    if (!(flags & JOB_OBJECT_CPU_RATE_CONTROL_ENABLE))
        return;
    if (flags & MIN_MAX_RATE)
        rate = info.CpuRate >> 16;
    else if (flags & JOB_OBJECT_CPU_RATE_CONTROL_HARD_CAP)
        rate = info.CpuRate;
    if (rate > 0 && rate < 10000)
        out->quota_millicpus = rate * out->n_logical / 10;
}

static void read_power(struct tern_sysinfo *out)
{
    SYSTEM_POWER_STATUS status;
    if (!GetSystemPowerStatus(&status))
        return;
    if (status.ACLineStatus == 1)
        out->power = TERN_POWER_MAINS;
    else if (status.ACLineStatus == 0)
        out->power = TERN_POWER_BATTERY;
}

void tn_memory_read_live(struct tern_sysinfo *out)
{
    SYSTEM_INFO system;
    GetSystemInfo(&system);
    out->page_bytes = system.dwPageSize;
    read_memory(&out->total_bytes, &out->system_available_bytes, &out->commit_left_bytes);
    read_swap(out);
    read_job_memory(out);
    read_job_cpu_rate(out);
    read_power(out);
}

/* Whether the system reports that memory is low. */
static bool is_low_on_memory(void)
{
    static HANDLE notification; /* open until the process ends */
    BOOL low = FALSE;
    if (!notification)
        notification = CreateMemoryResourceNotification(LowMemoryResourceNotification);
    return notification && QueryMemoryResourceNotification(notification, &low) && low;
}

void tn_memory_sample_live(struct tern_monitor_sample *out)
{
    uint64_t total = TERN_UNKNOWN, available = TERN_UNKNOWN, commit = TERN_UNKNOWN;
    read_memory(&total, &available, &commit);
    /* The cache is anonymous memory: the commit limit applies to its growth, too. */
    struct tn_job_memory job;
    const uint64_t left = read_job(&job) ? tn_job_memory_left(&job) : TERN_UNKNOWN;
    out->available_bytes = TN_MIN(TN_MIN(available, commit), left);
    out->pressure_level = is_low_on_memory() ? 2 : 1;
}

#else
typedef int tn_mem_win32_is_empty; /* C requires at least one declaration */
#endif
