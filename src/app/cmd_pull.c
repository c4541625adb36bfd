/* SPDX-License-Identifier: MIT
 *
 * tern pull: downloads a model and converts it into the user's folder.  hub/ downloads,
 * converting.c converts.
 */
#include <stdio.h>
#include <string.h>

#include "app.h"
#include "base/alloc.h"
#include "base/error.h"
#include "converting.h"
#include "hub/download_folder.h"
#include "hub/pull_model.h"
#include "json_io.h"
#include "known_models.h"
#include "output.h"
#include "plat/plat.h"
#include "progress.h"
#include "pull.h"

#define JSON_PERIOD_NS 500000000u

struct job {
    const struct tn_options *o;
    const struct tn_catalogue_model *known; /* NULL: another repository */
    struct tn_repository_name typed;
    const char *repository, *file;
    char name[TN_MAX_REPOSITORY_BYTES + 1];
    char *models, *downloads, *path; /* folders, and the .tern file */
    uint64_t printed_ns; /* time of the last line of JSON */
};

/* ---- the model to pull ---- */

static tern_status unknown_name(const char *typed, struct tern_error *err)
{
    const char *nearest = tn_fetchable_name(typed);
    if (nearest)
        return tn_fail(err, TERN_USAGE, "no known model is called \"%.100s\"; did you mean %s?",
                       typed, nearest);
    return tn_fail(err, TERN_USAGE,
                   "no known model is called \"%.100s\"; tern pull shows those that are known, "
                   "tern pull OWNER/REPO fetches any other",
                   typed);
}

/* "OWNER/REPO:FILE" is a known model if FILE is its known file. */
static tern_status find_target(struct job *job, const char *typed, struct tern_error *err)
{
    job->known = tn_catalogue_find(typed);
    if (!job->known && !strchr(typed, '/'))
        return unknown_name(typed, err);
    if (!job->known) {
        const tern_status status = tn_repository_name_parse(&job->typed, typed, err);
        if (status != TERN_OK)
            return status;
        job->known = tn_catalogue_find(job->typed.repository);
        if (job->known && strcmp(job->known->file, job->typed.file) != 0)
            job->known = NULL;
    }
    job->repository = job->known ? job->known->repository : job->typed.repository;
    job->file = job->known ? job->known->file : job->typed.file;
    if (job->known)
        snprintf(job->name, sizeof job->name, "%s", job->known->name);
    else
        tn_repository_local_name(job->name, job->repository);
    if (!tn_file_name_is_harmless(job->name))
        return tn_fail(err, TERN_USAGE, "\"%s\" cannot be the name of a model", job->name);
    return TERN_OK;
}

static tern_status find_folders(struct job *job, struct tern_error *err)
{
    char file[TN_MAX_REPOSITORY_BYTES + sizeof ".tern"];
    char *data = tn_path_of_data_dir();
    snprintf(file, sizeof file, "%s.tern", job->name);
    job->models = tn_path_of_models_dir();
    job->downloads = data ? tn_path_join(data, "downloads") : NULL;
    job->path = job->models ? tn_path_join(job->models, file) : NULL;
    tn_free(data);
    if (!job->path || !job->downloads)
        return tn_fail(err, TERN_OUTPUT, TN_NO_MODELS_DIR);
    return tn_dir_make(job->models, err);
}

/* ---- a model that exists already ---- */

static tern_status print_path(const struct job *job, struct tern_error *err)
{
    if (!job->o->json)
        return TERN_OK;
    json_t *line = json_object();
    json_object_set_new(line, "path", tn_json_io_text(job->path));
    return tn_json_io_print(line, err);
}

static tern_status is_there(bool *there, const struct job *job, struct tern_error *err)
{
    struct tn_origin origin;
    *there = tn_path_kind(job->path) != TN_PATH_ABSENT;
    if (!*there)
        return TERN_OK;
    tn_origin_read(&origin, job->path);
    const bool is_other_file =
        origin.file[0] && job->file[0] && strcmp(origin.file, job->file) != 0;
    if (strcmp(origin.repository, job->repository) != 0 || is_other_file)
        return tn_fail(err, TERN_USAGE,
                       "\"%s\" exists and was made of %s%s%s; tern remove %s first, or move the "
                       "file",
                       job->path, origin.repository[0] ? origin.repository : "something else",
                       is_other_file ? ":" : "", is_other_file ? origin.file : "", job->name);
    if (!job->o->keep)
        tn_download_folder_remove_rest(job->downloads, job->name);
    tn_info_say("%s is here already (revision %.8s); tern remove %s before a new one is fetched",
                job->name, origin.revision, job->name);
    return TERN_OK;
}

/* ---- without curl ---- */

static void say_commands(const struct job *job, const struct tn_hub *hub)
{
    const char *revision = job->known && job->known->revision[0] ? job->known->revision : "main";
    tn_info_say("Download this, then run the command:");
    if (job->file[0])
        tn_info_say("  %s/%s/resolve/%s/%s", hub->endpoint.text, job->repository, revision,
                    job->file);
    else
        tn_info_say("  %s/%s/tree/%s", hub->endpoint.text, job->repository, revision);
    tn_info_say("  tern convert %s -o \"%s\"", job->file[0] ? job->file : "FILE", job->path);
}

