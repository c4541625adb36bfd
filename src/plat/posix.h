/* SPDX-License-Identifier: MIT
 *
 * What the posix_*.c files share. Only they include it; the rest of the program sees plat.h.
 */
#ifndef TN_POSIX_H
#define TN_POSIX_H

#include <stdbool.h>
#include <stdint.h>

#include "tern/status.h"

/* open(2), repeated when interrupted, not inherited by other programs. -1 and errno. */
int tn_posix_open(const char *path, int flags);
/* The same; a file that it creates gets this mode, less the umask. */
int tn_posix_open_mode(const char *path, int flags, unsigned mode);
tern_status tn_posix_open_regular(int *out, uint64_t *n_bytes, const char *path,
                                  struct tern_error *err);

/* Waits until fd has bytes, its end or an error; false when Ctrl-C, SIGTERM or SIGHUP came first
 * (or before, unless it was cleared). */
bool tn_posix_wait_readable(int fd);

/* Did the process continue after a stop, has the terminal's size changed, since the last call? */
bool tn_posix_terminal_take_resumed(void);
bool tn_posix_terminal_take_resized(void);

/* tn_usage_now needs to open nothing any more (Linux). */
void tn_posix_usage_keep_open(void);

/* The calling thread gets, or gives back, a stack for its fault handler. Without one a fault on a
 * thread ends the process with the default action. */
struct tn_posix_signal_stack {
    _Alignas(64) char bytes[65536];
    void *old_sp; /* what was there before: sanitizers bring their own */
    unsigned long old_bytes;
    int old_flags;
};
void tn_posix_signal_stack_enter(struct tn_posix_signal_stack *stack);
void tn_posix_signal_stack_leave(const struct tn_posix_signal_stack *stack);

#endif
