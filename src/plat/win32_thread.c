/* SPDX-License-Identifier: MIT
 *
 * Windows: threads, sleeping on a word, time, resource usage, efficiency mode.  Functions that only
 * newer versions have are looked up when the program runs.
 */
#include "plat/win32.h"

#include <bcrypt.h>
#include <process.h>
#include <psapi.h>
#include <stdatomic.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "plat/plat.h"

#define STACK_BYTES (256u << 10)

/* ---- threads ---- */

struct tn_thread {
    HANDLE handle;
    void (*run)(void *arg);
    void *arg;
};

static unsigned __stdcall run_thread(void *arg)
{
    const struct tn_thread *thread = arg;
    thread->run(thread->arg);
    return 0;
}

struct tn_thread *tn_thread_start(void (*run)(void *arg), void *arg)
{
    struct tn_thread *thread = tn_alloc(sizeof *thread);
    if (!thread)
        return NULL;
    thread->run = run;
    thread->arg = arg;
    /* _beginthreadex instead of CreateThread, because the C library keeps data per thread. */
    uintptr_t handle = _beginthreadex(NULL, STACK_BYTES, run_thread, thread,
                                      STACK_SIZE_PARAM_IS_A_RESERVATION, NULL);
    if (handle == 0) {
        tn_free(thread);
        return NULL;
    }
    thread->handle = (HANDLE)handle;
    return thread;
}

void tn_thread_join(struct tn_thread *thread)
{
    if (!thread)
        return;
    WaitForSingleObject(thread->handle, INFINITE);
    CloseHandle(thread->handle);
    tn_free(thread);
}

void tn_wait_on(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns)
{
    uint64_t ms = timeout_ns / 1000000 + (timeout_ns % 1000000 != 0);
    DWORD timeout = timeout_ns == 0 ? INFINITE : (DWORD)TN_MIN(ms, (uint64_t)INFINITE - 1);
    (void)WaitOnAddress((volatile void *)word, &expected, sizeof expected, timeout);
}

void tn_wake_all(_Atomic uint32_t *word)
{
    WakeByAddressAll((void *)word);
}

void tn_cpu_relax(void)
{
    YieldProcessor();
}

void tn_thread_yield(void)
{
    SwitchToThread();
}

/* CPUs are numbered through the processor groups, 64 to a full group, as hwloc does.  A thread that
 * was never bound may run in several groups (Windows 11); a bound one stays in its group. */
bool tn_thread_get_affinity(struct tn_affinity *out)
{
    GROUP_AFFINITY affinity;
    *out = (struct tn_affinity){{0}};
    if (!GetThreadGroupAffinity(GetCurrentThread(), &affinity) ||
        affinity.Group >= TN_AFFINITY_WORDS)
        return false;
    out->words[affinity.Group] = affinity.Mask;
    return true;
}

bool tn_thread_set_affinity(const struct tn_affinity *affinity)
{
    WORD group = 0;
    while (group < TN_AFFINITY_WORDS && affinity->words[group] == 0)
        group++;
    if (group == TN_AFFINITY_WORDS)
        return false;
    GROUP_AFFINITY set = {.Mask = (KAFFINITY)affinity->words[group], .Group = group};
    return SetThreadGroupAffinity(GetCurrentThread(), &set, NULL);
}

uint32_t tn_cpu_count(void)
{
    DWORD_PTR process_mask, system_mask;
    DWORD n_all = GetActiveProcessorCount(ALL_PROCESSOR_GROUPS);
    /* A process mask covers one group; it is 0 if threads are in several. */
    if (n_all > 64 || !GetProcessAffinityMask(GetCurrentProcess(), &process_mask, &system_mask) ||
        process_mask == 0)
        return TN_MAX((uint32_t)n_all, 1u);
    return (uint32_t)__builtin_popcountll(process_mask);
}

/* Needs Windows 10 1709; older headers lack the definitions. */
struct throttling_state {
    ULONG version;
    ULONG control_mask;
    ULONG state_mask;
};
#define POWER_THROTTLING_CLASS 4 /* ProcessPowerThrottling */
#define POWER_THROTTLING_EXECUTION_SPEED 1u
typedef BOOL WINAPI set_process_fn(HANDLE process, int what, void *value, DWORD n_bytes);

void tn_process_set_eco(bool eco)
{
    set_process_fn *set = (set_process_fn *)tn_win32_function(L"kernel32.dll",
                                                              "SetProcessInformation");
    struct throttling_state state = {
        .version = 1,
        .control_mask = POWER_THROTTLING_EXECUTION_SPEED,
        .state_mask = eco ? POWER_THROTTLING_EXECUTION_SPEED : 0,
    };
    if (set)
        (void)set(GetCurrentProcess(), POWER_THROTTLING_CLASS, &state, sizeof state);
}

/* ---- time and resources ---- */

uint64_t tn_now_ns(void)
{
    static _Atomic uint64_t frequency; /* constant since the system started */
    uint64_t per_s = atomic_load(&frequency);
    LARGE_INTEGER value;
    if (per_s == 0) {
        QueryPerformanceFrequency(&value);
        per_s = (uint64_t)value.QuadPart;
        atomic_store(&frequency, per_s);
    }
    QueryPerformanceCounter(&value);
    uint64_t n = (uint64_t)value.QuadPart;
    return n / per_s * 1000000000u + n % per_s * 1000000000u / per_s;
}

uint64_t tn_random_seed(void)
{
    uint64_t seed;
    if (BCryptGenRandom(NULL, (UCHAR *)&seed, sizeof seed, BCRYPT_USE_SYSTEM_PREFERRED_RNG) >= 0)
        return seed;
    return tn_now_ns() * 0x9E3779B97F4A7C15u ^ GetCurrentProcessId();
}

void tn_usage_now(struct tn_usage *out)
{
    *out = (struct tn_usage){0};
    PROCESS_MEMORY_COUNTERS_EX counters = {.cb = sizeof counters};
    if (!GetProcessMemoryInfo(GetCurrentProcess(), (PROCESS_MEMORY_COUNTERS *)&counters,
                              sizeof counters))
        return;
    out->peak_rss_bytes = counters.PeakWorkingSetSize;
    out->rss_bytes = counters.WorkingSetSize;
    out->anonymous_bytes = counters.PrivateUsage;
    out->minor_faults = counters.PageFaultCount; /* of both kinds: Windows does not distinguish
                                                  * them */
}

bool tn_cpu_time_now(struct tn_cpu_time *out)
{
    FILETIME idle, kernel, user, created, ended, own_kernel, own_user;
    *out = (struct tn_cpu_time){0};
    if (!GetSystemTimes(&idle, &kernel, &user) ||
        !GetProcessTimes(GetCurrentProcess(), &created, &ended, &own_kernel, &own_user))
        return false;
    out->total_ns = tn_win32_ns(&kernel) + tn_win32_ns(&user); /* the kernel's includes idle time */
    out->busy_ns = out->total_ns - tn_win32_ns(&idle);
    out->own_ns = tn_win32_ns(&own_kernel) + tn_win32_ns(&own_user);
    return true;
}
