/* SPDX-License-Identifier: MIT
 *
 * The messages that were sent, for the arrow keys and Ctrl-R: in memory, and in a file when one is
 * given.  The file is one entry per line (\\ and \n stand for a backslash and a line end), only its
 * owner may read it, and it is always replaced as a whole: other programs see the old one or the
 * new one.  Several programs may share it: what others added is kept.
 */
#ifndef TN_HISTORY_H
#define TN_HISTORY_H

#include <stdbool.h>
#include <stddef.h>

#include "tern/status.h"

#define TN_HISTORY_ENTRIES 1000
/* Longer entries are kept in memory, not in the file. */
#define TN_HISTORY_MAX_SAVED ((size_t)64 << 10)

struct tn_history_entry {
    char *text;
    size_t n_bytes;
};

/* Zero-initialise; tn_history_fini frees. */
struct tn_history {
    struct tn_history_entry *entries; /* [TN_HISTORY_ENTRIES], the oldest first */
    size_t n_entries;
    size_t n_unsaved; /* the newest ones that are not in the file yet */
    const char *path; /* NULL: none */
};

void tn_history_fini(struct tn_history *h);
/* An entry that is equal to the newest one is not added, nor is an empty one; the oldest goes when
 * there are too many.  False: no memory, nothing is added. */
bool tn_history_add(struct tn_history *h, const char *text, size_t n);
/* Reads the file that `path` names from now on (it must live as long as h); absent is fine. */
tern_status tn_history_open(struct tn_history *h, const char *path, struct tern_error *err);
/* Adds to the file what is not there yet; nothing without one. */
tern_status tn_history_save(struct tn_history *h, struct tern_error *err);

/* The newest entry with index < from (or, is_newer, the oldest with index > from) that holds the n
 * bytes, whatever their case when they have no capitals; n_entries: none.  *at: where in it. */
size_t tn_history_find(const struct tn_history *h, size_t from, bool is_newer, const char *bytes,
                       size_t n, size_t *at);

#endif
