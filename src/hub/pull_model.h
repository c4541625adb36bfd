/* SPDX-License-Identifier: MIT
 *
 * Downloads a model: its folder, its lock, its state between attempts.
 *
 *   DOWNLOADS/NAME.lock        exists while a process downloads NAME
 *   DOWNLOADS/NAME/pull.json   repository, revision and file, so that a second attempt continues
 *                              with the same bytes; "kept" if the user keeps the download
 *   DOWNLOADS/NAME/FILE        complete; FILE.part: its first bytes
 */
#ifndef TN_PULL_MODEL_H
#define TN_PULL_MODEL_H

#include "hub/catalogue.h"
#include "hub/download.h"

struct tn_pull_params {
    const struct tn_catalogue_model *known; /* NULL: a repository that is not in the catalogue */
    const char *repository, *file;          /* "OWNER/REPO"; "": the only model of the repository */
    const char *name;                       /* of the model: a harmless file name */
    const char *downloads;                  /* folder, created if missing */
    void (*on_progress)(void *arg, uint64_t n_done, uint64_t n_before, uint64_t n_total);
    /* Called before the first byte, when the files are known. */
    void (*on_listing)(void *arg, const struct tn_listing *listing, uint64_t n_present);
    void *arg;
};

struct tn_pulled {
    char *source; /* path for the converter: a .gguf file or a folder */
    struct tn_listing listing;
    bool is_verified; /* the catalogue's hash was checked */
    char *folder;
    struct tn_file *lock;
};

/* Downloads the model's missing files.  After TERN_OK all of them are complete; after a failure the
 * part files stay, and the next attempt continues them.  TERN_OUTPUT: another process downloads
 * this model; there is no room for the download and `known->tern_bytes` (or as many bytes again);
 * TERN_USAGE: the folder contains files of another model, which stay; otherwise as tn_listing_read
 * and tn_download.  Both of the next two calls release *out. */
tern_status tn_pull_download(struct tn_pulled *out, const struct tn_hub *hub,
                             const struct tn_pull_params *params, struct tern_error *err);

/* Call after the conversion: removes the download, unless it was kept before; `keep` keeps and
 * marks it. */
void tn_pull_finish(struct tn_pulled *pulled, bool keep);
/* Call if the conversion failed: the download stays. */
void tn_pull_release(struct tn_pulled *pulled);

#endif
