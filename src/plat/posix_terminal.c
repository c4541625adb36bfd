/* SPDX-License-Identifier: MIT
 *
 * POSIX: the terminal's modes, and restoring them.
 *
 * Handlers run on any thread.  set_mode() changes the terminal with all signals blocked and under a
 * lock of one word, which a handler on another thread waits for; after restore_for_end() it changes
 * nothing.  A process in the background does not touch the terminal, which then belongs to the
 * shell.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/compiler.h"
#include "plat/posix.h"
#include "plat/terminal.h"

#define TTY STDIN_FILENO
#define BRACKETS_ON "\x1b[?2004h"
/* No colour, wrapping on, no paste brackets. */
#define LEAVE "\x1b[0m\x1b[?7h\x1b[?2004l"

static struct termios saved; /* written before the mode first differs from PLAIN */
static _Atomic int current_mode = TN_TERMINAL_PLAIN;
static _Atomic bool is_locked, is_ending;
static _Atomic bool was_resized, was_resumed;

/* ---- modes ---- */

static bool in_foreground(void)
{
    const pid_t group = tcgetpgrp(TTY);
    return group < 0 || group == getpgrp(); /* no job control: there is no background */
}

static void tell_terminal(const char *sequence)
{
    (void)!write(STDERR_FILENO, sequence, strlen(sequence));
}

static bool apply_attributes(enum tn_terminal_mode mode)
{
    struct termios t = saved;
    if (mode != TN_TERMINAL_PLAIN) {
        t.c_iflag &= ~(tcflag_t)(INLCR | IGNCR | ICRNL | ISTRIP | INPCK);
        t.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ECHONL | IEXTEN);
        t.c_oflag |= OPOST | ONLCR;
        t.c_cc[VMIN] = 0; /* read() never waits: Ctrl-C may have discarded the input */
        t.c_cc[VTIME] = 0;
    }
    if (mode == TN_TERMINAL_KEYS) {
        t.c_iflag &= ~(tcflag_t)IXON;
        t.c_lflag &= ~(tcflag_t)ISIG;
    }
    int result;
    do
        result = tcsetattr(TTY, TCSANOW, &t); /* keeps typed-ahead input */
    while (result != 0 && errno == EINTR);
    return result == 0;
}

static void lock_with_signals_blocked(sigset_t *old)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, old);
    while (atomic_exchange(&is_locked, true))
        ; /* the other thread needs only a few system calls */
}

static void unlock_and_unblock(const sigset_t *old)
{
    atomic_store(&is_locked, false);
    pthread_sigmask(SIG_SETMASK, old, NULL);
}

/* Restores the terminal; the mode remains the wanted one. */
static void restore_modes(void)
{
    if (atomic_load(&current_mode) == TN_TERMINAL_PLAIN || !in_foreground())
        return;
    (void)apply_attributes(TN_TERMINAL_PLAIN);
    tell_terminal(LEAVE);
}

static void reapply_mode(void)
{
    const enum tn_terminal_mode mode = (enum tn_terminal_mode)atomic_load(&current_mode);
    if (mode == TN_TERMINAL_PLAIN || atomic_load(&is_ending) || !in_foreground())
        return;
    (void)apply_attributes(mode);
    tell_terminal(BRACKETS_ON);
    atomic_store(&was_resumed, true);
}

void tn_terminal_restore_for_end(void)
{
    sigset_t old;
    lock_with_signals_blocked(&old);
    if (!atomic_exchange(&is_ending, true))
        restore_modes();
    unlock_and_unblock(&old);
}

/* ---- signals ---- */

static void on_resize(int signal_number)
{
    (void)signal_number;
    atomic_store(&was_resized, true);
}

static void on_continue(int signal_number)
{
    const int code = errno;
    sigset_t old;
    (void)signal_number;
    lock_with_signals_blocked(&old);
    reapply_mode();
    unlock_and_unblock(&old);
    errno = code;
}

static void set_handler(int signal_number, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler};
    sigemptyset(&action.sa_mask);
    (void)sigaction(signal_number, &action, NULL);
}

static void unblock(int signal_number)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal_number);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

/* Stops here, with the terminal restored.  The system does not stop a process without a parent
 * shell: then nothing happens. */
static void on_stop(int signal_number)
{
    const int code = errno;
    sigset_t old;
    lock_with_signals_blocked(&old);
    restore_modes();
    unlock_and_unblock(&old);
    set_handler(signal_number, SIG_DFL);
    raise(signal_number);
    unblock(signal_number);
    set_handler(signal_number, on_stop);
    on_continue(SIGCONT);
    errno = code;
}

/* Handles signals that end the process, after restoring the terminal. */
static void on_end(int signal_number)
{
    tn_terminal_restore_for_end();
    set_handler(signal_number, SIG_DFL);
    raise(signal_number); /* delivered when this handler returns */
}

static void install_where_default(int signal_number, void (*handler)(int))
{
    struct sigaction old;
    if (sigaction(signal_number, NULL, &old) == 0 && !(old.sa_flags & SA_SIGINFO) &&
        old.sa_handler == SIG_DFL)
        set_handler(signal_number, handler);
}

static void install_handlers(void)
{
    static const int ends[] = {SIGQUIT, SIGILL,  SIGTRAP, SIGABRT, SIGFPE,    SIGBUS,  SIGSEGV,
                               SIGSYS,  SIGALRM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGPROF, SIGXCPU};
    for (size_t i = 0; i < TN_COUNT_OF(ends); i++)
        install_where_default(ends[i], on_end);
    install_where_default(SIGTSTP, on_stop);
    install_where_default(SIGCONT, on_continue);
    install_where_default(SIGWINCH, on_resize);
    (void)atexit(tn_terminal_restore_for_end);
}

/* ---- called by the line editor ---- */

bool tn_terminal_can_edit(void)
{
    const char *name = getenv("TERM");
    return name && *name && strcmp(name, "dumb") != 0 && isatty(STDIN_FILENO) == 1 &&
           isatty(STDOUT_FILENO) == 1 && isatty(STDERR_FILENO) == 1;
}

bool tn_terminal_set_mode(enum tn_terminal_mode mode)
{
    static bool is_ready;
    if (!is_ready) {
        if (tcgetattr(TTY, &saved) != 0)
            return false;
        install_handlers();
        is_ready = true;
    }
    sigset_t old;
    lock_with_signals_blocked(&old);
    const int before = atomic_load(&current_mode);
    bool ok = true;
    if (!atomic_load(&is_ending) && before != (int)mode) {
        ok = apply_attributes(mode);
        if (ok && mode == TN_TERMINAL_PLAIN)
            tell_terminal(LEAVE);
        else if (ok && before == TN_TERMINAL_PLAIN)
            tell_terminal(BRACKETS_ON);
        if (ok)
            atomic_store(&current_mode, (int)mode);
    }
    unlock_and_unblock(&old);
    return ok;
}

void tn_terminal_suspend(void)
{
    (void)kill(0, SIGTSTP);
}

void tn_terminal_quit(void)
{
    tn_terminal_restore_for_end();
    (void)kill(0, SIGQUIT);
}

bool tn_posix_terminal_take_resumed(void)
{
    return atomic_exchange(&was_resumed, false);
}

bool tn_posix_terminal_take_resized(void)
{
    return atomic_exchange(&was_resized, false);
}

struct tn_terminal_size tn_terminal_size(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
        return (struct tn_terminal_size){80, 24};
    return (struct tn_terminal_size){size.ws_col, size.ws_row};
}
