/* SPDX-License-Identifier: MIT
 *
 * POSIX: the programs of process.h, with posix_spawn and pipes.  The command starts curl with it;
 * the library starts no programs.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/error.h"
#include "plat/posix.h"
#include "plat/process.h"

extern char **environ;

#define MAX_ARGUMENTS 8

size_t tn_system_program_dirs(char **dirs, size_t capacity)
{
    static const char *const known[] = {"/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"};
    size_t n = 0;
    for (size_t i = 0; i < TN_COUNT_OF(known) && n < capacity; i++)
        if ((dirs[n] = tn_copy_text(known[i])) != NULL)
            n++;
    return n;
}

struct tn_process {
    pid_t pid;
    int output, errors; /* read ends */
};

/* Writes to ends[1] are read from ends[0]; other programs do not inherit them. */
static bool make_pipe(int ends[2])
{
    if (pipe(ends) != 0)
        return false;
    (void)fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    (void)fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    return true;
}

static void close_pipe(int ends[2])
{
    for (int i = 0; i < 2; i++)
        if (ends[i] >= 0)
            (void)close(ends[i]);
}

/* Signals that this process ignores get their default action in the new one: its writes fail once
 * this process has exited. */
static int spawn(pid_t *pid, const char *path, char *const *argv, int pipes[3][2])
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t defaults;
    (void)sigemptyset(&defaults);
    (void)sigaddset(&defaults, SIGPIPE);
    (void)sigaddset(&defaults, SIGXFSZ);
    int code = posix_spawn_file_actions_init(&files);
    if (code)
        return code;
    if ((code = posix_spawnattr_init(&attributes)) == 0) {
        code = posix_spawnattr_setsigdefault(&attributes, &defaults);
        if (!code)
            code = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
        for (int fd = 0; fd < 3 && !code; fd++)
            code = posix_spawn_file_actions_adddup2(&files, pipes[fd][fd == 0 ? 0 : 1], fd);
        if (!code)
            code = posix_spawn(pid, path, &files, &attributes, argv, environ);
        (void)posix_spawnattr_destroy(&attributes);
    }
    (void)posix_spawn_file_actions_destroy(&files);
    return code;
}

bool tn_posix_write_all(int fd, const void *bytes, size_t n)
{
    size_t done = 0;
    while (done < n) {
        const ssize_t n_written = write(fd, (const char *)bytes + done, n - done);
        if (n_written < 0 && errno != EINTR)
            return false;
        done += n_written > 0 ? (size_t)n_written : 0;
    }
    return true;
}

static tern_status fail(struct tern_error *err, const char *path, int code)
{
    return tn_fail(err, code == ENOMEM ? TERN_MEMORY : TERN_INTERNAL, "%s: cannot be started: %s",
                   path, strerror(code));
}

/* A program that exits without reading all of its input is judged by its exit code. */
static tern_status start(struct tn_process *process, int pipes[3][2], const char *path,
                         char *const *argv, const char *input, size_t n_input,
                         struct tern_error *err)
{
    for (int i = 0; i < 3; i++)
        if (!make_pipe(pipes[i]))
            return fail(err, path, errno);
    const int code = spawn(&process->pid, path, argv, pipes);
    if (code)
        return fail(err, path, code);
    (void)tn_posix_write_all(pipes[0][1], input, n_input);
    process->output = pipes[1][0];
    process->errors = pipes[2][0];
    pipes[1][0] = pipes[2][0] = -1;
    return tn_ok(err);
}

tern_status tn_process_start(struct tn_process **out, const char *path,
                             const char *const *arguments, const char *input, size_t n_input,
                             struct tern_error *err)
{
    char *argv[MAX_ARGUMENTS + 2] = {(char *)path};
    int pipes[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}};
    *out = NULL;
    for (size_t i = 0; i < MAX_ARGUMENTS && arguments[i]; i++)
        argv[i + 1] = (char *)arguments[i];
    struct tn_process *process = tn_alloc(sizeof *process);
    if (!process)
        return tn_fail(err, TERN_MEMORY, "no memory to start %s", path);
    const tern_status status = start(process, pipes, path, argv, input, n_input, err);
    for (int i = 0; i < 3; i++)
        close_pipe(pipes[i]);
    if (status == TERN_OK)
        *out = process;
    else
        tn_free(process);
    return status;
}

static size_t read_some(int fd, void *dst, size_t n)
{
    ssize_t n_read;
    do
        n_read = read(fd, dst, n);
    while (n_read < 0 && errno == EINTR);
    return n_read > 0 ? (size_t)n_read : 0;
}

size_t tn_process_read(struct tn_process *process, void *dst, size_t n)
{
    return tn_posix_wait_readable(process->output) ? read_some(process->output, dst, n) : 0;
}

static int wait_for(pid_t pid)
{
    int state = 0;
    while (waitpid(pid, &state, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFEXITED(state) ? WEXITSTATUS(state) : -1;
}

static void close_and_free(struct tn_process *process)
{
    (void)close(process->output);
    (void)close(process->errors);
    tn_free(process);
}

void tn_process_kill(struct tn_process *process)
{
    if (!process)
        return;
    (void)kill(process->pid, SIGKILL);
    (void)wait_for(process->pid);
    close_and_free(process);
}

int tn_process_wait(struct tn_process *process, char *errors, size_t n_errors)
{
    size_t n = 0, n_read;
    while (n < n_errors - 1 &&
           (n_read = read_some(process->errors, errors + n, n_errors - 1 - n)) > 0)
        n += n_read;
    errors[n] = '\0';
    errors[strcspn(errors, "\r\n")] = '\0';
    const int code = wait_for(process->pid);
    close_and_free(process);
    return code;
}
