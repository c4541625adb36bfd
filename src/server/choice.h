/* SPDX-License-Identifier: MIT
 *
 * A choice: one of the answers to a prompt, as far as its text has come.  What the model thinks and
 * the calls of tools are told from that text here; what may still become part of one is held back.
 */
#ifndef TN_CHOICE_H
#define TN_CHOICE_H

#include "server/task.h"

void tn_choice_fini(struct tn_choice *choice);

/* ---- what the engine says ---- */

/* A token and the text that it decides.  Lost memory shows in tn_choice_has_lost. */
void tn_choice_take(const struct tn_task *task, struct tn_choice *choice,
                    const struct tn_message *m);
/* The answer has ended: what was held back is decided. */
void tn_choice_end(const struct tn_task *task, struct tn_choice *choice);

/* A part of the answer is missing: no memory was there for it. */
bool tn_choice_has_lost(const struct tn_choice *choice);
/* Is there something that a stream did not send? */
bool tn_choice_has_more(const struct tn_task *task, const struct tn_choice *choice);

#endif
