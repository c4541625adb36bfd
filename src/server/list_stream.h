/* SPDX-License-Identifier: MIT
 *
 * Answers that are lists of reasoning, texts and calls, in the order in which the model wrote them.
 * In a stream each is opened, comes in pieces, and is closed before the next one; a format says how
 * each step looks.
 */
#ifndef TN_LIST_STREAM_H
#define TN_LIST_STREAM_H

#include "server/task.h"

/* About entry number choice->i_open: reasoning, a text, or call number n_calls_sent - 1. */
struct tn_list_stream {
    void (*open)(struct tn_task *task, struct tn_choice *choice);
    void (*piece)(struct tn_task *task, struct tn_choice *choice, const char *text, size_t n);
    void (*close)(struct tn_task *task, struct tn_choice *choice);
};

/* An entry of the list that an answer is: its reasoning, n bytes of its text, those from `at` on,
 * or a call. */
struct tn_list_entry {
    enum tn_open kind; /* TN_OPEN_NOTHING: in front of the first one */
    uint32_t i;        /* its place */
    const char *text; /* not NULL */
    size_t at, n;
    size_t i_call;
};

/* Goes on to the next entry of a choice that has ended; false: there is none.  An answer without a
 * word is an empty text. */
bool tn_list_next(const struct tn_choice *choice, struct tn_list_entry *entry);

/* Sends what a choice has more. */
void tn_list_more(const struct tn_list_stream *stream, struct tn_task *task,
                  struct tn_choice *choice);
/* Closes what is open, when all was sent. */
void tn_list_end(const struct tn_list_stream *stream, struct tn_task *task,
                 struct tn_choice *choice);

#endif
