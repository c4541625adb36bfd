/* SPDX-License-Identifier: MIT
 *
 * System messages that do not begin the conversation.
 *
 * Agents add instructions while a conversation runs.  Some templates, among them Qwen3.5's, accept
 * one system message only, and only at the beginning; others want users and assistants to
 * alternate.  For these the conversation is rewritten:
 *
 *   system, system, user, system, assistant   ->   system, user, assistant
 */
#ifndef TN_LATE_SYSTEM_H
#define TN_LATE_SYSTEM_H

#include <jansson.h>
#include <stdbool.h>

/* Does any system message follow the first message of normalised messages? */
bool tn_late_system_exists(const json_t *messages);

/* The same conversation with at most one system message, its first: system messages that begin it
 * are joined, later ones become the user's, and consecutive messages of the user are joined.
 * Returns a new array; NULL: out of memory. */
json_t *tn_late_system_join(const json_t *messages);

#endif
