/* SPDX-License-Identifier: MIT
 *
 * Where the messages of a conversation come from: a line editor on a terminal, plain lines
 * elsewhere.  And what completes them.
 */
#ifndef TN_LINE_READER_H
#define TN_LINE_READER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "tern/status.h"

enum tn_line {
    TN_LINE_TEXT,
    TN_LINE_END,       /* of the input */
    TN_LINE_INTERRUPT, /* Ctrl-C on an empty line, or the system asks the program to end */
    TN_LINE_FAILED
};

struct tn_line_reader {
    void *state;
    /* One whole message, with continued lines, blocks and pastes joined by newlines, appended to
     * *message, which is empty. `prompt` is shown before its first line, `more` before the others.
     * The flags of an interrupt stay set. *err belongs to TN_LINE_FAILED. */
    enum tn_line (*read)(void *state, const char *prompt, const char *more, struct tn_buf *message,
                         struct tern_error *err);
    /* The next message begins as this text, which the user may change; Ctrl-C ends that with
     * TN_LINE_INTERRUPT. NULL: cannot be done. */
    void (*preset)(void *state, const char *text, size_t n);
    /* Puts a message that was sent into the history. NULL: there is none, or it grows by itself. */
    void (*remember)(void *state, const char *text, size_t n);
    void (*close)(void *state);
};

/* What the word before the cursor may become. */
struct tn_completer {
    void *arg;
    /* The word is line[*start, cursor); `add` takes each text that may stand for it.
     * *wants_file: so may the names of files. */
    void (*complete)(void *arg, const char *line, size_t cursor, size_t *start, bool *wants_file,
                     void (*add)(void *to, const char *candidate), void *to);
};

#endif
