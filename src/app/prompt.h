/* SPDX-License-Identifier: MIT
 *
 * Reads the prompt of `tern run`: from -p, a file, standard input; and functions for all texts that
 * commands read.
 */
#ifndef TN_PROMPT_H
#define TN_PROMPT_H

#include "base/buf.h"
#include "options.h"
#include "tern/status.h"

/* TERN_USAGE if there is nothing to read: no -p, no -f, and standard input is a terminal. */
tern_status tn_prompt_check(const struct tn_options *o, struct tern_error *err);

/* The prompt's bytes, valid UTF-8 (NUL is an ordinary character), without a byte order mark.  Reads
 * standard input only if -f - is given, or neither -p nor -f. */
tern_status tn_prompt_read(struct tn_buf *out, const struct tn_options *o, struct tern_error *err);

#define TN_MAX_PROMPT_BYTES ((size_t)16 << 20)

/* Whether a text that is read in pieces has room for n bytes more. */
static inline bool tn_prompt_has_room(const struct tn_buf *text, size_t n)
{
    return text->n_bytes <= TN_MAX_PROMPT_BYTES && n <= TN_MAX_PROMPT_BYTES - text->n_bytes;
}

/* A callback of tn_read_line that limits the memory for a line that never ends: without room the
 * text, a struct tn_buf, has `failed` set. */
void tn_prompt_append(void *text, const char *bytes, size_t n);

/* On a terminal: prints that a command waits for `what` ("a text"), and how to end the input. */
void tn_prompt_say_waiting(const char *what);

/* TERN_INPUT if the text read from `name` is not UTF-8. */
tern_status tn_prompt_check_text(const char *text, size_t n, const char *name,
                                 struct tern_error *err);
/* Length of the byte order mark at the start of a text: 3, or 0 if there is none. */
size_t tn_prompt_mark(const char *text, size_t n);
/* For chat: removes newlines at the end. */
void tn_prompt_trim_newlines(struct tn_buf *prompt);
/* Whether it is empty or white space only. */
bool tn_prompt_is_blank(const char *text, size_t n);

#endif
