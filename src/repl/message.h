/* SPDX-License-Identifier: MIT
 *
 * When Enter sends what is typed, and what is sent: `\` at the end continues on the next line, and
 * so does a block that begins with three quotes until three quotes end it.
 */
#ifndef TN_MESSAGE_H
#define TN_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

enum tn_message_state {
    TN_MESSAGE_WHOLE,
    TN_MESSAGE_BACKSLASH, /* its last byte stands for a line end */
    TN_MESSAGE_OPEN       /* a line end is part of it */
};
enum tn_message_state tn_message_state(const char *text, size_t n);

/* Appends what is sent of a whole message: without the quotes of a block, and without the line ends
 * that a paste left at the end. A block that begins with a slash is no command: it gets a second
 * one. False: no memory. */
bool tn_message_take(struct tn_buf *out, const char *text, size_t n);

#endif
