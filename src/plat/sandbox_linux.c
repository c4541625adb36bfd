/* SPDX-License-Identifier: MIT
 *
 * The sandbox of Linux: a seccomp filter compiled from a list of rules, one row per system call.
 * sandbox.h lists what it allows.
 */
#include "plat/sandbox.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "plat/posix.h"

static _Atomic bool is_active;

bool tn_sandbox_is_active(void)
{
    return atomic_load(&is_active);
}

#if defined(__has_feature)
#define HAS_FEATURE(x) __has_feature(x)
#else
#define HAS_FEATURE(x) 0
#endif

#if defined(__x86_64__)
#define OWN_ARCH AUDIT_ARCH_X86_64
#define FOREIGN_CALLS 0x40000000u /* and above: system calls of x32 */
#elif defined(__aarch64__)
#define OWN_ARCH AUDIT_ARCH_AARCH64
#define FOREIGN_CALLS UINT32_MAX
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) ||                               \
    HAS_FEATURE(address_sanitizer) || HAS_FEATURE(thread_sanitizer) ||                             \
    HAS_FEATURE(memory_sanitizer)

bool tn_sandbox_exists(void)
{
    return false;
}

bool tn_sandbox_enter(uint32_t purposes, const char **why)
{
    (void)purposes;
    *why = "a sanitizer reads files at the end";
    return false;
}

#elif !defined(OWN_ARCH)

bool tn_sandbox_exists(void)
{
    return false;
}

bool tn_sandbox_enter(uint32_t purposes, const char **why)
{
    (void)purposes;
    *why = "there is none for this processor";
    return false;
}

#else

/* ---- rules ---- */

#define ALLOWED SECCOMP_RET_ALLOW
#define KILLED SECCOMP_RET_KILL_PROCESS
#define FAILS(code) (SECCOMP_RET_ERRNO | (code))
#define NO_ARGUMENT UINT8_MAX
#define NEXT_RULE 1u /* not the value of any action */
static_assert(SECCOMP_RET_ALLOW != NEXT_RULE && SECCOMP_RET_KILL_PROCESS != NEXT_RULE, "");

/* A system call, and the action if (argument & mask) == value, in its low 32 bits. */
struct rule {
    uint32_t call;
    uint32_t action, otherwise;
    uint32_t mask, value;
    uint8_t i_argument; /* NO_ARGUMENT: unconditional */
    uint8_t purposes;   /* 0: in every filter */
};

