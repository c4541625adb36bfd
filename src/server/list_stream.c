/* SPDX-License-Identifier: MIT
 *
 * The order of steps.
 */
#include "server/list_stream.h"

#include <string.h>

static void close_entry(const struct tn_list_stream *stream, struct tn_task *task,
                        struct tn_choice *choice)
{
    if (choice->open == TN_OPEN_NOTHING)
        return;
    stream->close(task, choice);
    choice->open = TN_OPEN_NOTHING;
    choice->i_open++;
}

static void open_text(const struct tn_list_stream *stream, struct tn_task *task,
                      struct tn_choice *choice)
{
    close_entry(stream, task, choice);
    choice->open = TN_OPEN_TEXT;
    choice->open_from = choice->n_sent;
    stream->open(task, choice);
}

static void open_call(const struct tn_list_stream *stream, struct tn_task *task,
                      struct tn_choice *choice)
{
    close_entry(stream, task, choice);
    choice->open = TN_OPEN_CALL;
    choice->n_calls_sent++;
    choice->n_arguments_sent = 0;
    stream->open(task, choice);
}

static void send_text(const struct tn_list_stream *stream, struct tn_task *task,
                      struct tn_choice *choice)
{
    if (choice->text.n_bytes == choice->n_sent)
        return;
    if (choice->open != TN_OPEN_TEXT)
        open_text(stream, task, choice);
    stream->piece(task, choice, choice->text.data + choice->n_sent,
                  choice->text.n_bytes - choice->n_sent);
    choice->n_sent = choice->text.n_bytes;
}

static void send_arguments(const struct tn_list_stream *stream, struct tn_task *task,
                           struct tn_choice *choice)
{
    const char *arguments = tn_choice_more_arguments(choice);
    const size_t n = strlen(arguments);
    if (n > 0)
        stream->piece(task, choice, arguments, n);
    choice->n_arguments_sent += n;
}

void tn_list_more(const struct tn_list_stream *stream, struct tn_task *task,
                  struct tn_choice *choice)
{
    send_arguments(stream, task, choice);
    send_text(stream, task, choice);
    while (tn_choice_n_calls(choice) > choice->n_calls_sent) {
        open_call(stream, task, choice);
        send_arguments(stream, task, choice);
    }
}

void tn_list_end(const struct tn_list_stream *stream, struct tn_task *task,
                 struct tn_choice *choice)
{
    if (choice->i_open == 0 && choice->open == TN_OPEN_NOTHING)
        open_text(stream, task, choice);
    close_entry(stream, task, choice);
}
