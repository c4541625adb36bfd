/* SPDX-License-Identifier: MIT
 *
 * Messages from lines of standard input, on terminals without a line editor and elsewhere.  A line
 * that ends in a backslash continues on the next; from """ to """ all lines are one message.
 */
#include <string.h>

#include "base/error.h"
#include "chat.h"
#include "output.h"
#include "plat/plat.h"
#include "prompt.h"

#define QUOTES "\"\"\""

static bool shows_prompt;

/* Limits the memory for a line that never ends. */
static void append_line(void *arg, const char *bytes, size_t n)
{
    struct tn_buf *message = arg;
    if (tn_prompt_has_room(message, n))
        tn_buf_append(message, bytes, n);
    else
        message->failed = true;
}

static void show(const char *prompt)
{
    if (shows_prompt)
        (void)tn_write_stream(TN_STDERR, prompt, strlen(prompt));
}

static bool has_at(const struct tn_buf *message, size_t at)
{
    return message->n_bytes >= at + 3 && memcmp(message->data + at, QUOTES, 3) == 0;
}

/* The contents of a block are text, even if they begin with a slash. */
static void finish_block(struct tn_buf *message)
{
    size_t n = message->n_bytes - 3 - (has_at(message, message->n_bytes - 3) ? 3 : 0);
    bool has_slash = n > 0 && message->data[3] == '/';
    memmove(message->data + has_slash, message->data + 3, n);
    if (has_slash)
        message->data[0] = '/';
    message->n_bytes = n + has_slash;
}

/* Whether the message continues after its last line, which begins at `start`. */
static bool goes_on(struct tn_buf *message, size_t start)
{
    if (has_at(message, 0)) {
        bool is_closed = message->n_bytes >= TN_MAX(start, (size_t)3) + 3 &&
                         has_at(message, message->n_bytes - 3);
        if (!is_closed)
            return tn_buf_append(message, "\n", 1);
        finish_block(message);
        return false;
    }
    if (message->n_bytes == start || message->data[message->n_bytes - 1] != '\\')
        return false;
    message->data[message->n_bytes - 1] = '\n';
    return true;
}

static enum tn_line read_lines(const char *prompt, const char *more, struct tn_buf *message,
                               struct tern_error *err)
{
    bool interrupted;
    size_t start = 0;
    show(prompt);
    while (tn_read_line(append_line, message, &interrupted, err)) {
        if (interrupted)
            return TN_LINE_INTERRUPT;
        if (!goes_on(message, start))
            return TN_LINE_TEXT;
        start = message->n_bytes;
        show(more);
    }
    if (err->status != TERN_OK)
        return TN_LINE_FAILED;
    if (message->n_bytes == 0)
        return TN_LINE_END;
    if (has_at(message, 0)) /* the end of the input ends a block */
        finish_block(message);
    return TN_LINE_TEXT;
}

static enum tn_line read_message(void *state, const char *prompt, const char *more,
                                 struct tn_buf *message, struct tern_error *err)
{
    (void)state;
    enum tn_line kind = read_lines(prompt, more, message, err);
    if (kind != TN_LINE_TEXT)
        show("\n"); /* ends the line of the prompt */
    return kind;
}

static void close_nothing(void *state)
{
    (void)state;
}

void tn_plain_lines_open(struct tn_line_reader *out, bool on_terminal)
{
    shows_prompt = on_terminal;
    *out = (struct tn_line_reader){.read = read_message, .close = close_nothing};
}
