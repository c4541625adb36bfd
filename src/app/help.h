/* SPDX-License-Identifier: MIT
 *
 * Help texts, made from the tables of options.c, to standard output.
 */
#ifndef TN_HELP_H
#define TN_HELP_H

#include <stdbool.h>

#include "base/buf.h"
#include "options.h"

void tn_help_all(void);
void tn_help_command(enum tn_command command);

/* "exit-codes", "memory" and so on; false if there is no such topic. */
bool tn_help_topic(const char *name);
/* Its text; NULL if there is no such topic. */
const char *tn_help_topic_text(const char *name);

/* Appends their names and a newline. */
void tn_help_append_topics(struct tn_buf *out);

#endif
