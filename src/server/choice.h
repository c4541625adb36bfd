/* SPDX-License-Identifier: MIT
 *
 * A choice: one of the n answers to a prompt, as far as its text has arrived.
 *
 * Separates reasoning and tool calls from the text; bytes that may still become part of either are
 * held back.
 */
#ifndef TN_CHOICE_H
#define TN_CHOICE_H

#include "server/task.h"

void tn_choice_fini(struct tn_choice *choice);

/* ---- input from the engine ---- */

/* Takes a token and the text it completes.  If memory runs out, tn_choice_has_lost returns true. */
void tn_choice_take(const struct tn_task *task, struct tn_choice *choice,
                    const struct tn_message *m);
/* Decides the held text at the end of the answer. */
void tn_choice_end(const struct tn_task *task, struct tn_choice *choice);

/* Was a part of the answer lost because memory ran out? */
bool tn_choice_has_lost(const struct tn_choice *choice);
/* Is there output that a stream has not sent? */
bool tn_choice_has_more(const struct tn_task *task, const struct tn_choice *choice);

#endif
