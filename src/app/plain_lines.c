/* SPDX-License-Identifier: MIT
 *
 * Messages from lines of standard input, on terminals without a line editor and elsewhere, by the
 * rules of repl/message.h.
 */
#include <string.h>

#include "chat.h"
#include "plat/plat.h"
#include "prompt.h"
#include "repl/message.h"

static bool shows_prompt;

static void show(const char *prompt)
{
    if (shows_prompt)
        (void)tn_write_stream(TN_STDERR, prompt, strlen(prompt));
}

/* Whether the message continues after its last line, which begins at `start`.  A blank line does
 * not end a block; looking past all of them after each would take quadratic time. */
static bool continues(struct tn_buf *message, size_t start, enum tn_message_state *state)
{
    if (*state != TN_MESSAGE_OPEN ||
        !tn_prompt_is_blank(message->data + start, message->n_bytes - start))
        *state = tn_message_state(message->data, message->n_bytes);
    if (*state == TN_MESSAGE_BACKSLASH)
        message->data[message->n_bytes - 1] = '\n';
    return *state == TN_MESSAGE_BACKSLASH ||
           (*state == TN_MESSAGE_OPEN && tn_buf_append(message, "\n", 1));
}

/* Removes the marks of the lines.  The end of the input ends a block. */
static void finish_message(struct tn_buf *message)
{
    struct tn_buf taken = {0};
    if (tn_message_state(message->data, message->n_bytes) == TN_MESSAGE_OPEN)
        tn_buf_append_text(message, "\"\"\"");
    if (message->failed)
        return;
    tn_message_take(&taken, message->data, message->n_bytes);
    tn_buf_fini(message);
    *message = taken;
}

static enum tn_line read_lines(const char *prompt, const char *more, struct tn_buf *message,
                               struct tern_error *err)
{
    bool interrupted;
    size_t start = 0;
    enum tn_message_state state = TN_MESSAGE_WHOLE;
    show(prompt);
    while (tn_read_line(tn_prompt_append, message, &interrupted, err)) {
        if (interrupted)
            return TN_LINE_INTERRUPT;
        if (!continues(message, start, &state))
            return TN_LINE_TEXT;
        start = message->n_bytes;
        show(more);
    }
    if (err->status != TERN_OK)
        return TN_LINE_FAILED;
    return message->n_bytes == 0 ? TN_LINE_END : TN_LINE_TEXT;
}

static enum tn_line read_message(void *state, const char *prompt, const char *more,
                                 struct tn_buf *message, struct tern_error *err)
{
    (void)state;
    enum tn_line kind = read_lines(prompt, more, message, err);
    if (kind == TN_LINE_TEXT)
        finish_message(message);
    else
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
