/* SPDX-License-Identifier: MIT
 *
 * Help texts on standard output, made from the tables of options.c and of help_topics.c, so that
 * parser and help agree.
 */
#ifndef TN_HELP_H
#define TN_HELP_H

#include <stdbool.h>

#include "base/buf.h"
#include "options.h"

void tn_help_all(void);
void tn_help_command(enum tn_command command);

/* Prints a topic such as "exit-codes" or "memory"; false if it does not exist. */
bool tn_help_topic(const char *name);
/* The text of a topic; NULL if it does not exist. */
const char *tn_help_topic_text(const char *name);

/* Appends their names and a newline. */
void tn_help_append_topics(struct tn_buf *out);

#endif
