/* SPDX-License-Identifier: MIT
 *
 * Decides when Enter sends the typed text, and what text is sent: a `\` at the end continues on the
 * next line, and a block that begins with three quotes continues until three quotes end it.
 */
#ifndef TN_MESSAGE_H
#define TN_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

enum tn_message_state {
    TN_MESSAGE_WHOLE,
    TN_MESSAGE_BACKSLASH, /* its last byte represents a line ending */
    TN_MESSAGE_OPEN       /* the line ending is part of the message */
};
enum tn_message_state tn_message_state(const char *text, size_t n);

/* Appends the text to send for a complete message: without the quotes of a block, and without
 * trailing line endings of a paste.  A block that begins with a slash is not a command: the slash
 * is doubled.  false: out of memory. */
bool tn_message_take(struct tn_buf *out, const char *text, size_t n);

#endif
