/* SPDX-License-Identifier: MIT
 *
 * The interface between the files of this folder: functions of each operating system that
 * plat_common.c needs, and state that it keeps for them.  Nothing else includes this.
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
/* Reads at least one byte, or none at the end (*n_read 0).  INTERRUPTED: Ctrl-C, SIGTERM or SIGHUP
 * arrived while waiting for standard input, after tn_interrupt_install.  FAILED fills err; `name`
 * is for its text. */
enum tn_os_read tn_os_stream_read(tn_os_stream stream, const char *name, void *dst, size_t n_bytes,
                                  size_t *n_read, struct tern_error *err);

/* ---- mapped regions, for the fault handlers ---- */

/* The list is fixed-size and lock-free, so that a signal handler may read it.  Regions beyond its
 * capacity are only counted: while there are any, every address is treated as mapped. */
void tn_os_regions_add(const void *data, size_t n_bytes);
void tn_os_regions_remove(const void *data);
bool tn_os_regions_hold(const void *address);

/* ---- interruption: called by the systems' handlers ---- */

/* Records a Ctrl-C.  True: it is the second one within two seconds, and the first has not been
 * examined; then the process must end. */
bool tn_os_note_interrupt(void);
/* Records SIGTERM, SIGHUP, or the system's equivalent. */
void tn_os_note_termination(int signal_number);

/* ---- errors ---- */

/* "PATH: WHAT: the system's message"; `code` is errno or GetLastError().  TERN_MEMORY instead of
 * `status` if the code means memory shortage. */
tern_status tn_os_fail(struct tern_error *err, tern_status status, const char *path,
                       const char *what, unsigned long code);

/* Reports that a part file could not be created: the message names the final file, and its folder
 * if that is missing. */
tern_status tn_os_fail_part(struct tern_error *err, const char *part, unsigned long code,
                            bool is_folder_missing);

/* $VISUAL, else $EDITOR, else TN_OS_EDITOR. */
const char *tn_os_editor(void);

/* Creates one folder, which may exist; 0, or the system's error code. */
unsigned long tn_os_make_dir(const char *path);

/* Whether the path itself names a link, even a broken one. */
bool tn_os_is_link(const char *path);

/* Separators in paths, the system's preferred one first; the editor that every system has. */
#if defined(_WIN32)
#define TN_OS_SEPARATORS "\\/"
#define TN_OS_EDITOR "notepad"
#else
#define TN_OS_SEPARATORS "/"
#define TN_OS_EDITOR "vi"
#endif

#endif
