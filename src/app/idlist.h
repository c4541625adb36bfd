/* SPDX-License-Identifier: MIT
 *
 * Lists of token ids as text, "1 2 3" or "1,2,3", from users or programs: --ids and the input of
 * tern detokenize.
 */
#ifndef TN_IDLIST_H
#define TN_IDLIST_H

#include "tern/status.h"
#include "tern/tokenizer.h"

/* Appends the ids of the text; `name` is its source, for errors.  The caller frees the list with
 * tern_ids_free.  TERN_USAGE names the first text that is not an id. */
tern_status tn_idlist_parse(struct tern_ids *out, const char *text, size_t n, const char *name,
                            struct tern_error *err);

#endif