/* ---- progress ---- */

static void on_progress(void *arg, uint64_t n_done, uint64_t n_before, uint64_t n_total)
{
    struct job *job = arg;
    const uint64_t now = tn_now_ns();
    tn_progress_set_before(n_before);
    tn_progress_update(n_done, n_total);
    if (!job->o->json || (n_done < n_total && now - job->printed_ns < JSON_PERIOD_NS))
        return;
    job->printed_ns = now;
    tn_out_printf("{\"bytes\":%llu,\"total\":%llu}\n", (unsigned long long)n_done,
                  (unsigned long long)n_total);
}

static void on_listing(void *arg, const struct tn_listing *listing, uint64_t n_present)
{
    const struct job *job = arg;
    const uint64_t n_bytes = tn_listing_bytes(listing);
    char present[64] = "";
    if (n_present)
        snprintf(present, sizeof present, ", %s of them here already",
                 tn_size_decimal((double)n_present).text);
    tn_info_say("%s: %s from %s, revision %.8s%s", job->name,
                tn_size_decimal((double)n_bytes).text, job->repository, listing->revision, present);
    if (job->known && job->known->licence[0])
        tn_info_say("licence: %s, see %s/%s", job->known->licence, tn_hub_address(),
                    tn_catalogue_licence_page(job->known));
}

static void on_retry(const struct tern_error *why, uint32_t seconds)
{
    tn_note_say("%s; next attempt in %u s", why->detail, seconds);
}

/* ---- the steps ---- */

static tern_status fetch(struct job *job, const struct tn_hub *hub, struct tn_pulled *pulled,
                         struct tern_error *err)
{
    const struct tn_pull_params params = {
        .known = job->known,
        .repository = job->repository,
        .file = job->file,
        .name = job->name,
        .downloads = job->downloads,
        .on_progress = on_progress,
        .on_listing = on_listing,
        .arg = job,
    };
    tn_progress_start("fetching", TN_PROGRESS_BYTES, true);
    const tern_status status = tn_pull_download(pulled, hub, &params, err);
    tn_progress_end();
    if (status == TERN_OK && !pulled->is_verified)
        tn_note_say("%s is unverified: its files match the hub's sizes and hashes, but tern itself "
                    "knows none of them",
                    job->name);
    return status;
}

/* The origin is written first: a .tern file without it would be taken for one that the user
 * made. */
static tern_status convert(struct job *job, const struct tn_pulled *pulled, struct tern_error *err)
{
    struct tn_origin origin = {{0}, {0}, {0}};
    struct tern_convert_params params = {.source = pulled->source, .output = job->path,
                                         .name = job->name};
    struct tern_convert_result *result = tn_alloc(sizeof *result);
    if (!result)
        return tn_fail(err, TERN_MEMORY, "no memory for a conversion");
    snprintf(origin.repository, sizeof origin.repository, "%s", job->repository);
    snprintf(origin.revision, sizeof origin.revision, "%s", pulled->listing.revision);
    snprintf(origin.file, sizeof origin.file, "%s", job->file);
    tern_status status = tn_origin_write(&origin, job->path, err);
    if (status == TERN_OK)
        status = tn_convert_and_say(&params, result, err);
    if (status != TERN_OK && tn_path_kind(job->path) == TN_PATH_ABSENT)
        tn_origin_remove(job->path);
    tn_free(result);
    return status;
}

static tern_status fetch_and_convert(struct job *job, struct tern_error *err)
{
    struct tn_hub hub;
    struct tn_pulled pulled;
    tern_status status = tn_hub_open(&hub, err);
    if (status == TERN_NETWORK) { /* no curl */
        say_commands(job, &hub);
        return status;
    }
    hub.on_retry = on_retry;
    if (status == TERN_OK)
        status = fetch(job, &hub, &pulled, err);
    tn_hub_close(&hub);
    if (status != TERN_OK)
        return status;
    status = convert(job, &pulled, err);
    if (status == TERN_OK && job->o->keep)
        tn_info_say("kept: %s", pulled.folder);
    if (status == TERN_OK)
        tn_pull_finish(&pulled, job->o->keep);
    else
        tn_pull_release(&pulled);
    return status;
}

static tern_status pull(struct job *job, struct tern_error *err)
{
    bool there;
    tern_status status = find_target(job, job->o->positional[0], err);
    if (status == TERN_OK)
        status = find_folders(job, err);
    if (status == TERN_OK)
        status = is_there(&there, job, err);
    if (status == TERN_OK && !there)
        status = fetch_and_convert(job, err);
    if (status == TERN_OK)
        status = print_path(job, err);
    if (status == TERN_OK)
        tn_suggest_command(job->path, true);
    return status;
}

int tn_cmd_pull(const struct tn_options *o)
{
    struct tern_error err = {0};
    struct job job = {.o = o};
    if (o->n_positional == 0)
        return tn_pull_list(o);
    const tern_status status = pull(&job, &err);
    tn_free(job.models);
    tn_free(job.downloads);
    tn_free(job.path);
    return status == TERN_OK ? 0 : tn_error_print(&err);
}
