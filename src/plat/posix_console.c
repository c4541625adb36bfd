/* SPDX-License-Identifier: MIT
 *
 * POSIX: standard streams, the terminal, signals.  Signal handlers only set flags.  The one
 * exception: a second Ctrl-C within two seconds, if the first has not been examined, ends the
 * process.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <unistd.h>

#include "base/compiler.h"
#include "plat/plat.h"
#include "plat/plat_os.h"
#include "plat/posix.h"
#include "plat/terminal.h"

/* ---- streams ---- */

void tn_process_init(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    signal(SIGPIPE, SIG_IGN); /* a closed reader is then an error code of write */
    signal(SIGXFSZ, SIG_IGN); /* and so is reaching the file-size limit */
    /* A closed standard stream would give its number to the next opened file.  It is opened with
     * the wrong access mode, so that using it stays an error. */
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)!open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
}

static int stream_fd(enum tn_stream stream)
{
    return stream == TN_STDIN ? STDIN_FILENO
                              : stream == TN_STDOUT ? STDOUT_FILENO : STDERR_FILENO;
}

bool tn_is_terminal(enum tn_stream stream)
{
    return isatty(stream_fd(stream)) == 1;
}

bool tn_console_is_own(void)
{
    return false;
}

void tn_console_wait_for_key(void)
{
}

/* "de_DE.UTF-8", "C.utf8@x", "UTF-8"; not "C" and not "de_DE", which means Latin-1.  A static
 * program cannot query locales, and minimal systems set no variable at all: those are assumed to
 * use UTF-8. */
bool tn_terminal_is_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    const char *locale = NULL;
    for (size_t i = 0; i < TN_COUNT_OF(names) && !(locale && *locale); i++)
        locale = getenv(names[i]);
    if (!locale || !*locale)
        return true;
    const char *dot = strchr(locale, '.');
    const char *charset = dot ? dot + 1 : locale;
    size_t n = strcspn(charset, "@");
    return (n == 5 && strncasecmp(charset, "utf-8", n) == 0) ||
           (n == 4 && strncasecmp(charset, "utf8", n) == 0);
}

uint32_t tn_terminal_columns(void)
{
    static const int fds[] = {STDERR_FILENO, STDOUT_FILENO, STDIN_FILENO};
    for (size_t i = 0; i < TN_COUNT_OF(fds); i++) {
        struct winsize size;
        if (ioctl(fds[i], TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
            return size.ws_col;
    }
    return 80;
}

int tn_write_stream(enum tn_stream stream, const void *bytes, size_t n_bytes)
{
    int fd = stream_fd(stream);
    size_t done = 0;
    while (done < n_bytes) {
        ssize_t n = write(fd, (const char *)bytes + done, n_bytes - done);
        if (n >= 0) {
            done += (size_t)n;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            /* Another program that shares the terminal made it non-blocking. */
            struct pollfd wait = {.fd = fd, .events = POLLOUT};
            (void)poll(&wait, 1, -1);
        } else if (errno != EINTR) {
            return errno == EPIPE ? 1 : 2;
        }
    }
    return 0;
}

/* ---- signals ---- */

static void on_interrupt(int signal_number)
{
    int saved = errno;
    if (tn_os_note_interrupt()) {
        tn_terminal_restore_for_end();
        signal(signal_number, SIG_DFL);
        raise(signal_number); /* delivered when this handler returns */
    }
    errno = saved;
}

/* Signals that were ignored at the start (nohup, background jobs) stay ignored.  Calls are not
 * restarted, so that waiting for input ends. */
static void install(int signal_number, void (*handler)(int))
{
    struct sigaction old, action = {.sa_handler = handler};
    sigemptyset(&action.sa_mask);
    if (sigaction(signal_number, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
        (void)sigaction(signal_number, &action, NULL);
}

void tn_interrupt_install(void)
{
    install(SIGINT, on_interrupt);
    install(SIGTERM, tn_os_note_termination);
    install(SIGHUP, tn_os_note_termination);
}

void tn_exit_by_signal(int signal_number)
{
    sigset_t set;
    tn_terminal_restore_for_end();
    signal(signal_number, SIG_DFL);
    sigemptyset(&set);
    sigaddset(&set, signal_number);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    raise(signal_number);
    _exit(128 + signal_number);
}

/* The signals are blocked while the flags are examined and delivered only inside pselect, so that
 * none is missed in between.  A signal that arrives together with a line takes precedence: a
 * terminal discards typed input on Ctrl-C, and Linux may still report it as readable. */
bool tn_posix_wait_readable(int fd)
{
    sigset_t set, old;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &set, &old);
    while (!tn_stop_requested() && fd < FD_SETSIZE) {
        fd_set fds;
        FD_ZERO(&fds);
        FD_SET(fd, &fds);
        if (pselect(fd + 1, &fds, NULL, NULL, NULL, &old) >= 0 || errno != EINTR)
            break;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return !tn_stop_requested();
}
