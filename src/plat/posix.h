/* SPDX-License-Identifier: MIT
 *
 * Functions that the posix_*.c files share.  Only they include it; the rest of the program uses
 * plat.h.
 */
#ifndef TN_POSIX_H
#define TN_POSIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/status.h"

/* open(2), repeated when interrupted, not inherited by other programs. -1 and errno. */
int tn_posix_open(const char *path, int flags);
/* The same; a file that it creates gets this mode, minus the umask. */
int tn_posix_open_mode(const char *path, int flags, unsigned mode);
tern_status tn_posix_open_regular(int *out, uint64_t *n_bytes, const char *path,
                                  struct tern_error *err);

/* write(2) until all bytes are written; false: an error, in errno.  Safe after fork(). */
bool tn_posix_write_all(int fd, const void *bytes, size_t n);

struct stat;
/* Time of the last write, ns since 1970. */
uint64_t tn_posix_modified_ns(const struct stat *st);

/* Waits until fd has bytes, its end or an error; false if Ctrl-C, SIGTERM or SIGHUP came first (or
 * before the call, unless it was cleared). */
bool tn_posix_wait_readable(int fd);

/* Whether the process continued after a stop, or the terminal's size changed, since the last
 * call. */
bool tn_posix_terminal_take_resumed(void);
bool tn_posix_terminal_take_resized(void);

/* Opens the file that tn_usage_now reads and keeps it open (Linux). */
void tn_posix_usage_keep_open(void);

/* Installs, or removes, a stack for the fault handler of the calling thread.  Without one a fault
 * on a thread ends the process with the default action. */
struct tn_posix_signal_stack {
    _Alignas(64) char bytes[65536];
    void *old_sp; /* the previous stack: sanitizers install theirs */
    unsigned long old_bytes;
    int old_flags;
};
void tn_posix_signal_stack_enter(struct tn_posix_signal_stack *stack);
void tn_posix_signal_stack_leave(const struct tn_posix_signal_stack *stack);

#endif
