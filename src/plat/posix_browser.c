/* SPDX-License-Identifier: MIT
 *
 * POSIX: opens a page in the browser, with xdg-open or, on macOS, open, in a process that is not a
 * child of this one.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "plat/browser.h"

#if defined(__APPLE__)
#define OPENER "open"
#else
#define OPENER "xdg-open"
#endif
#define MAX_INHERITED 1024

static bool has_display(void)
{
#if defined(__APPLE__)
    return true;
#else
    const char *x11 = getenv("DISPLAY"), *wayland = getenv("WAYLAND_DISPLAY");
    return (x11 && x11[0]) || (wayland && wayland[0]);
#endif
}

/* Runs in the new process: becomes the opener, with /dev/null as its only file.  Writes a failure
 * to `report`, which otherwise closes on exec. */
static void become_opener(const char *url, int report)
{
    char *arguments[] = {(char *)OPENER, (char *)url, NULL};
    int null = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3 && null >= 0; fd++)
        (void)dup2(null, fd);
    for (int fd = 3; fd < MAX_INHERITED; fd++)
        if (fd != report)
            (void)close(fd);
    (void)execvp(OPENER, arguments);
    int why = errno;
    (void)!write(report, &why, sizeof why);
    _exit(127);
}

/* The intermediate process exits immediately, so that the opener has no parent that must wait for
 * it. */
static void start_opener(const char *url, int report)
{
    (void)setsid();
    pid_t pid = fork();
    if (pid == 0)
        become_opener(url, report);
    int why = errno;
    if (pid < 0)
        (void)!write(report, &why, sizeof why);
    _exit(0);
}

static tern_status fail(struct tern_error *err, int why)
{
    return why == ENOENT
               ? tn_fail(err, TERN_UNSUPPORTED, "there is no " OPENER " that opens pages")
               : tn_fail(err, TERN_UNSUPPORTED, OPENER ": %s", strerror(why));
}

tern_status tn_browser_open(const char *url, struct tern_error *err)
{
    int ends[2], why = 0, state;
    if (!has_display())
        return tn_fail(err, TERN_UNSUPPORTED, "there is no display for a browser");
    if (pipe(ends) != 0)
        return fail(err, errno);
    (void)fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    (void)fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    pid_t pid = fork();
    if (pid == 0)
        start_opener(url, ends[1]);
    if (pid < 0)
        why = errno;
    (void)close(ends[1]);
    ssize_t n = 0;
    while (pid > 0 && (n = read(ends[0], &why, sizeof why)) < 0 && errno == EINTR)
        ;
    while (pid > 0 && waitpid(pid, &state, 0) < 0 && errno == EINTR)
        ;
    (void)close(ends[0]);
    return why ? fail(err, why) : tn_ok(err);
}
