/* SPDX-License-Identifier: MIT
 *
 * Giving up what the rest of the process does not need.  Commands that take data from strangers
 * call this once everything is open that has to be: from there on a mistake that lets a stranger
 * run code gives no files, programs or connections.
 *
 * Linux on x86-64 and AArch64: a seccomp filter over all threads, those to come included.
 *   stays     memory, threads, clocks, signals to itself, descriptors that are open; with
 *             TN_SANDBOX_SOCKETS also accepting on sockets that listen, with TN_SANDBOX_FILES
 *             everything that is done to files by name, with TN_SANDBOX_TERMINAL its modes and
 *             job control
 *   fails     everything else, with EPERM: opening a file to read, making a socket
 *   ends the  starting a program or a process, connecting, opening a file to write, changing names
 *   process   of files, looking into other processes, code into the kernel (SIGSYS)
 * The C library and this folder read no file of the system after it: what they need of them is read
 * on the way in (time zone, /proc/self/status).
 *
 * Elsewhere nothing happens, and the caller is told so.
 */
#ifndef TN_SANDBOX_H
#define TN_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>

/* What a command still needs. */
#define TN_SANDBOX_SOCKETS 1u
#define TN_SANDBOX_FILES 2u
#define TN_SANDBOX_TERMINAL 4u

/* Is there one for this system and processor?  A kernel may refuse it all the same. */
bool tn_sandbox_exists(void);
/* Call after everything that reads system files has run; the filter forbids opening more, so this
 * call reads those that are needed later (time zone, /proc/self/status) first.  Cannot be undone.
 * False: the process is unchanged, and *why is a reason that follows "no sandbox: ". */
bool tn_sandbox_enter(uint32_t purposes, const char **why);
bool tn_sandbox_is_active(void);

#endif
