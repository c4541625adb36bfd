/* SPDX-License-Identifier: MIT
 *
 * Between the files of this folder: what the operating systems give
 * plat_common.c, and what it keeps for them.  Nobody else includes this.
 */
#ifndef TN_PLAT_OS_H
#define TN_PLAT_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/status.h"

/* ---- sequential input: files, pipes, terminals ---- */

typedef intptr_t tn_os_stream;

tern_status tn_os_stream_open(tn_os_stream *out, const char *path, struct tern_error *err);
void tn_os_stream_close(tn_os_stream stream);
tn_os_stream tn_os_stream_stdin(void);

enum tn_os_read { TN_OS_READ_OK, TN_OS_READ_FAILED, TN_OS_READ_INTERRUPTED };
/* Reads at least one byte, or none at the end (*n_read 0). INTERRUPTED: Ctrl-C, SIGTERM or SIGHUP
 * came while waiting for standard input, after tn_interrupt_install. FAILED fills err; `name` is
 * for its text. */
enum tn_os_read tn_os_stream_read(tn_os_stream stream, const char *name, void *dst, size_t n_bytes,
                                  size_t *n_read, struct tern_error *err);

/* ---- mapped regions, for the fault handlers ---- */

/* The list is fixed-size and lock-free, so that a signal handler may read it. Regions beyond its
 * capacity are not remembered one by one: while there are any, every address counts as mapped. */
void tn_os_regions_add(const void *data, size_t n_bytes);
void tn_os_regions_remove(const void *data);
bool tn_os_regions_hold(const void *address);

/* ---- interruption: what the systems' handlers call ---- */

/* A Ctrl-C came.  True: the second one within two seconds while nobody has looked at the first;
 * then the process must end. */
bool tn_os_note_interrupt(void);
/* SIGTERM or SIGHUP came, or what the system has for them. */
void tn_os_note_termination(int signal_number);
/* One of them came and is not cleared. */
bool tn_os_is_interrupted(void);

/* ---- errors ---- */

/* "PATH: WHAT: the system's words"; `code` is errno or GetLastError(). TERN_MEMORY instead of
 * `status` when the code says so. */
tern_status tn_os_fail(struct tern_error *err, tern_status status, const char *path,
                       const char *what, unsigned long code);

/* A part file could not be created: the message names the file itself, and its folder where that is
 * missing. */
tern_status tn_os_fail_part(struct tern_error *err, const char *part, unsigned long code,
                            bool is_folder_missing);

/* Copy in new memory, or NULL. */
char *tn_os_copy_text(const char *text);

/* Makes one folder, which may exist; 0, or the system's code of the failure. */
unsigned long tn_os_make_dir(const char *path);

/* Does the path itself name a link, wherever that leads? */
bool tn_os_is_link(const char *path);

/* Of the parts of a path; the first is the system's own. */
#if defined(_WIN32)
#define TN_OS_SEPARATORS "\\/"
#else
#define TN_OS_SEPARATORS "/"
#endif

#endif
