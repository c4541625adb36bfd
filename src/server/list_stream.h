/* SPDX-License-Identifier: MIT
 *
 * Streams whose answers are lists: texts and calls, each of which is opened, comes in pieces, and
 * is closed before the next one.  A format says how each step looks.
 */
#ifndef TN_LIST_STREAM_H
#define TN_LIST_STREAM_H

#include "server/task.h"

/* About entry number choice->i_open, a text or call number n_calls_sent - 1. */
struct tn_list_stream {
    void (*open)(struct tn_task *task, struct tn_choice *choice);
    void (*piece)(struct tn_task *task, struct tn_choice *choice, const char *text, size_t n);
    void (*close)(struct tn_task *task, struct tn_choice *choice);
};

/* Sends what a choice has more. */
void tn_list_more(const struct tn_list_stream *stream, struct tn_task *task,
                  struct tn_choice *choice);
/* Closes what is open; an answer without a word is an empty text. */
void tn_list_end(const struct tn_list_stream *stream, struct tn_task *task,
                 struct tn_choice *choice);

#endif
