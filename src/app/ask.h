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

/* Can anybody be asked? */
bool tn_can_ask(void);

/* One line without blanks around it, in *answer, which is emptied first; a line that is too long is
 * empty. TERN_INPUT: the input ended; TERN_INTERRUPTED: Ctrl-C. */
tern_status tn_ask_line(struct tn_buf *answer, const char *question, struct tern_error *err);

/* Asks until the answer is yes or no; an empty line is yes. */
tern_status tn_ask_yes(bool *is_yes, const char *question, struct tern_error *err);

#endif
