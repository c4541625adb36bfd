/* SPDX-License-Identifier: MIT
 *
 * Opens a file in the user's editor and waits.  posix_external_editor.c and win32_external_editor.c
 * belong to the command: the library starts no programs.
 */
#ifndef TN_EXTERNAL_EDITOR_H
#define TN_EXTERNAL_EDITOR_H

#include "tern/status.h"

/* Runs $VISUAL, else $EDITOR, else vi (Windows: notepad) with `path` as its last argument and the
 * standard streams of this process, and waits until it exits.  The variable may contain arguments
 * separated by blanks; no shell reads it.  TERN_UNSUPPORTED: it cannot be started; TERN_INTERNAL:
 * it exited with an error. */
tern_status tn_external_editor_run(const char *path, struct tern_error *err);

/* Starts a process that runs the editor from then on.  Call before a sandbox that forbids starting
 * programs (plat/sandbox.h), and early, because the process is a copy of this one.  If it fails,
 * tn_external_editor_run returns TERN_UNSUPPORTED inside the sandbox. */
void tn_external_editor_prepare(void);
/* Ends that process, if it was started. */
void tn_external_editor_end(void);

#endif
