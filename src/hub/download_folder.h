/* SPDX-License-Identifier: MIT
 *
 * The folder of a model's download, whose layout is in hub/pull_model.h: its state, its lock, its
 * age.
 */
#ifndef TN_DOWNLOAD_FOLDER_H
#define TN_DOWNLOAD_FOLDER_H

#include <stdbool.h>
#include <stdint.h>

#include "hub/listing.h"
#include "tern/status.h"

#define TN_DOWNLOAD_STALE_DAYS 7

struct tn_file;

struct tn_download_state {
    char repository[TN_MAX_REPOSITORY_BYTES + 1];
    char file[TN_MAX_FILE_NAME_BYTES + 1]; /* as the user named it; "": not named */
    char revision[TN_REVISION_BYTES];
    bool is_kept; /* the model was converted, and the user wants to keep its source */
};

/* was_begun is false, and *out zero, if there is no state or it is invalid.  TERN_MEMORY. */
tern_status tn_download_state_read(struct tn_download_state *out, bool *was_begun,
                                   const char *folder, struct tern_error *err);
tern_status tn_download_state_write(const struct tn_download_state *state, const char *folder,
                                    struct tern_error *err);

/* Creates DOWNLOADS/NAME.lock, which tn_file_abort_part removes.  TERN_OUTPUT: another process
 * holds it. */
tern_status tn_download_lock(struct tn_file **out, const char *downloads, const char *name,
                             struct tern_error *err);

/* Removes the files in a folder; subfolders stay. */
void tn_download_folder_clear(const char *folder);

/* Removes the download of a model, finished or not; true: there was one.  TERN_OUTPUT in *err:
 * another process is downloading it. */
bool tn_download_folder_remove(const char *downloads, const char *name, struct tern_error *err);

/* The model is converted: removes what a process that was killed left of its download and its lock.
 * A download that the user keeps, or that another process works on, stays. */
void tn_download_folder_remove_rest(const char *downloads, const char *name);

/* Removes the downloads except that of `name` that are neither finished nor kept, that no process
 * is continuing, and whose newest file is older than TN_DOWNLOAD_STALE_DAYS at now_ns (as
 * tn_file_modified_ns). */
void tn_download_remove_stale(const char *downloads, const char *name, uint64_t now_ns);

#endif
