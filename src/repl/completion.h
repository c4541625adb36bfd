/* SPDX-License-Identifier: MIT
 *
 * Completion candidates for the word before the cursor: those of the caller's completer, and file
 * names.
 *
 * Called by editor.c for Tab.
 */
#ifndef TN_COMPLETION_H
#define TN_COMPLETION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "repl/line_reader.h"

/* Zero-initialise; tn_candidates_fini frees. */
struct tn_candidates {
    size_t start; /* offset of the word in the line */
    char **texts; /* sorted, without duplicates */
    size_t n_texts;
    size_t n_room;
    bool failed; /* out of memory; the list is incomplete */
};

void tn_candidates_fini(struct tn_candidates *c);
/* Collects the completions of line[start, cursor). */
void tn_candidates_collect(struct tn_candidates *c, const struct tn_completer *completer,
                           const char *line, size_t cursor);
/* Length of the common prefix in bytes, whole clusters; there must be a candidate. */
size_t tn_candidates_common(const struct tn_candidates *c);
/* Appends the candidates in columns, at most max_rows rows, each with a line ending. */
bool tn_candidates_show(const struct tn_candidates *c, struct tn_buf *out, uint32_t columns,
                        uint32_t max_rows);

#endif
