/* SPDX-License-Identifier: MIT
 *
 * Downloads one file of a repository into a folder, resuming an earlier attempt.
 *
 * The bytes are written to FOLDER/NAME.part and hashed as they arrive; an existing part file is
 * hashed first and continued.  If size and hash are the expected ones, it is synced to the disk and
 * renamed: a file without ".part" is complete.
 */
#ifndef TN_DOWNLOAD_H
#define TN_DOWNLOAD_H

#include "hub/fetch.h"
#include "hub/listing.h"

/* Bytes of all files of the model: downloaded, of these before this run, and in total. */
struct tn_pull_progress {
    void (*report)(void *arg, uint64_t n_done, uint64_t n_before, uint64_t n_total);
    void *arg;
    uint64_t n_done, n_before, n_total;
};

/* TERN_NETWORK: as tn_fetch; a size or hash that differs from the expected one: then the part file
 * is removed.  TERN_OUTPUT: the disk; TERN_INTERRUPTED, TERN_MEMORY: the part file stays. */
tern_status tn_download(const struct tn_hub *hub, const char *repository,
                        const struct tn_listing *listing, const struct tn_listed_file *file,
                        const char *folder, struct tn_pull_progress *progress,
                        struct tern_error *err);

/* Bytes of it in the folder: of the complete file, or of its part file. */
uint64_t tn_download_present_bytes(const struct tn_listed_file *file, const char *folder);

#endif
