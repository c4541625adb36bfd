/* SPDX-License-Identifier: MIT
 *
 * POSIX: runs the user's editor as a child process, or through a helper process, and waits for it.
 *
 * The helper is forked before the sandbox is entered.  It reads the length of a path and the path
 * from a socket pair, runs the editor, and replies with an outcome.  It exits when this process
 * does.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "plat/external_editor.h"
#include "plat/plat_os.h"
#include "plat/posix.h"
#include "plat/sandbox.h"

#define MAX_WORDS 16
#define CANNOT_START 127

static struct {
    pid_t pid; /* 0: no helper */
    int socket;
} helper;

struct outcome {
    int error; /* errno of the attempt to start it, or 0 */
    int state; /* of waitpid */
};

/* ---- the editor ---- */

/* Splits `line` at its blanks; the path comes last. */
static void split(char **words, char *line, const char *path)
{
    int n = 0;
    for (char *word = strtok(line, " "); word && n < MAX_WORDS; word = strtok(NULL, " "))
        words[n++] = word;
    words[n++] = (char *)path;
    words[n] = NULL;
}

/* The editor receives all keys: a Ctrl-C in it does not interrupt this process. */
static pid_t start(char **words)
{
    const pid_t pid = fork();
    if (pid == 0) {
        (void)signal(SIGINT, SIG_DFL);
        (void)signal(SIGPIPE, SIG_DFL);
        (void)execvp(words[0], words);
        _exit(CANNOT_START);
    }
    return pid;
}

static struct outcome run(char **words)
{
    struct outcome outcome = {0, 0};
    const pid_t pid = start(words);
    if (pid < 0)
        outcome.error = errno;
    while (pid > 0 && waitpid(pid, &outcome.state, 0) < 0 && errno == EINTR)
        ;
    return outcome;
}

/* ---- the helper ---- */

static bool read_all(int fd, void *dst, size_t n)
{
    size_t done = 0;
    while (done < n) {
        const ssize_t n_read = read(fd, (char *)dst + done, n - done);
        if (n_read == 0 || (n_read < 0 && errno != EINTR))
            return false;
        done += n_read > 0 ? (size_t)n_read : 0;
    }
    return true;
}

/* Allocates nothing: other threads may have held locks when the process was forked. */
static void serve(int fd, char **words, char *path, size_t capacity)
{
    size_t n;
    (void)signal(SIGINT, SIG_IGN); /* owned by the editor or the prompt */
    (void)signal(SIGTERM, SIG_DFL);
    (void)signal(SIGHUP, SIG_DFL);
    while (read_all(fd, &n, sizeof n) && n < capacity && read_all(fd, path, n)) {
        path[n] = '\0';
        const struct outcome outcome = run(words);
        if (!tn_posix_write_all(fd, &outcome, sizeof outcome))
            break;
    }
    _exit(0);
}

static void fork_helper(char *line)
{
    static char path[PATH_MAX];
    char *words[MAX_WORDS + 2];
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        return;
    (void)fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    (void)fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    split(words, line, path);
    const pid_t pid = fork();
    if (pid == 0) {
        (void)close(ends[0]);
        serve(ends[1], words, path, sizeof path);
    }
    (void)close(ends[1]);
    helper.pid = pid > 0 ? pid : 0;
    helper.socket = ends[0];
    if (pid < 0)
        (void)close(ends[0]);
}

void tn_external_editor_prepare(void)
{
    char *line = tn_copy_text(tn_os_editor());
    if (line)
        fork_helper(line);
    tn_free(line);
}

void tn_external_editor_end(void)
{
    if (!helper.pid)
        return;
    (void)close(helper.socket);
    while (waitpid(helper.pid, NULL, 0) < 0 && errno == EINTR)
        ;
    helper.pid = 0;
}

static bool ask_helper(struct outcome *outcome, const char *path)
{
    const size_t n = strlen(path);
    return tn_posix_write_all(helper.socket, &n, sizeof n) &&
           tn_posix_write_all(helper.socket, path, n) &&
           read_all(helper.socket, outcome, sizeof *outcome);
}

/* ---- interface ---- */

static tern_status judge(const struct outcome *outcome, const char *name, struct tern_error *err)
{
    const int state = outcome->state;
    if (outcome->error)
        return tn_fail(err, TERN_UNSUPPORTED, "%s: %s", name, strerror(outcome->error));
    if (WIFEXITED(state) && WEXITSTATUS(state) == CANNOT_START)
        return tn_fail(err, TERN_UNSUPPORTED, "%s: cannot be started; set $EDITOR", name);
    if (!WIFEXITED(state) || WEXITSTATUS(state) != 0)
        return tn_fail(err, TERN_INTERNAL, "%s: exited with an error; the text is unchanged", name);
    return tn_ok(err);
}

tern_status tn_external_editor_run(const char *path, struct tern_error *err)
{
    char *words[MAX_WORDS + 2], *line = tn_copy_text(tn_os_editor());
    struct outcome outcome = {0, 0};
    tern_status status = TERN_OK;
    if (!line)
        return tn_fail(err, TERN_MEMORY, "no memory to start an editor");
    split(words, line, path);
    if (!helper.pid && tn_sandbox_is_active())
        status = tn_fail(err, TERN_UNSUPPORTED,
                         "%s: the sandbox starts no programs; start tern with --no-sandbox",
                         words[0]);
    else if (!helper.pid)
        outcome = run(words);
    else if (!ask_helper(&outcome, path))
        status = tn_fail(err, TERN_INTERNAL, "%s: the process that starts it has exited", words[0]);
    if (status == TERN_OK)
        status = judge(&outcome, words[0], err);
    tn_free(line);
    return status;
}
