/* SPDX-License-Identifier: MIT
 *
 * Questions to the user of a terminal, before there is a line editor: written to standard error,
 * answered by a line of standard input.
 */
#ifndef TN_ASK_H
#define TN_ASK_H

#include <stdbool.h>

#include "base/buf.h"
#include "tern/status.h"

/* Whether there is a user to ask: standard input and standard error are terminals. */
bool tn_can_ask(void);

/* Reads one line without blanks around it into *answer, which is emptied first; a line that is too
 * long is read as empty.  TERN_INPUT: end of input; TERN_INTERRUPTED: Ctrl-C. */
tern_status tn_ask_line(struct tn_buf *answer, const char *question, struct tern_error *err);

/* Asks until the answer is yes or no; an empty line means yes. */
tern_status tn_ask_yes(bool *is_yes, const char *question, struct tern_error *err);

#endif
