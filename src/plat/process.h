/* SPDX-License-Identifier: MIT
 *
 * Another program, started without a shell: writes text to its standard input and reads its
 * standard output as a stream.  posix_process.c and win32_process.c belong to the command, as
 * browser.h does: the library starts no programs.
 *
 * The program inherits the environment, the working directory and three pipes, and no other file.
 */
#ifndef TN_PROCESS_H
#define TN_PROCESS_H

#include <stdbool.h>
#include <stddef.h>

#include "tern/status.h"

/* Fits every system's pipe buffer, so that writing it never waits. */
#define TN_PROCESS_MAX_INPUT_BYTES 16384u

/* The suffix of an executable's name. */
#if defined(_WIN32)
#define TN_PROGRAM_SUFFIX ".exe"
#else
#define TN_PROGRAM_SUFFIX ""
#endif

/* The folders in which the system and its package managers install programs, best first: absolute
 * paths in new memory (tn_free), at most `capacity`.  Does not include the current folder, this
 * program's, or PATH.  Returns their number. */
size_t tn_system_program_dirs(char **dirs, size_t capacity);

struct tn_process;

/* Starts the program at `path`, which is absolute.  `arguments` are NULL-terminated, without the
 * program's name; they contain no blanks, quotes or backslashes.  `input` is its standard input, at
 * most TN_PROCESS_MAX_INPUT_BYTES.  TERN_INTERNAL: it cannot be started; TERN_MEMORY. */
tern_status tn_process_start(struct tn_process **out, const char *path,
                             const char *const *arguments, const char *input, size_t n_input,
                             struct tern_error *err);

/* Reads up to n bytes of its standard output.  0: the end, or Ctrl-C, SIGTERM or SIGHUP. */
size_t tn_process_read(struct tn_process *process, void *dst, size_t n);

/* Kills the program if it still runs, and frees `process`.  NULL is allowed. */
void tn_process_kill(struct tn_process *process);

/* Waits for the program to exit after the end of its output, and frees `process`.  `errors`
 * [n_errors] gets the first line of its standard error, "" if none.  Returns its exit code; -1: a
 * signal ended it. */
int tn_process_wait(struct tn_process *process, char *errors, size_t n_errors);

#endif
