/* SPDX-License-Identifier: MIT
 *
 * All output of the command: results to standard output, everything else to standard error.
 *
 * Results fail once: after the first write error nothing more is written, and tn_out_finish turns
 * it into the exit code (a reader that closed the pipe is not an error).
 */
#ifndef TN_OUTPUT_H
#define TN_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "tern/status.h"

/* ---- results ---- */

/* Writes immediately, unbuffered.  False if the output was closed. */
bool tn_out_write(const void *bytes, size_t n);
bool tn_out_text(const char *text);
bool tn_out_printf(const char *format, ...) TN_PRINTF(1, 2);
/* Writes and frees; a text that did not fit into memory counts as a write error. */
bool tn_out_buf(struct tn_buf *buf);
/* Writes generated text: like tn_out_write, but a terminal shows control characters other than
 * newline and tab as \x1B.  `text` is whole UTF-8 characters. */
bool tn_out_generated(const char *text, size_t n);
/* The same for a text of several lines, wrapped at words on a terminal. */
bool tn_out_wrapped(const char *text, size_t n);
/* Writes streamed text of an answer: like tn_out_generated, but a terminal gets it wrapped at
 * words, with light Markdown (repl/flow.h) if styles are allowed.  A word is held back until it is
 * complete: the next call of tn_out_end_line or of another function here writes it. */
bool tn_out_answer(const char *text, size_t n);
/* Disables wrapping and styles of answers. */
void tn_out_set_plain(bool is_plain);
/* Ends a text that does not end in a newline; no effect if nothing was written. */
bool tn_out_end_line(void);
/* False after a write error. */
bool tn_out_is_open(void);
/* True after a write error that tn_out_finish will report; not if the reader closed the pipe. */
bool tn_out_has_failed(void);
/* The exit code of a command that would end with `exit_code`; reports a write error. */
int tn_out_finish(int exit_code);

/* ---- messages ---- */

/* Sets a function that is called before each message, for instance to erase a progress line; NULL:
 * none. */
void tn_message_set_before(void (*before)(void));
/* -1: warnings and errors only, 0: normal, 1: verbose. */
void tn_message_set_level(int level);
int tn_message_level(void);
/* Prints "tern: error: ..." on one line; returns the exit code of the status. */
int tn_error_print(const struct tern_error *err);
/* The same from a format. */
int tn_error_say(tern_status status, const char *format, ...) TN_PRINTF(2, 3);
void tn_warning_say(const char *format, ...) TN_PRINTF(1, 2);
/* Prints "tern: note: ..."; nothing if quiet. */
void tn_note_say(const char *format, ...) TN_PRINTF(1, 2);
/* Prints a line to standard error verbatim; nothing if quiet. */
void tn_info_say(const char *format, ...) TN_PRINTF(1, 2);

/* Writes text to standard error, with control characters shown as by tn_out_generated.  Does not
 * call the function of tn_message_set_before: for text written in pieces. */
void tn_message_text(const char *text, size_t n);
/* The same for a whole text, wrapped at words on a terminal; wrapped rows are indented by two. */
void tn_message_wrapped(const char *text, size_t n);
/* The sequences that begin and end dim text; "" without styles. */
const char *tn_message_dim(void);
const char *tn_message_plain(void);

/* ---- numbers for display ---- */

struct tn_size_text {
    char text[32];
};
/* "2.9 MB" (powers of 1000), "22.8 GiB" (powers of 1024). */
struct tn_size_text tn_size_decimal(double bytes);
struct tn_size_text tn_size_binary(double bytes);
/* "7.4 M", "2.4 B": a number of parameters. */
struct tn_size_text tn_count_text(double n);

#endif
