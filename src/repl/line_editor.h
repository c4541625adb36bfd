/* SPDX-License-Identifier: MIT
 *
 * The line editor: a tn_line_reader for a terminal.  It draws on standard error.
 *
 * Between two reads nothing is echoed, typed input is kept, and Ctrl-C is a signal.  For one
 * thread, once per process.
 */
#ifndef TN_LINE_EDITOR_H
#define TN_LINE_EDITOR_H

#include "repl/line_reader.h"

/* The completer (may be NULL) is copied; its `arg` must outlive the reader, and so must
 * history_path (NULL: no file), where messages are kept between runs.  A history file that cannot
 * be read is an error.  TERN_UNSUPPORTED: the standard streams are not a capable terminal. */
tern_status tn_line_editor_open(struct tn_line_reader *out, const struct tn_completer *completer,
                                const char *history_path, struct tern_error *err);

/* Edits *text in another program and keeps it well-formed UTF-8; the terminal is PLAIN meanwhile.
 * false: the text is unchanged. */
typedef bool tn_edit_text_fn(struct tn_buf *text);
/* Sets the function that Ctrl-X Ctrl-E runs, for a reader from tn_line_editor_open. */
void tn_line_editor_use(struct tn_line_reader *reader, tn_edit_text_fn *edit_text);

#endif
