/* SPDX-License-Identifier: MIT
 *
 * A text in the user's editor, by way of a file that only the user may read.
 */
#ifndef TN_EDIT_TEXT_H
#define TN_EDIT_TEXT_H

#include <stdbool.h>

#include "base/buf.h"

/* *text becomes what was saved, without line ends at its end.  False: it stays as it was, and why
 * has been said.  The terminal is in its plain mode. */
bool tn_edit_text(struct tn_buf *text);

#endif
