/* SPDX-License-Identifier: MIT
 *
 * The sandbox, tested in child processes: what stays allowed, what fails, and what kills the
 * process.
 */
#include "plat/sandbox.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "plat/plat.h"

#if !defined(__linux__)

static void there_is_none(void **state)
{
    (void)state;
    const char *why = "";
    assert_false(tn_sandbox_enter(TN_SANDBOX_SOCKETS, &why));
    assert_false(tn_sandbox_is_active());
    assert_true(why[0] != '\0');
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(there_is_none)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FILE_NAME "test_sandbox.tmp"
#define NO_SANDBOX 77 /* exit code of a child: this system has no sandbox */

static int opened = -1;   /* a file of a page, open for reading */
static int log_file = -1; /* open for writing */
static int unconnected;   /* a socket */
static int listener;
static struct sockaddr_in address;

/* An attempt inside the sandbox; 0: the expected result. */
typedef int attempt(void);

/* Exit code of a child that entered the sandbox and ran `try`, or minus the signal that killed it.
 */
static int inside(attempt *try, uint32_t purposes)
{
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const char *why;
        const bool is_in = tn_sandbox_enter(purposes, &why);
        if (!is_in)
            fprintf(stderr, "no sandbox: %s\n", why);
        _exit(!is_in ? NO_SANDBOX : tn_sandbox_is_active() ? try() : 1);
    }
    int status;
    while (waitpid(child, &status, 0) < 0)
        assert_int_equal(errno, EINTR);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static int nothing(void)
{
    return 0;
}

static void skip_without(void)
{
    if (inside(nothing, 0) == NO_SANDBOX)
        skip();
}

static bool is_refused(long result)
{
    return result == -1 && (errno == EPERM || errno == ENOSYS);
}

/* ---- allowed ---- */

static void *set_flag(void *flag)
{
    return memset(flag, 1, 1);
}

static void thread_main(void *flag)
{
    (void)set_flag(flag);
}

static int work(void)
{
    char *bytes = malloc(8 << 20), text[8];
    char *file = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, opened, 0);
    char *fresh = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    _Atomic char flag = 0;
    struct tn_thread *thread = tn_thread_start(thread_main, &flag);
    struct tn_usage usage;
    struct stat st;
    struct tm now;
    if (!bytes || file == MAP_FAILED || fresh == MAP_FAILED || !thread)
        return 1;
    tn_thread_join(thread);
    memset(bytes, 1, 8 << 20);
    free(bytes);
    tn_usage_now(&usage);
    if (!flag || file[5] != 'x' || fstat(opened, &st) != 0 || st.st_size != 4096)
        return 2;
    if (pread(opened, text, 8, 100) != 8 || write(log_file, "line\n", 5) != 5)
        return 3;
    if (usage.rss_bytes == 0 || tn_now_ns() == 0 || !tn_local_time(&now) || tn_random_seed() == 0)
        return 4;
    return 0;
}

static void computing_stays_allowed(void **state)
{
    (void)state;
    skip_without();
    assert_int_equal(inside(work, 0), 0);
    assert_int_equal(inside(work, TN_SANDBOX_SOCKETS), 0);
}

static int abort_at_once(void)
{
    abort();
}

static void a_failed_assertion_ends_as_usual(void **state)
{
    (void)state;
    skip_without();
    assert_int_equal(inside(abort_at_once, 0), -SIGABRT);
}

static int accept_one(void)
{
    char text[4];
    const int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (client < 0)
        return errno == EPERM ? 9 : 1;
    return recv(client, text, 4, 0) == 4 && send(client, "pong", 4, 0) == 4 ? 0 : 2;
}

static void accepting_needs_its_purpose(void **state)
{
    (void)state;
    char text[4];
    skip_without();
    assert_int_equal(inside(accept_one, 0), 9);
    const int client = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(client, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(send(client, "ping", 4, 0), 4);
    assert_int_equal(inside(accept_one, TN_SANDBOX_SOCKETS), 0);
    assert_int_equal(recv(client, text, 4, 0), 4);
    close(client);
}

/* ---- failing ---- */

static int harmless(void)
{
    struct stat st;
    const int fds[] = {open("/etc/passwd", O_RDONLY), openat(AT_FDCWD, ".", O_DIRECTORY),
                       socket(AF_INET, SOCK_STREAM, 0), socket(AF_UNIX, SOCK_DGRAM, 0)};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] != -1)
            return 10 + (int)i;
    if (!is_refused(stat("/etc/passwd", &st)) || !is_refused(access("/etc/passwd", R_OK)) ||
        !is_refused(kill(getppid(), 0)) || !is_refused(fcntl(listener, F_SETOWN, getppid())) ||
        fcntl(listener, F_GETFL) < 0 || !is_refused(setuid(1)) || !is_refused(chdir("/")) ||
        !is_refused(bind(unconnected, (struct sockaddr *)&address, sizeof address)) ||
        !is_refused(syscall(__NR_io_uring_setup, 1, NULL)))
        return 1;
    if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
        return 2;
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return is_refused(mprotect(page, 4096, PROT_READ | PROT_EXEC)) ? 0 : 3;
}

static void the_rest_fails(void **state)
{
    (void)state;
    skip_without();
    assert_int_equal(inside(harmless, TN_SANDBOX_SOCKETS), 0);
}

/* ---- purposes ---- */

