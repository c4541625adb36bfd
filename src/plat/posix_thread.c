/* SPDX-License-Identifier: MIT
 *
 * POSIX: threads, sleeping on a word, time, resource usage.
 *
 * Linux sleeps in the kernel's futex.  Other systems (macOS) use a small table of mutexes and
 * condition variables, selected by the word's address.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#endif
#if defined(__APPLE__)
#include <mach/mach.h>
#include <sys/random.h>
#endif

#include "base/alloc.h"
#include "base/compiler.h"
#include "plat/plat.h"
#include "plat/posix.h"

#define STACK_BYTES ((size_t)256 << 10)

/* ---- threads ---- */

struct tn_thread {
    pthread_t id;
    void (*run)(void *arg);
    void *arg;
    struct tn_posix_signal_stack signal_stack;
};

static _Atomic bool is_eco;

static void apply_eco(void)
{
#if defined(__APPLE__)
    pthread_set_qos_class_self_np(atomic_load(&is_eco) ? QOS_CLASS_UTILITY
                                                       : QOS_CLASS_USER_INITIATED, 0);
#endif
}

void tn_process_set_eco(bool eco)
{
    atomic_store(&is_eco, eco); /* threads that start later inherit it */
    apply_eco();
}

static void *run_thread(void *arg)
{
    struct tn_thread *thread = arg;
    tn_posix_signal_stack_enter(&thread->signal_stack);
    apply_eco();
    thread->run(thread->arg);
    tn_posix_signal_stack_leave(&thread->signal_stack);
    return NULL;
}

/* Signals are for the main thread; faults stay on the thread that causes them. */
static void block_signals(sigset_t *old)
{
    sigset_t set;
    sigfillset(&set);
    sigdelset(&set, SIGBUS);
    sigdelset(&set, SIGSEGV);
    sigdelset(&set, SIGFPE);
    sigdelset(&set, SIGILL);
    sigdelset(&set, SIGABRT);
    sigdelset(&set, SIGTRAP);
    pthread_sigmask(SIG_SETMASK, &set, old);
}

struct tn_thread *tn_thread_start(void (*run)(void *arg), void *arg)
{
    struct tn_thread *thread = tn_alloc_aligned(sizeof *thread, _Alignof(struct tn_thread));
    if (!thread)
        return NULL;
    thread->run = run;
    thread->arg = arg;
    pthread_attr_t attr;
    bool ok = pthread_attr_init(&attr) == 0;
    if (ok) {
        (void)pthread_attr_setstacksize(&attr, STACK_BYTES); /* on failure the system's size is
                                                              * used */
        sigset_t old;
        block_signals(&old);
        ok = pthread_create(&thread->id, &attr, run_thread, thread) == 0;
        pthread_sigmask(SIG_SETMASK, &old, NULL);
        pthread_attr_destroy(&attr);
    }
    if (!ok) {
        tn_free_aligned(thread);
        return NULL;
    }
    return thread;
}

void tn_thread_join(struct tn_thread *thread)
{
    if (!thread)
        return;
    pthread_join(thread->id, NULL);
    tn_free_aligned(thread);
}

void tn_cpu_relax(void)
{
#if TN_ARCH_X86_64
    __builtin_ia32_pause();
#elif TN_ARCH_AARCH64
    __asm__ volatile("isb"); /* `yield` does nothing on most cores */
#endif
}

void tn_thread_yield(void)
{
    sched_yield();
}

bool tn_thread_get_affinity(struct tn_affinity *out)
{
    *out = (struct tn_affinity){{0}};
#if defined(__linux__)
    /* The kernel's masks are arrays of unsigned long. */
    static_assert(sizeof(unsigned long) == sizeof out->words[0], "an affinity is a mask");
    return sched_getaffinity(0, sizeof *out, (cpu_set_t *)out) == 0;
#else
    return false;
#endif
}

bool tn_thread_set_affinity(const struct tn_affinity *affinity)
{
#if defined(__linux__)
    return sched_setaffinity(0, sizeof *affinity, (const cpu_set_t *)affinity) == 0;
#else
    (void)affinity;
    return false;
#endif
}

