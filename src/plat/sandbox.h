/* SPDX-License-Identifier: MIT
 *
 * Dropping privileges that the rest of the process does not need.  Commands that process untrusted
 * data call this after opening everything they need: an exploited bug then gives access to no
 * files, programs or connections.  On Linux (x86-64 and AArch64) it is a seccomp filter over all
 * threads, including later ones; elsewhere it has no effect, which the caller learns.
 */

/* The filter of Linux:
 *
 *   allowed   memory, threads, clocks, signals to itself, open descriptors; with TN_SANDBOX_SOCKETS
 *             also accepting on listening sockets, with TN_SANDBOX_FILES all operations on files by
 *             name, with TN_SANDBOX_TERMINAL its modes and job control
 *   EPERM     everything else: opening a file for reading, making a socket
 *   SIGSYS    starting a program or process, connecting, opening a file for writing, renaming or
 *             removing files, inspecting other processes, loading code into the kernel */
#ifndef TN_SANDBOX_H
#define TN_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>

/* Operations that a command still needs. */
#define TN_SANDBOX_SOCKETS 1u
#define TN_SANDBOX_FILES 2u
#define TN_SANDBOX_TERMINAL 4u

/* Whether this system and processor have one.  A kernel may still refuse it. */
bool tn_sandbox_exists(void);
/* Call after everything that reads system files has run; the filter forbids opening more, so this
 * call reads those that are needed later (time zone, /proc/self/status) first.  Cannot be undone.
 * False: the process is unchanged, and *why is a reason that follows "no sandbox: ". */
bool tn_sandbox_enter(uint32_t purposes, const char **why);
bool tn_sandbox_is_active(void);

#endif
