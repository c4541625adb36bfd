/* SPDX-License-Identifier: MIT
 *
 * Edits a text in the user's editor, through a temporary file that only the user can read.  For
 * /editor and Ctrl-X Ctrl-E of tern chat.
 */
#ifndef TN_EDIT_TEXT_H
#define TN_EDIT_TEXT_H

#include <stdbool.h>

#include "base/buf.h"

/* text becomes the saved text, without trailing line endings.  False: it is unchanged, and the
 * error has been reported; a saved text that cannot be read stays in its file.  The terminal must
 * be in its plain mode. */
bool tn_edit_text(struct tn_buf *text);

#endif
