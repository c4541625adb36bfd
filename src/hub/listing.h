/* SPDX-License-Identifier: MIT
 *
 * The files of a repository at one revision, from the hub's tree API, and the selection of those
 * that make a model.
 */
#ifndef TN_LISTING_H
#define TN_LISTING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/sha256.h"
#include "hub/fetch.h"
#include "hub/repository_names.h"

#define TN_REVISION_BYTES 41 /* 40 hex digits and NUL */
#define TN_LISTING_MAX_ENTRIES 1000u
#define TN_MAX_MODEL_FILES 128u /* per model: parts and small files */

struct tn_listed_file {
    char name[TN_MAX_FILE_NAME_BYTES + 1];
    uint64_t n_bytes;
    char sha256[TN_SHA256_HEX_BYTES]; /* "": the hub provides none (small files) */
};

struct tn_listing {
    char revision[TN_REVISION_BYTES];
    struct tn_listed_file *files; /* [n] */
    uint32_t n;
};

/* Lists the files of a model: those of `revision` (40 hex digits), or of the newest one if it is
 * "", which is then stored in out->revision.  `file` is a .gguf file of the repository, whose other
 * parts are added; "": the only model in .gguf files, else the folder of safetensors. TERN_NETWORK:
 * as tn_fetch; names that could leave a folder, too many entries, a malformed response; TERN_INPUT:
 * no such file, or several models, which are listed. */
tern_status tn_listing_read(struct tn_listing *out, const struct tn_hub *hub,
                            const char *repository, const char *revision, const char *file,
                            struct tern_error *err);
void tn_listing_fini(struct tn_listing *listing);

/* Whether the model is a .gguf file (the first of its files), else a folder. */
bool tn_listing_is_gguf(const struct tn_listing *listing);
uint64_t tn_listing_bytes(const struct tn_listing *listing);

/* The address of a file: below the endpoint, at the listing's revision.  False: too long. */
bool tn_listing_url(char *out, size_t n_out, const struct tn_hub *hub, const char *repository,
                    const struct tn_listing *listing, const char *file);

/* For tests: the same from a response of the tree API. */
tern_status tn_listing_parse(struct tn_listing *out, const char *json, size_t n_json,
                             const char *repository, const char *file, struct tern_error *err);

#endif
