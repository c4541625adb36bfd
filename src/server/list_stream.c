/* SPDX-License-Identifier: MIT
 *
 * Iterates over the entries of an answer in the order in which the model wrote them.
 *
 * Serves streams (open, pieces, close) and complete answers alike.
 */
#include "server/list_stream.h"

#include <string.h>

/* End of the text before a call, or of the whole text after the last call. */
static size_t text_end(const struct tn_choice *choice, size_t i_call)
{
    return i_call < tn_choice_n_calls(choice) ? tern_calls_get(choice->calls, i_call).n_text
                                              : choice->text.n_bytes;
}

bool tn_list_next(const struct tn_choice *choice, struct tn_list_entry *entry)
{
    const size_t n_calls = tn_choice_n_calls(choice);
    const bool is_first = entry->kind == TN_OPEN_NOTHING, was_call = entry->kind == TN_OPEN_CALL;
    if (is_first && choice->reasoning.n_bytes > 0) {
        *entry = (struct tn_list_entry){.kind = TN_OPEN_REASONING,
                                        .text = choice->reasoning.data,
                                        .n = choice->reasoning.n_bytes};
        return true;
    }
    const size_t at = entry->kind == TN_OPEN_REASONING ? 0 : entry->at + entry->n;
    const size_t i_call = entry->i_call + was_call;
    const size_t n = text_end(choice, i_call) - at;
    const bool is_text = n > 0 || (is_first && n_calls == 0);
    if (!is_text && i_call == n_calls)
        return false;
    *entry = (struct tn_list_entry){.kind = is_text ? TN_OPEN_TEXT : TN_OPEN_CALL,
                                    .i = is_first ? 0 : entry->i + 1,
                                    .text = choice->text.data ? choice->text.data + at : "",
                                    .at = at, .n = n, .i_call = i_call};
    return true;
}

static void close_entry(const struct tn_list_stream *stream, struct tn_task *task,
                        struct tn_choice *choice)
{
    if (choice->open == TN_OPEN_NOTHING)
        return;
    stream->close(task, choice);
    choice->open = TN_OPEN_NOTHING;
    choice->i_open++;
}

static void open_entry(const struct tn_list_stream *stream, struct tn_task *task,
                       struct tn_choice *choice, enum tn_open kind)
{
    close_entry(stream, task, choice);
    choice->open = kind;
    if (kind == TN_OPEN_TEXT)
        choice->open_from = choice->n_sent;
    if (kind == TN_OPEN_CALL) {
        choice->n_calls_sent++;
        choice->n_arguments_sent = 0;
    }
    stream->open(task, choice);
}

/* Sends bytes [*n_sent, end) of `all` in an entry of that kind. */
static void send_words(const struct tn_list_stream *stream, struct tn_task *task,
                       struct tn_choice *choice, enum tn_open kind, const struct tn_buf *all,
                       size_t end, size_t *n_sent)
{
    if (*n_sent >= end)
        return;
    if (choice->open != kind)
        open_entry(stream, task, choice, kind);
    stream->piece(task, choice, all->data + *n_sent, end - *n_sent);
    *n_sent = end;
}

static void send_reasoning(const struct tn_list_stream *stream, struct tn_task *task,
                           struct tn_choice *choice)
{
    send_words(stream, task, choice, TN_OPEN_REASONING, &choice->reasoning,
               choice->reasoning.n_bytes, &choice->n_reasoning_sent);
}

/* Sends the text up to `end`. */
static void send_text(const struct tn_list_stream *stream, struct tn_task *task,
                      struct tn_choice *choice, size_t end)
{
    send_words(stream, task, choice, TN_OPEN_TEXT, &choice->text, end, &choice->n_sent);
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
    send_reasoning(stream, task, choice);
    send_arguments(stream, task, choice);
    while (tn_choice_n_calls(choice) > choice->n_calls_sent) {
        send_text(stream, task, choice, text_end(choice, choice->n_calls_sent));
        open_entry(stream, task, choice, TN_OPEN_CALL);
        send_arguments(stream, task, choice);
    }
    send_text(stream, task, choice, choice->text.n_bytes);
}

void tn_list_end(const struct tn_list_stream *stream, struct tn_task *task,
                 struct tn_choice *choice)
{
    if (choice->i_open == 0 && choice->open == TN_OPEN_NOTHING)
        open_entry(stream, task, choice, TN_OPEN_TEXT);
    close_entry(stream, task, choice);
}
