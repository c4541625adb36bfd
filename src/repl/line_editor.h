/* SPDX-License-Identifier: MIT
 *
 * The line editor: a tn_line_reader for somebody who types on a terminal.  It draws on standard
 * error.  Between two reads nothing is echoed, what is typed is kept, and Ctrl-C is a signal.
 *
 * Lives in one thread, once in a process.
 */
#ifndef TN_LINE_EDITOR_H
#define TN_LINE_EDITOR_H

#include "repl/line_reader.h"

/* The completer (NULL: none) is copied; what its `arg` points to lives as long as the reader.
 * history_path: where messages are kept between runs, NULL: nowhere; it lives as long as the reader
 * too.  A file that cannot be read is an error.  TERN_UNSUPPORTED: the standard streams are not a
 * terminal that can do this. */
tern_status tn_line_editor_open(struct tn_line_reader *out, const struct tn_completer *completer,
                                const char *history_path, struct tern_error *err);

/* Edits *text, which is well-formed UTF-8 and stays so, somewhere else; the terminal is PLAIN
 * meanwhile.  False: the text is as it was. */
typedef bool tn_edit_text_fn(struct tn_buf *text);
/* What Ctrl-X Ctrl-E of a reader that tn_line_editor_open made runs. */
void tn_line_editor_use(struct tn_line_reader *reader, tn_edit_text_fn *edit_text);

#endif
