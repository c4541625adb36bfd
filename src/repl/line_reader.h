/* SPDX-License-Identifier: MIT
 *
 * The interface through which a conversation reads its messages: a line editor on a terminal, plain
 * lines elsewhere.  Also the interface of completers.
 */
#ifndef TN_LINE_READER_H
#define TN_LINE_READER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "tern/status.h"

enum tn_line {
    TN_LINE_TEXT,
    TN_LINE_END,       /* end of input */
    TN_LINE_INTERRUPT, /* Ctrl-C on an empty line, or the system asks the process to terminate */
    TN_LINE_FAILED
};

struct tn_line_reader {
    void *state;
    /* Appends one complete message to *message (empty before), with continuation lines, blocks and
     * pastes joined by newlines.  `prompt` is shown before the first line, `more` before the
     * others.  The flags of an interrupt stay set.  *err is set for TN_LINE_FAILED. */
    enum tn_line (*read)(void *state, const char *prompt, const char *more, struct tn_buf *message,
                         struct tern_error *err);
    /* Sets the initial text of the next message, which the user may change; Ctrl-C then returns
     * TN_LINE_INTERRUPT.  NULL: not supported. */
    void (*preset)(void *state, const char *text, size_t n);
    /* Saves the history to its file.  NULL: it has none. */
    tern_status (*save)(void *state, struct tern_error *err);
    void (*close)(void *state);
};

/* Completes the word before the cursor. */
struct tn_completer {
    void *arg;
    /* Sets *start so that the word is line[*start, cursor), and calls `add` for each completion.
     * *wants_file: file names are completions too. */
    void (*complete)(void *arg, const char *line, size_t cursor, size_t *start, bool *wants_file,
                     void (*add)(void *to, const char *candidate), void *to);
};

#endif
