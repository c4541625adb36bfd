/* SPDX-License-Identifier: MIT
 *
 * Answers that are lists of reasoning, texts and tool calls, as in the APIs of Anthropic and
 * OpenAI's responses.
 *
 * In a stream each entry is opened, sent in pieces, and closed before the next; the format writes
 * the events.
 */
#ifndef TN_LIST_STREAM_H
#define TN_LIST_STREAM_H

#include "server/task.h"

/* Callbacks for entry choice->i_open: reasoning, a text, or call n_calls_sent - 1. */
struct tn_list_stream {
    void (*open)(struct tn_task *task, struct tn_choice *choice);
    void (*piece)(struct tn_task *task, struct tn_choice *choice, const char *text, size_t n);
    void (*close)(struct tn_task *task, struct tn_choice *choice);
};

/* An entry of the list: the reasoning, n bytes of text from `at` on, or a call. */
struct tn_list_entry {
    enum tn_open kind; /* TN_OPEN_NOTHING: before the first */
    uint32_t i;        /* its index */
    const char *text; /* not NULL */
    size_t at, n;
    size_t i_call;
};

/* Advances to the next entry of a finished choice.  false: none.  An empty answer is one empty
 * text. */
bool tn_list_next(const struct tn_choice *choice, struct tn_list_entry *entry);

/* Sends what the choice has not sent yet. */
void tn_list_more(const struct tn_list_stream *stream, struct tn_task *task,
                  struct tn_choice *choice);
/* Closes the open entry after everything was sent. */
void tn_list_end(const struct tn_list_stream *stream, struct tn_task *task,
                 struct tn_choice *choice);

#endif
