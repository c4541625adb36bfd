/* SPDX-License-Identifier: MIT
 *
 * "1 2 3" or "1,2,3": ids that a person or a program wrote.
 */
#ifndef TN_IDLIST_H
#define TN_IDLIST_H

#include "tern/status.h"
#include "tern/tokenizer.h"

/* Appends the ids of the text; `name` says in errors where it came from. The list is grown here and
 * freed by tern_ids_free. TERN_USAGE names the first thing that is no id. */
tern_status tn_idlist_parse(struct tern_ids *out, const char *text, size_t n, const char *name,
                            struct tern_error *err);

#endif
