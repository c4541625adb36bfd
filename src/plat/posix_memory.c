/* SPDX-License-Identifier: MIT
 *
 * POSIX: mapped files, read errors inside them (SIGBUS), anonymous pages, limits and use of the
 * main thread's stack.
 */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "plat/plat.h"
#include "plat/plat_os.h"
#include "plat/posix.h"
#include "plat/terminal.h"

/* ---- mapped files ---- */

static tern_status fail_map(const char *path, uint64_t n_bytes, int code, struct tern_error *err)
{
    struct rlimit limit;
    if (code != ENOMEM && code != EAGAIN && code != EOVERFLOW)
        return tn_os_fail(err, TERN_INPUT, path, "cannot be mapped", (unsigned long)code);
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        return tn_fail(err, TERN_MEMORY,
                       "%s: no address space to map %llu bytes; the limit of this process is %llu "
                       "bytes (ulimit -v)",
                       path, (unsigned long long)n_bytes, (unsigned long long)limit.rlim_cur);
    return tn_fail(err, TERN_MEMORY, "%s: no address space to map %llu bytes: %s", path,
                   (unsigned long long)n_bytes, strerror(code));
}

/* Time of the last write, and size; false if the system does not provide it. */
static bool last_write(uint64_t *ns, uint64_t *n_bytes, int fd)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return false;
    *ns = tn_posix_modified_ns(&st);
    *n_bytes = (uint64_t)st.st_size;
    return true;
}

tern_status tn_map_open(struct tn_map *out, const char *path, struct tern_error *err)
{
    *out = (struct tn_map){0};
    int fd;
    uint64_t n_bytes, modified_ns = 0;
    tern_status status = tn_posix_open_regular(&fd, &n_bytes, path, err);
    if (status)
        return status;
    (void)last_write(&modified_ns, &n_bytes, fd);
    void *data = MAP_FAILED;
    if (n_bytes == 0)
        status = tn_fail(err, TERN_INPUT, "%s: is empty (0 bytes)", path);
    else if (n_bytes > SIZE_MAX)
        status = fail_map(path, n_bytes, EOVERFLOW, err);
    else if ((data = mmap(NULL, (size_t)n_bytes, PROT_READ, MAP_SHARED, fd, 0)) == MAP_FAILED)
        status = fail_map(path, n_bytes, errno, err);
    if (status) {
        close(fd);
        return status;
    }
    tn_os_regions_add(data, (size_t)n_bytes);
    *out = (struct tn_map){
        .data = data, .n_bytes = (size_t)n_bytes, .fd = fd, .modified_ns = modified_ns};
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    out->has_huge_pages = madvise(data, (size_t)n_bytes, MADV_HUGEPAGE) == 0;
#endif
    return TERN_OK;
}

void tn_map_close(struct tn_map *map)
{
    if (!map->data)
        return;
    tn_os_regions_remove(map->data);
    munmap((void *)(uintptr_t)map->data, map->n_bytes);
    close(map->fd);
    *map = (struct tn_map){0};
}

bool tn_map_is_unchanged(const struct tn_map *map)
{
    uint64_t modified_ns, n_bytes;
    return !last_write(&modified_ns, &n_bytes, map->fd) ||
           (modified_ns == map->modified_ns && n_bytes == map->n_bytes);
}

void tn_map_advise(const struct tn_map *map, size_t offset, size_t n_bytes, enum tn_advice advice)
{
    if (offset >= map->n_bytes)
        return;
    /* MADV_WILLNEED would fill the page cache with small pages before huge ones can be made. */
    if (advice == TN_ADVICE_WILLNEED && map->has_huge_pages)
        return;
    uintptr_t page = tn_page_bytes();
    uintptr_t begin = (uintptr_t)map->data + offset;
    uintptr_t end = begin + TN_MIN(n_bytes, map->n_bytes - offset);
    if (advice == TN_ADVICE_WILLNEED) { /* every page that overlaps the range */
        begin &= ~(page - 1);
    } else { /* only pages entirely inside; the file's last one is */
        begin = (begin + page - 1) & ~(page - 1);
        if (end != (uintptr_t)map->data + map->n_bytes)
            end &= ~(page - 1);
    }
    if (begin >= end)
        return;
    int how = advice == TN_ADVICE_DONTNEED ? MADV_DONTNEED : MADV_WILLNEED;
    (void)madvise((void *)begin, end - begin, how);
}

