/* SPDX-License-Identifier: MIT
 *
 * Candidates for the word before the cursor: those of a completer, and names of files.
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
    size_t start; /* of the word in the line */
    char **texts; /* sorted, each once */
    size_t n_texts;
    size_t n_room;
    bool failed; /* no memory for all */
};

void tn_candidates_fini(struct tn_candidates *c);
/* Asks for what line[start, cursor) may become. */
void tn_candidates_collect(struct tn_candidates *c, const struct tn_completer *completer,
                           const char *line, size_t cursor);
/* Bytes that all of them begin with, whole clusters; there is at least one. */
size_t tn_candidates_common(const struct tn_candidates *c);
/* Appends them in columns, at most max_rows rows; each row ends with a line end. */
bool tn_candidates_show(const struct tn_candidates *c, struct tn_buf *out, uint32_t columns,
                        uint32_t max_rows);

#endif
