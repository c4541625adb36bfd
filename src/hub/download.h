/* SPDX-License-Identifier: MIT
 *
 * One file of a repository -> one file in a folder, resumed where an earlier attempt ended.
 *
 * The bytes go to FOLDER/NAME.part and are hashed as they come; a part that is there is hashed
 * first and continued.  When size and hash are those that were promised, the part is synced to the
 * disk and gets its name: a file without ".part" is complete.
 */
#ifndef TN_DOWNLOAD_H
#define TN_DOWNLOAD_H

#include "hub/fetch.h"
#include "hub/listing.h"

/* Bytes of all files of the model: done, of these there before this run, and in all. */
struct tn_pull_progress {
    void (*report)(void *arg, uint64_t n_done, uint64_t n_before, uint64_t n_total);
    void *arg;
    uint64_t n_done, n_before, n_total;
};

/* TERN_NETWORK: as tn_fetch; another size or hash than promised, and then the part is gone.
 * TERN_OUTPUT: the disk; TERN_INTERRUPTED, TERN_MEMORY: the part stays. */
tern_status tn_download(const struct tn_hub *hub, const char *repository,
                        const struct tn_listing *listing, const struct tn_listed_file *file,
                        const char *folder, struct tn_pull_progress *progress,
                        struct tern_error *err);

/* Bytes of it that are in the folder: complete, or of its part. */
uint64_t tn_download_present_bytes(const struct tn_listed_file *file, const char *folder);

#endif