/* clang-format off */
#define ALWAYS(name, what) {__NR_##name, what, 0, 0, 0, NO_ARGUMENT, 0}
#define ALLOW(name) ALWAYS(name, ALLOWED)
#define KILL(name) ALWAYS(name, KILLED)
#define WHERE(name, i, mask, value, what, otherwise) \
    {__NR_##name, what, otherwise, mask, value, i, 0}
#define SOCKET(name) {__NR_##name, ALLOWED, 0, 0, 0, NO_ARGUMENT, TN_SANDBOX_SOCKETS}
#define FILES(name) {__NR_##name, ALLOWED, 0, 0, 0, NO_ARGUMENT, TN_SANDBOX_FILES}
#define TERMINAL(name, i, value, otherwise) \
    {__NR_##name, ALLOWED, otherwise, UINT32_MAX, value, i, TN_SANDBOX_TERMINAL}

#define WRITES ((uint32_t)(O_WRONLY | O_RDWR | O_CREAT | O_TRUNC))
#define OPEN(name, i) WHERE(name, i, WRITES, 0, FAILS(EPERM), KILLED)
#define CODE ((uint32_t)PROT_EXEC)
#define F_FLAGS 7 /* F_DUPFD to F_SETLKW, flags of descriptors among them */
static_assert((F_GETFD | F_SETFD | F_GETFL | F_SETFL) <= F_FLAGS && F_SETOWN > F_FLAGS, "");

/* System calls that are not listed fail with EPERM.  The most frequent ones come first. */
static const struct rule rules[] = {
    ALLOW(futex), ALLOW(read), ALLOW(write), SOCKET(recvfrom), SOCKET(sendto),
#if defined(__NR_poll)
    ALLOW(poll), ALLOW(select),
#endif
    ALLOW(ppoll), ALLOW(pselect6),

    /* open sockets */
    SOCKET(accept), SOCKET(accept4), SOCKET(shutdown), SOCKET(setsockopt), SOCKET(getsockopt),
    SOCKET(getsockname), SOCKET(getpeername),

    /* files by name */
    FILES(openat), FILES(newfstatat), FILES(statx), FILES(faccessat), FILES(readlinkat),
    FILES(getdents64), FILES(unlinkat), FILES(renameat2), FILES(mkdirat), FILES(ftruncate),
    FILES(fallocate), FILES(fchmod), FILES(flock), FILES(fadvise64), FILES(statfs), FILES(fstatfs),
    FILES(getcwd), FILES(umask),
#if defined(__NR_faccessat2)
    FILES(faccessat2),
#endif
#if defined(__NR_renameat)
    FILES(renameat),
#endif
#if defined(__x86_64__)
    FILES(open), FILES(stat), FILES(lstat), FILES(access), FILES(readlink), FILES(unlink),
    FILES(rename), FILES(mkdir), FILES(rmdir),
#endif

    /* the terminal: its modes, and stopping the whole group as its keys do */
    TERMINAL(ioctl, 1, TCSETS, NEXT_RULE), TERMINAL(ioctl, 1, TCSETSW, NEXT_RULE),
    TERMINAL(ioctl, 1, TCSETSF, NEXT_RULE), TERMINAL(ioctl, 1, TIOCGPGRP, NEXT_RULE),
    TERMINAL(kill, 0, 0, FAILS(EPERM)), TERMINAL(getpgid, 0, 0, FAILS(EPERM)),
#if defined(__NR_getpgrp)
    {__NR_getpgrp, ALLOWED, 0, 0, 0, NO_ARGUMENT, TN_SANDBOX_TERMINAL},
#endif

    /* open descriptors */
    ALLOW(readv), ALLOW(writev), ALLOW(pread64), ALLOW(pwrite64), ALLOW(lseek), ALLOW(close),
    ALLOW(fstat), ALLOW(fsync), ALLOW(fdatasync),
    WHERE(fcntl, 1, ~(uint32_t)F_FLAGS, 0, ALLOWED, FAILS(EPERM)), /* not F_SETOWN, which sends
                                                                    * signals */
    WHERE(newfstatat, 3, AT_EMPTY_PATH, AT_EMPTY_PATH, ALLOWED, FAILS(EPERM)),
    WHERE(statx, 2, AT_EMPTY_PATH, AT_EMPTY_PATH, ALLOWED, FAILS(EPERM)),
    WHERE(ioctl, 1, UINT32_MAX, TCGETS, ALLOWED, NEXT_RULE), /* isatty */
    WHERE(ioctl, 1, UINT32_MAX, TIOCGWINSZ, ALLOWED, NEXT_RULE),
    WHERE(ioctl, 1, UINT32_MAX, FIONBIO, ALLOWED, FAILS(EPERM)),

    /* memory, never executable */
    WHERE(mmap, 2, CODE, 0, ALLOWED, FAILS(EPERM)),
    WHERE(mprotect, 2, CODE, 0, ALLOWED, FAILS(EPERM)),
    ALLOW(munmap), ALLOW(mremap), ALLOW(madvise), ALLOW(brk), ALLOW(membarrier),

    /* threads and time */
    WHERE(clone, 0, CLONE_THREAD, CLONE_THREAD, ALLOWED, KILLED),
    ALLOW(exit), ALLOW(exit_group), ALLOW(set_robust_list), ALLOW(set_tid_address),
    ALLOW(sched_yield), ALLOW(sched_getaffinity), ALLOW(sched_setaffinity), ALLOW(gettid),
    ALLOW(getpid), ALLOW(clock_gettime), ALLOW(clock_getres), ALLOW(clock_nanosleep),
    ALLOW(nanosleep), ALLOW(gettimeofday), ALLOW(getrandom), ALLOW(getrusage), ALLOW(sysinfo),
    ALLOW(uname), ALLOW(getuid), ALLOW(geteuid), ALLOW(getgid), ALLOW(getegid),
    WHERE(prctl, 0, UINT32_MAX, PR_SET_NAME, ALLOWED, FAILS(EPERM)),
    WHERE(prlimit64, 2, UINT32_MAX, 0, ALLOWED, FAILS(EPERM)), /* only reads a limit */
#if defined(__NR_time)
    ALLOW(time),
#endif
#if defined(__NR_rseq)
    ALLOW(rseq),
#endif

    /* signals; tgkill's first argument is compared with this process when the filter is made */
    ALLOW(rt_sigaction), ALLOW(rt_sigprocmask), ALLOW(rt_sigreturn), ALLOW(rt_sigtimedwait),
    ALLOW(sigaltstack), ALLOW(restart_syscall), ALLOW(wait4),

    /* calls whose arguments are in memory, where the filter cannot see them: the C library falls
     * back to the calls above */
#if defined(__NR_clone3)
    ALWAYS(clone3, FAILS(ENOSYS)),
#endif
#if defined(__NR_openat2)
    ALWAYS(openat2, FAILS(ENOSYS)),
#endif
#if defined(__NR_io_uring_setup)
    ALWAYS(io_uring_setup, FAILS(ENOSYS)),
#endif

    /* calls that no bug makes by accident */
    KILL(execve), KILL(execveat), KILL(connect), OPEN(openat, 2), KILL(unlinkat), KILL(renameat2),
    KILL(linkat), KILL(symlinkat), KILL(mkdirat), KILL(mknodat), KILL(fchmodat), KILL(fchownat),
    KILL(truncate), KILL(ptrace), KILL(process_vm_readv), KILL(process_vm_writev), KILL(bpf),
    KILL(init_module), KILL(finit_module), KILL(kexec_load), KILL(mount), KILL(umount2),
    KILL(pivot_root), KILL(chroot), KILL(setns), KILL(unshare),
#if defined(__NR_renameat)
    KILL(renameat),
#endif
#if defined(__x86_64__)
    KILL(fork), KILL(vfork), OPEN(open, 1), KILL(creat), KILL(unlink), KILL(rename), KILL(link),
    KILL(symlink), KILL(mkdir), KILL(rmdir), KILL(mknod), KILL(chmod), KILL(chown), KILL(lchown),
#endif
};
/* clang-format on */

/* ---- the filter ---- */

#define MAX_PER_RULE 6
#define MAX_INSTRUCTIONS (16 + MAX_PER_RULE * TN_COUNT_OF(rules))
static_assert(MAX_INSTRUCTIONS <= BPF_MAXINSNS, "the kernel takes no longer filter");

struct program {
    struct sock_filter code[MAX_INSTRUCTIONS];
    unsigned short n;
};

static void emit(struct program *p, uint16_t code, uint32_t k, uint8_t if_true, uint8_t if_false)
{
    assert(p->n < MAX_INSTRUCTIONS);
    p->code[p->n++] = (struct sock_filter){code, if_true, if_false, k};
}

static void emit_load(struct program *p, size_t offset)
{
    emit(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void emit_return(struct program *p, uint32_t action)
{
    emit(p, BPF_RET | BPF_K, action, 0, 0);
}

/* Little-endian: the low half of an argument comes first. */
static void emit_rule(struct program *p, const struct rule *r)
{
    const bool has_argument = r->i_argument != NO_ARGUMENT;
    const bool falls_through = has_argument && r->otherwise == NEXT_RULE;
    emit_load(p, offsetof(struct seccomp_data, nr));
    if (!has_argument) {
        emit(p, BPF_JMP | BPF_JEQ | BPF_K, r->call, 0, 1);
        emit_return(p, r->action);
        return;
    }
    emit(p, BPF_JMP | BPF_JEQ | BPF_K, r->call, 0, falls_through ? 4 : 5);
    emit_load(p, offsetof(struct seccomp_data, args) + r->i_argument * sizeof(uint64_t));
    emit(p, BPF_ALU | BPF_AND | BPF_K, r->mask, 0, 0);
    emit(p, BPF_JMP | BPF_JEQ | BPF_K, r->value, 0, 1);
    emit_return(p, r->action);
    if (!falls_through)
        emit_return(p, r->otherwise);
}

static void make_filter(struct program *p, uint32_t purposes)
{
    const struct rule to_itself =
        WHERE(tgkill, 0, UINT32_MAX, (uint32_t)getpid(), ALLOWED, FAILS(EPERM));
    emit_load(p, offsetof(struct seccomp_data, arch));
    emit(p, BPF_JMP | BPF_JEQ | BPF_K, OWN_ARCH, 1, 0);
    emit_return(p, KILLED);
    emit_load(p, offsetof(struct seccomp_data, nr));
    emit(p, BPF_JMP | BPF_JGE | BPF_K, FOREIGN_CALLS, 0, 1);
    emit_return(p, KILLED);
    for (size_t i = 0; i < TN_COUNT_OF(rules); i++)
        if (!rules[i].purposes || rules[i].purposes & purposes)
            emit_rule(p, &rules[i]);
    emit_rule(p, &to_itself);
    emit_return(p, FAILS(EPERM));
}

/* ---- entering ---- */

bool tn_sandbox_exists(void)
{
    return true;
}

/* Reads the time zone, which tn_local_time does not read again, and opens /proc/self/status. */
static void read_system_files(void)
{
    tzset();
    tn_posix_usage_keep_open();
}

#if !defined(SECCOMP_FILTER_FLAG_SPEC_ALLOW)
#define SECCOMP_FILTER_FLAG_SPEC_ALLOW 4u
#endif

static bool install(const struct sock_fprog *filter, uint32_t flags)
{
    return syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, flags, filter) == 0;
}

/* Kernels before 5.16 turn off speculative loads inside, against code that reads this process's own
 * secrets.  No such code runs here, and computing would be slower.  The flag is unknown to kernels
 * before 4.17. */
static bool install_for_all_threads(const struct sock_fprog *filter)
{
    const uint32_t flags = SECCOMP_FILTER_FLAG_TSYNC;
    return install(filter, flags | SECCOMP_FILTER_FLAG_SPEC_ALLOW) ||
           (errno == EINVAL && install(filter, flags));
}

bool tn_sandbox_enter(uint32_t purposes, const char **why)
{
    struct program *p = tn_alloc_zeroed(1, sizeof *p);
    *why = "";
    if (!p) {
        *why = "no memory for it";
        return false;
    }
    make_filter(p, purposes);
    read_system_files();
    const struct sock_fprog filter = {p->n, p->code};
    const bool is_in =
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && install_for_all_threads(&filter);
    if (!is_in)
        *why = errno == ENOSYS || errno == EINVAL ? "this kernel has no seccomp filters"
                                                  : "the kernel refuses seccomp filters";
    tn_free(p);
    atomic_store(&is_active, is_in);
    return is_in;
}

#endif
