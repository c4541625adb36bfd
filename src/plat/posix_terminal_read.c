/* SPDX-License-Identifier: MIT
 *
 * POSIX: reads typed bytes from a terminal, together with signals and timeouts as events.  Its
 * modes are in posix_terminal.c.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/select.h>
#include <unistd.h>

#include "base/compiler.h"
#include "plat/plat.h"
#include "plat/plat_os.h"
#include "plat/posix.h"
#include "plat/terminal.h"

#define TTY STDIN_FILENO

void tn_terminal_note_interrupt(void)
{
    (void)tn_os_note_interrupt();
}

/* A flag that a handler set, as an event; TIMEOUT: none. */
static enum tn_terminal_event take_flag(void)
{
    if (tn_stop_requested())
        return TN_TERMINAL_INTERRUPT;
    if (tn_posix_terminal_take_resumed())
        return TN_TERMINAL_RESUMED;
    if (tn_posix_terminal_take_resized())
        return TN_TERMINAL_RESIZED;
    return TN_TERMINAL_TIMEOUT;
}

/* Signals are delivered only inside pselect, so that none is missed between the check and the
 * wait. */
static enum tn_terminal_event wait_for_input(uint32_t timeout_ms)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGCONT, SIGTSTP};
    struct timespec time = {.tv_sec = timeout_ms / 1000, .tv_nsec = timeout_ms % 1000 * 1000000L};
    sigset_t set, old;
    sigemptyset(&set);
    for (size_t i = 0; i < TN_COUNT_OF(numbers); i++)
        sigaddset(&set, numbers[i]);
    pthread_sigmask(SIG_BLOCK, &set, &old);
    enum tn_terminal_event event = take_flag();
    if (event == TN_TERMINAL_TIMEOUT) {
        fd_set fds;
        FD_ZERO(&fds);
        FD_SET(TTY, &fds);
        int n = pselect(TTY + 1, &fds, NULL, NULL,
                        timeout_ms == TN_TERMINAL_FOR_EVER ? NULL : &time, &old);
        event = take_flag();
        if (event == TN_TERMINAL_TIMEOUT && n > 0)
            event = TN_TERMINAL_BYTES;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return event;
}

/* Nothing was read: whether the terminal is gone, or only its input was discarded. */
static bool has_hung_up(void)
{
    struct pollfd terminal = {.fd = TTY, .events = POLLIN};
    return poll(&terminal, 1, 0) < 0 || (terminal.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0;
}

enum tn_terminal_event tn_terminal_read(void *dst, size_t n, uint32_t timeout_ms, size_t *n_read,
                                        struct tern_error *err)
{
    *n_read = 0;
    for (;;) {
        enum tn_terminal_event event = wait_for_input(timeout_ms);
        if (event == TN_TERMINAL_TIMEOUT && timeout_ms == TN_TERMINAL_FOR_EVER)
            continue; /* another signal */
        if (event != TN_TERMINAL_BYTES)
            return event;
        ssize_t n_got = read(TTY, dst, n);
        if (n_got > 0) {
            *n_read = (size_t)n_got;
            return TN_TERMINAL_BYTES;
        }
        if (n_got == 0 ? has_hung_up() : errno == EIO)
            return tn_stop_requested() ? TN_TERMINAL_INTERRUPT : TN_TERMINAL_END;
        if (n_got < 0 && errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK) {
            tn_os_fail(err, TERN_INPUT, "the terminal", "read failed", (unsigned long)errno);
            return TN_TERMINAL_FAILED;
        }
    }
}