uint32_t tn_cpu_count(void)
{
    struct tn_affinity mine;
    int n_allowed = 0;
    if (tn_thread_get_affinity(&mine))
        for (size_t i = 0; i < TN_AFFINITY_WORDS; i++)
            n_allowed += __builtin_popcountll(mine.words[i]);
    long n = n_allowed > 0 ? n_allowed : sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (uint32_t)n : 1;
}

/* ---- sleeping on a word ---- */

#if defined(__linux__)

void tn_wait_on(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns)
{
    struct timespec timeout = {(time_t)(timeout_ns / 1000000000), (long)(timeout_ns % 1000000000)};
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, timeout_ns ? &timeout : NULL, NULL, 0);
}

void tn_wake_all(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

#else

#define PLACE {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER}
#define N_PLACES 8

/* Words that share an entry wake each other spuriously, which the contract allows. */
static struct place {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
} places[N_PLACES] = {PLACE, PLACE, PLACE, PLACE, PLACE, PLACE, PLACE, PLACE};

static struct place *place_of(const void *word)
{
    return &places[(uintptr_t)word / 64 % N_PLACES];
}

void tn_wait_on(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns)
{
    struct place *place = place_of((const void *)word);
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    uint64_t ns = (uint64_t)until.tv_nsec + timeout_ns % 1000000000;
    until.tv_sec += (time_t)(timeout_ns / 1000000000 + ns / 1000000000);
    until.tv_nsec = (long)(ns % 1000000000);
    pthread_mutex_lock(&place->mutex);
    if (atomic_load(word) == expected) {
        if (timeout_ns)
            pthread_cond_timedwait(&place->changed, &place->mutex, &until);
        else
            pthread_cond_wait(&place->changed, &place->mutex);
    }
    pthread_mutex_unlock(&place->mutex);
}

void tn_wake_all(_Atomic uint32_t *word)
{
    struct place *place = place_of((const void *)word);
    pthread_mutex_lock(&place->mutex); /* a waiter either has compared and sleeps, or has not
                                        * compared yet */
    pthread_mutex_unlock(&place->mutex);
    pthread_cond_broadcast(&place->changed);
}

#endif

/* ---- time and resources ---- */

uint64_t tn_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t tn_random_seed(void)
{
    uint64_t seed;
    if (getentropy(&seed, sizeof seed) == 0)
        return seed;
    return tn_now_ns() * 0x9E3779B97F4A7C15u ^ (uint64_t)getpid(); /* before the kernel's pool is
                                                                    * ready */
}

#if defined(__linux__)

/* The value of "KEY:   123 kB" in /proc/self/status, in bytes; 0 if absent. */
static uint64_t status_bytes(const char *status, const char *key)
{
    const char *found = strstr(status, key);
    return found ? strtoull(found + strlen(key), NULL, 10) * 1024 : 0;
}

static _Atomic int kept_status = -1;

void tn_posix_usage_keep_open(void)
{
    if (atomic_load(&kept_status) < 0)
        atomic_store(&kept_status, tn_posix_open("/proc/self/status", O_RDONLY));
}

static void read_memory(struct tn_usage *out)
{
    char status[16384]; /* the user's groups, perhaps a thousand, precede the memory */
    size_t n = 0;
    const int kept = atomic_load(&kept_status);
    const int fd = kept >= 0 ? kept : tn_posix_open("/proc/self/status", O_RDONLY);
    if (fd < 0)
        return;
    for (;;) {
        ssize_t got = pread(fd, status + n, sizeof status - 1 - n, (off_t)n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    if (fd != kept)
        close(fd);
    status[n] = '\0';
    out->rss_bytes = status_bytes(status, "\nVmRSS:");
    out->anonymous_bytes = status_bytes(status, "\nRssAnon:");
    /* The kernel counts in batches per thread, so the peak may be below the current value. */
    out->peak_rss_bytes = TN_MAX(status_bytes(status, "\nVmHWM:"), out->rss_bytes);
}

#elif defined(__APPLE__)

static void read_memory(struct tn_usage *out)
{
    task_vm_info_data_t info;
    mach_msg_type_number_t n = TASK_VM_INFO_COUNT;
    if (task_info(mach_task_self(), TASK_VM_INFO, (task_info_t)&info, &n) != KERN_SUCCESS)
        return;
    out->rss_bytes = info.resident_size;
    out->anonymous_bytes = info.internal + info.compressed;
    out->peak_rss_bytes = info.resident_size_peak;
}

#else

static void read_memory(struct tn_usage *out)
{
    (void)out;
}

#endif

void tn_usage_now(struct tn_usage *out)
{
    *out = (struct tn_usage){0};
    struct rusage usage;
    read_memory(out);
    if (getrusage(RUSAGE_SELF, &usage) != 0)
        return;
    out->major_faults = (uint64_t)usage.ru_majflt;
    out->minor_faults = (uint64_t)usage.ru_minflt;
#if !defined(__APPLE__)
    /* Only if there is no better source: it begins with the peak of the program that started us. */
    if (out->peak_rss_bytes == 0)
        out->peak_rss_bytes = (uint64_t)usage.ru_maxrss * 1024;
#endif
}

/* ---- processor time ---- */

#if defined(__linux__)

/* "cpu  user nice system idle iowait irq softirq steal ...", in ticks. */
static bool read_ticks(uint64_t ticks[8])
{
    char text[512];
    int fd = tn_posix_open("/proc/stat", O_RDONLY);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n < 4 || memcmp(text, "cpu ", 4) != 0)
        return false;
    text[n] = '\0';
    char *at = text + 4;
    for (int i = 0; i < 8; i++) {
        char *end;
        ticks[i] = strtoull(at, &end, 10);
        if (end == at)
            return false;
        at = end;
    }
    return true;
}

static bool read_processors(struct tn_cpu_time *out)
{
    enum { IDLE = 3, IO_WAIT = 4 };
    uint64_t ticks[8];
    const long per_second = sysconf(_SC_CLK_TCK);
    if (per_second <= 0 || !read_ticks(ticks))
        return false;
    const uint64_t ns = 1000000000u / (uint64_t)per_second;
    for (int i = 0; i < 8; i++) {
        out->total_ns += ticks[i] * ns;
        if (i != IDLE && i != IO_WAIT)
            out->busy_ns += ticks[i] * ns;
    }
    return true;
}

#elif defined(__APPLE__)

static bool read_processors(struct tn_cpu_time *out)
{
    host_cpu_load_info_data_t info;
    mach_msg_type_number_t n = HOST_CPU_LOAD_INFO_COUNT;
    const long per_second = sysconf(_SC_CLK_TCK);
    if (per_second <= 0 || host_statistics(mach_host_self(), HOST_CPU_LOAD_INFO,
                                           (host_info_t)&info, &n) != KERN_SUCCESS)
        return false;
    const uint64_t ns = 1000000000u / (uint64_t)per_second;
    for (int i = 0; i < CPU_STATE_MAX; i++) {
        out->total_ns += info.cpu_ticks[i] * ns;
        if (i != CPU_STATE_IDLE)
            out->busy_ns += info.cpu_ticks[i] * ns;
    }
    return true;
}

#else

static bool read_processors(struct tn_cpu_time *out)
{
    (void)out;
    return false;
}

#endif

static uint64_t time_ns(const struct timeval *t)
{
    return (uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_usec * 1000u;
}

bool tn_cpu_time_now(struct tn_cpu_time *out)
{
    struct rusage usage;
    *out = (struct tn_cpu_time){0};
    if (!read_processors(out) || getrusage(RUSAGE_SELF, &usage) != 0) {
        *out = (struct tn_cpu_time){0};
        return false;
    }
    out->own_ns = time_ns(&usage.ru_utime) + time_ns(&usage.ru_stime);
    return true;
}
