/* SPDX-License-Identifier: MIT
 *
 * Downloads a model (pull_model.h): list, check against the catalogue, check the free space, then
 * one file after the other.
 */
#include "hub/pull_model.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "hub/download_folder.h"
#include "plat/plat.h"

/* ---- checks against the catalogue ---- */

static tern_status differs(const struct tn_catalogue_model *known, const char *what,
                           struct tern_error *err)
{
    return tn_fail(err, TERN_NETWORK,
                   "%s: the hub has a file of another %s than tern knows for %s; a newer tern may "
                   "know it",
                   known->repository, what, known->name);
}

/* The file of a known model must have the known size and hash. */
static tern_status check_known(const struct tn_listing *listing,
                               const struct tn_catalogue_model *known, struct tern_error *err)
{
    struct tn_listed_file *file = &listing->files[0];
    if (known->file_bytes && file->n_bytes != known->file_bytes)
        return differs(known, "size", err);
    if (known->sha256[0] && file->sha256[0] && strcmp(file->sha256, known->sha256) != 0)
        return differs(known, "hash", err);
    if (known->sha256[0])
        memcpy(file->sha256, known->sha256, sizeof file->sha256);
    return TERN_OK;
}

/* ---- free space ---- */

static uint64_t present_bytes(const struct tn_pulled *p)
{
    uint64_t n_bytes = 0;
    for (uint32_t i = 0; i < p->listing.n; i++)
        n_bytes += tn_download_present_bytes(&p->listing.files[i], p->folder);
    return n_bytes;
}

/* For a while both the download and the converted file exist. */
static tern_status check_room(const struct tn_pulled *p, const struct tn_pull_params *params,
                              struct tern_error *err)
{
    const uint64_t n_download = tn_listing_bytes(&p->listing);
    const uint64_t n_result = params->known ? params->known->tern_bytes : n_download;
    const uint64_t need = n_download - present_bytes(p) + n_result;
    const uint64_t n_free = tn_disk_free_bytes(p->folder);
    if (n_free >= need)
        return TERN_OK;
    return tn_fail(err, TERN_OUTPUT,
                   "%s: download and converted file need %.2f GB, %.2f GB are free where \"%s\" is",
                   params->name, (double)need * 1e-9, (double)n_free * 1e-9, p->folder);
}

/* ---- the steps ---- */

/* The user did not name the revision: it is that of an earlier attempt, now continued. */
static void explain_missing_revision(const struct tn_pull_params *params, const char *revision,
                                     struct tern_error *err)
{
    if (err && strstr(err->detail, "(status 404)"))
        tn_fail(err, TERN_NETWORK,
                "%s: the hub no longer has revision %.8s, of which files are here (status 404); "
                "for the newest: tern remove %s, then pull again",
                params->repository, revision, params->name);
}

static tern_status list(struct tn_pulled *p, const struct tn_hub *hub,
                        const struct tn_pull_params *params, struct tern_error *err)
{
    const struct tn_catalogue_model *known = params->known;
    struct tn_download_state state = {.is_kept = false};
    bool was_begun;
    tern_status status = tn_download_state_read(&state, &was_begun, p->folder, err);
    if (status != TERN_OK)
        return status;
    /* Continues the same revision; files of another model are useless. */
    const bool same = was_begun && strcmp(state.repository, params->repository) == 0 &&
                      strcmp(state.file, params->file) == 0 &&
                      (!known || !known->revision[0] ||
                       strcmp(known->revision, state.revision) == 0);
    if (!same && state.is_kept)
        return tn_fail(err, TERN_USAGE,
                       "\"%s\" keeps another download, of %s; move it, or: tern remove %s",
                       p->folder, state.repository, params->name);
    const char *revision = same ? state.revision : known ? known->revision : "";
    status = tn_listing_read(&p->listing, hub, params->repository, revision, params->file, err);
    if (status == TERN_NETWORK && same && !(known && known->revision[0]))
        explain_missing_revision(params, revision, err);
    if (status == TERN_OK && known)
        status = check_known(&p->listing, known, err);
    if (status != TERN_OK)
        return status;
    if (!same)
        tn_download_folder_clear(p->folder); /* not before the new files are known to exist */
    state = (struct tn_download_state){.is_kept = same && state.is_kept};
    memcpy(state.repository, params->repository, strlen(params->repository) + 1);
    memcpy(state.file, params->file, strlen(params->file) + 1);
    memcpy(state.revision, p->listing.revision, sizeof state.revision);
    return tn_download_state_write(&state, p->folder, err);
}

static tern_status fetch_all(struct tn_pulled *p, const struct tn_hub *hub,
                             const struct tn_pull_params *params, struct tern_error *err)
{
    struct tn_pull_progress progress = {.report = params->on_progress, .arg = params->arg,
                                        .n_total = tn_listing_bytes(&p->listing)};
    tern_status status = check_room(p, params, err);
    if (status == TERN_OK)
        params->on_listing(params->arg, &p->listing, present_bytes(p));
    for (uint32_t i = 0; i < p->listing.n && status == TERN_OK; i++)
        status = tn_download(hub, params->repository, &p->listing, &p->listing.files[i], p->folder,
                             &progress, err);
    return status;
}

static tern_status open_folder(struct tn_pulled *p, const struct tn_pull_params *params,
                               struct tern_error *err)
{
    tern_status status = tn_dir_make(params->downloads, err);
    if (status == TERN_OK)
        status = tn_download_lock(&p->lock, params->downloads, params->name, err);
    if (status != TERN_OK)
        return status;
    tn_download_remove_stale(params->downloads, params->name, tn_file_modified_ns(p->lock));
    p->folder = tn_path_join(params->downloads, params->name);
    return p->folder ? tn_dir_make(p->folder, err)
                     : tn_fail(err, TERN_MEMORY, "no memory for a path");
}

tern_status tn_pull_download(struct tn_pulled *out, const struct tn_hub *hub,
                             const struct tn_pull_params *params, struct tern_error *err)
{
    *out = (struct tn_pulled){0};
    tern_status status = open_folder(out, params, err);
    if (status == TERN_OK)
        status = list(out, hub, params, err);
    if (status == TERN_OK)
        status = fetch_all(out, hub, params, err);
    if (status == TERN_OK) {
        out->is_verified = params->known && params->known->sha256[0];
        out->source = tn_path_join(out->folder, tn_listing_is_gguf(&out->listing)
                                                    ? out->listing.files[0].name
                                                    : "");
        if (!out->source)
            status = tn_fail(err, TERN_MEMORY, "no memory for a path");
    }
    if (status != TERN_OK)
        tn_pull_release(out);
    return status;
}

void tn_pull_finish(struct tn_pulled *pulled, bool keep)
{
    struct tn_download_state state;
    bool was_begun;
    const tern_status status = tn_download_state_read(&state, &was_begun, pulled->folder, NULL);
    if (status == TERN_OK && !keep && !state.is_kept) {
        tn_download_folder_clear(pulled->folder);
        (void)tn_dir_remove(pulled->folder);
    } else if (was_begun) {
        state.is_kept = true;
        (void)tn_download_state_write(&state, pulled->folder, NULL);
    }
    tn_pull_release(pulled);
}

void tn_pull_release(struct tn_pulled *pulled)
{
    tn_listing_fini(&pulled->listing);
    tn_free(pulled->source);
    tn_free(pulled->folder);
    tn_file_abort_part(pulled->lock);
    *pulled = (struct tn_pulled){0};
}