void tn_map_read_sparsely(struct tn_map *map)
{
    void *data = (void *)(uintptr_t)map->data;
#if defined(__linux__) && defined(MADV_NOHUGEPAGE)
    (void)madvise(data, map->n_bytes, MADV_NOHUGEPAGE);
#endif
    (void)madvise(data, map->n_bytes, MADV_RANDOM);
    map->has_huge_pages = false;
}

/* ---- read errors inside a mapping ---- */

static void (*_Atomic fault_handler)(void);
static _Atomic uint32_t n_faulting;

static void on_fault(int signal_number, siginfo_t *info, void *context)
{
    (void)context;
    void (*handler)(void) = atomic_load(&fault_handler);
    if (!handler || !tn_os_regions_hold(info->si_addr)) {
        tn_terminal_restore_for_end();
        signal(signal_number, SIG_DFL);
        raise(signal_number); /* ends the process when this returns, also for a signal sent by
                               * another process */
        return;
    }
    if (atomic_fetch_add(&n_faulting, 1) == 0)
        handler();
    for (;;) /* another thread is already ending the process */
        pause();
}

void tn_posix_signal_stack_enter(struct tn_posix_signal_stack *stack)
{
    stack_t ours = {.ss_sp = stack->bytes, .ss_size = sizeof stack->bytes};
    stack_t old = {.ss_flags = SS_DISABLE};
    (void)sigaltstack(&ours, &old);
    stack->old_sp = old.ss_sp;
    stack->old_bytes = old.ss_size;
    stack->old_flags = old.ss_flags;
}

void tn_posix_signal_stack_leave(const struct tn_posix_signal_stack *stack)
{
    stack_t old = {
        .ss_sp = stack->old_sp, .ss_size = stack->old_bytes, .ss_flags = stack->old_flags};
    (void)sigaltstack(&old, NULL);
}

void tn_map_set_fault_handler(void (*handler)(void))
{
    static struct tn_posix_signal_stack stack; /* for the calling thread, the main one */
    static _Atomic uint32_t has_stack;
    atomic_store(&fault_handler, handler);
    if (handler && atomic_exchange(&has_stack, 1) == 0)
        tn_posix_signal_stack_enter(&stack);
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    if (handler) {
        action.sa_sigaction = on_fault;
    } else {
        action.sa_flags = 0;
        action.sa_handler = SIG_DFL;
    }
    (void)sigaction(SIGBUS, &action, NULL);
}

void tn_exit_now(int exit_code)
{
    tn_terminal_restore_for_end();
    _exit(exit_code);
}

/* ---- anonymous memory ---- */

static _Atomic uint64_t n_commits;

void *tn_pages_reserve(size_t n_bytes)
{
    void *p = mmap(NULL, n_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANON | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

bool tn_pages_commit(void *p, size_t n_bytes)
{
    atomic_fetch_add(&n_commits, 1);
    return mprotect(p, n_bytes, PROT_READ | PROT_WRITE) == 0;
}

void tn_pages_release(void *p, size_t n_bytes)
{
    if (p)
        munmap(p, n_bytes);
}

void tn_pages_advise_huge(void *p, size_t n_bytes)
{
#if defined(MADV_HUGEPAGE)
    (void)madvise(p, n_bytes, MADV_HUGEPAGE);
#else
    (void)p, (void)n_bytes;
#endif
}

uint64_t tn_stack_limit_bytes(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return UINT64_MAX;
    return limit.rlim_cur;
}

/* The environment's strings are at the beginning of the stack.  If setenv moved one, or on another
 * thread's stack, the distance is within the limit only by chance. */
uint64_t tn_stack_used_bytes(void)
{
    extern char **environ;
    const uint64_t n_limit = tn_stack_limit_bytes();
    const uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    uint64_t n_used = 0;
    if (n_limit == UINT64_MAX)
        return 0;
    for (char **e = environ; e && *e; e++) {
        const uint64_t n = (uintptr_t)*e + strlen(*e) + 1 - here;
        if ((uintptr_t)*e > here && n <= n_limit && n > n_used)
            n_used = n;
    }
    return n_used;
}

size_t tn_page_bytes(void)
{
    long n = sysconf(_SC_PAGESIZE);
    return n > 0 ? (size_t)n : 4096;
}

uint64_t tn_pages_n_commits(void)
{
    return atomic_load(&n_commits);
}