static int use_files(void)
{
    struct stat st;
    char path[4096];
    const int made = open(FILE_NAME ".new", O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (made < 0 || write(made, "text", 4) != 4 || close(made) != 0)
        return 1;
    if (rename(FILE_NAME ".new", FILE_NAME ".more") != 0 || stat(FILE_NAME ".more", &st) != 0 ||
        st.st_size != 4 || access(FILE_NAME ".more", R_OK) != 0 || !getcwd(path, sizeof path))
        return 2;
    return 0;
}

static int leave_no_files(void)
{
    const int code = use_files();
    if (mkdir(FILE_NAME ".dir", 0700) != 0 || rmdir(FILE_NAME ".dir") != 0 ||
        unlink(FILE_NAME ".more") != 0)
        return 3;
    return code;
}

static int stop_the_group(void)
{
    return is_refused(kill(0, 0)) && is_refused(ioctl(opened, TCSETS, NULL)) ? 9 : 0;
}

static int type_for_the_user(void)
{
    return is_refused(ioctl(opened, TIOCSTI, "x")) ? 0 : 1;
}

static void each_purpose_allows_its_own(void **state)
{
    (void)state;
    skip_without();
    assert_int_equal(inside(leave_no_files, TN_SANDBOX_FILES), 0);
    assert_int_equal(inside(leave_no_files, TN_SANDBOX_TERMINAL), -SIGSYS);
    assert_int_equal(inside(stop_the_group, TN_SANDBOX_FILES), 9);
    assert_int_equal(inside(stop_the_group, TN_SANDBOX_TERMINAL), 0);
    assert_int_equal(inside(type_for_the_user, TN_SANDBOX_TERMINAL), 0);
    assert_int_equal(inside(accept_one, TN_SANDBOX_FILES | TN_SANDBOX_TERMINAL), 9);
}

/* The filter also applies to threads that existed before. */
static _Atomic uint32_t may_try, tried;

static void try_later(void *result)
{
    while (!atomic_load(&may_try))
        tn_wait_on(&may_try, 0, 10000000);
    *(int *)result = socket(AF_INET, SOCK_STREAM, 0);
    atomic_store(&tried, 1);
    tn_wake_all(&tried);
}

static void threads_of_before_are_held_too(void **state)
{
    (void)state;
    skip_without();
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        static int result = 0;
        const char *why;
        struct tn_thread *thread = tn_thread_start(try_later, &result);
        const bool is_in = tn_sandbox_enter(0, &why);
        atomic_store(&may_try, 1);
        tn_wake_all(&may_try);
        tn_thread_join(thread);
        _exit(is_in && result == -1 ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- fatal ---- */

static int run_program(void)
{
    char *const argv[] = {"true", NULL};
    return execv("/bin/true", argv);
}

static int make_process(void)
{
    return (int)syscall(__NR_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}

static int call_somebody(void)
{
    return connect(unconnected, (struct sockaddr *)&address, sizeof address);
}

static int open_to_write(void)
{
    return open(FILE_NAME, O_WRONLY);
}

static int make_file(void)
{
    return openat(AT_FDCWD, FILE_NAME ".new", O_RDONLY | O_CREAT, 0600);
}

static int rename_file(void)
{
    return rename(FILE_NAME, FILE_NAME ".new");
}

static int remove_file(void)
{
    return unlink(FILE_NAME);
}

static int look_into_others(void)
{
    return (int)syscall(__NR_ptrace, 16, getppid(), NULL, NULL); /* PTRACE_ATTACH */
}

static void attacks_end_the_process(void **state)
{
    (void)state;
    static attempt *const attempts[] = {run_program, make_process, call_somebody, open_to_write,
                                        make_file,   rename_file,  remove_file,   look_into_others};
    skip_without();
    for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++)
        assert_int_equal(inside(attempts[i], TN_SANDBOX_SOCKETS), -SIGSYS);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(inside(attempts[i], TN_SANDBOX_FILES | TN_SANDBOX_TERMINAL), -SIGSYS);
    assert_int_equal(inside(look_into_others, TN_SANDBOX_FILES | TN_SANDBOX_TERMINAL), -SIGSYS);
    assert_int_equal(access(FILE_NAME, F_OK), 0);
    assert_int_not_equal(access(FILE_NAME ".new", F_OK), 0);
}

static int open_everything(void **state)
{
    (void)state;
    socklen_t n = sizeof address;
    char page[4096];
    memset(page, 'x', sizeof page);
    opened = open(FILE_NAME, O_RDWR | O_CREAT | O_TRUNC, 0600);
    log_file = open(FILE_NAME ".log", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    unconnected = socket(AF_INET, SOCK_STREAM, 0);
    listener = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (opened < 0 || log_file < 0 || write(opened, page, sizeof page) != (ssize_t)sizeof page ||
        bind(listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(listener, 4) != 0)
        return -1;
    return getsockname(listener, (struct sockaddr *)&address, &n);
}

static int close_everything(void **state)
{
    (void)state;
    return unlink(FILE_NAME) | unlink(FILE_NAME ".log");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(computing_stays_allowed),
        cmocka_unit_test(a_failed_assertion_ends_as_usual),
        cmocka_unit_test(accepting_needs_its_purpose),
        cmocka_unit_test(the_rest_fails),
        cmocka_unit_test(each_purpose_allows_its_own),
        cmocka_unit_test(threads_of_before_are_held_too),
        cmocka_unit_test(attacks_end_the_process),
    };
    return cmocka_run_group_tests(tests, open_everything, close_everything);
}

#endif
