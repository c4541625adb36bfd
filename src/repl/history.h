/* SPDX-License-Identifier: MIT
 *
 * The sent messages, for the arrow keys and Ctrl-R: in memory, and optionally in a file.
 *
 * The file has one entry per line (\\ and \n encode a backslash and a line ending), is readable by
 * its owner only, and is replaced atomically.  Several processes may share it: entries that others
 * added are kept.
 */
#ifndef TN_HISTORY_H
#define TN_HISTORY_H

#include <stdbool.h>
#include <stddef.h>

#include "tern/status.h"

#define TN_HISTORY_ENTRIES 1000
/* Longer entries are kept in memory only. */
#define TN_HISTORY_MAX_SAVED ((size_t)64 << 10)

struct tn_history_entry {
    char *text;
    size_t n_bytes;
};

/* Zero-initialise; tn_history_fini frees. */
struct tn_history {
    struct tn_history_entry *entries; /* [TN_HISTORY_ENTRIES], oldest first */
    size_t n_entries;
    size_t n_unsaved; /* newest entries not yet in the file */
    const char *path; /* NULL: none */
};

void tn_history_fini(struct tn_history *h);
/* Skips empty entries and a repetition of the newest; drops the oldest when full.  false: out of
 * memory, nothing is added. */
bool tn_history_add(struct tn_history *h, const char *text, size_t n);
/* Reads the file at `path`, which is used from now on and must outlive h; a missing file is fine.
 * TERN_INPUT: it is no history, because it contains NUL or more than TN_HISTORY_ENTRIES lines. */
tern_status tn_history_open(struct tn_history *h, const char *path, struct tern_error *err);
/* Writes the unsaved entries to the file, without the oldest ones if it would be too long to be
 * read; does nothing without a file. */
tern_status tn_history_save(struct tn_history *h, struct tern_error *err);

/* The newest entry with index < from (is_newer: the oldest with index > from) that contains the n
 * bytes; n_entries: none.  Without capitals in the query, case is ignored.  *at: offset in the
 * entry. */
size_t tn_history_find(const struct tn_history *h, size_t from, bool is_newer, const char *bytes,
                       size_t n, size_t *at);

#endif
