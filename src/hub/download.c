/* SPDX-License-Identifier: MIT
 *
 * Downloads one file (download.h): hashes an existing part file, appends the received bytes, and
 * checks size and hash before it is renamed.
 */
#include "hub/download.h"

#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/error.h"
#include "hub/curl.h"
#include "plat/plat.h"

#define PIECE_BYTES ((size_t)1 << 20)

struct download {
    const struct tn_listed_file *wanted;
    const char *part; /* path of the part file */
    struct tn_file *file;
    struct tn_sha256 sha;
    uint64_t n_done;
    struct tn_pull_progress *progress;
};

static void report(struct tn_pull_progress *progress, uint64_t n_more, bool was_there)
{
    progress->n_done += n_more;
    progress->n_before += was_there ? n_more : 0;
    progress->report(progress->arg, progress->n_done, progress->n_before, progress->n_total);
}

/* ---- an existing part file ---- */

static tern_status hash_bytes(struct download *d, struct tn_file *file, uint64_t n_bytes,
                              struct tern_error *err)
{
    char *piece = tn_alloc(PIECE_BYTES);
    tern_status status =
        piece ? TERN_OK : tn_fail(err, TERN_MEMORY, "no memory to read \"%s\"", d->part);
    while (status == TERN_OK && d->n_done < n_bytes) {
        const size_t n = (size_t)TN_MIN(n_bytes - d->n_done, PIECE_BYTES);
        status = tn_stop_requested() ? tn_pull_fail_interrupted(err)
                                     : tn_file_read_at(file, d->n_done, piece, n, err);
        if (status == TERN_OK) {
            tn_sha256_update(&d->sha, piece, n);
            d->n_done += n;
            report(d->progress, n, true);
        }
    }
    tn_free(piece);
    return status;
}

/* Continues the part file; one that is longer than the file cannot be a prefix of it. */
static tern_status take_up_part(struct download *d, struct tern_error *err)
{
    struct tn_file *file;
    if (tn_path_kind(d->part) != TN_PATH_FILE)
        return TERN_OK;
    tern_status status = tn_file_open_read(&file, d->part, err);
    if (status != TERN_OK)
        return status;
    const uint64_t n_bytes = tn_file_size(file);
    if (n_bytes <= d->wanted->n_bytes)
        status = hash_bytes(d, file, n_bytes, err);
    tn_file_close(file);
    if (n_bytes > d->wanted->n_bytes)
        tn_file_remove(d->part);
    return status;
}

/* ---- the sink ---- */

static uint64_t sink_offset(void *arg)
{
    return ((struct download *)arg)->n_done;
}

static tern_status start_again(struct download *d, struct tern_error *err)
{
    tn_file_close(d->file);
    d->file = NULL;
    d->progress->n_done -= d->n_done;
    d->progress->n_before -= TN_MIN(d->progress->n_before, d->n_done);
    d->n_done = 0;
    tn_sha256_init(&d->sha);
    tn_file_remove(d->part);
    return tn_file_open_append(&d->file, d->part, err);
}

static tern_status sink_begin(void *arg, const struct tn_response_head *head,
                              struct tern_error *err)
{
    struct download *d = arg;
    const uint64_t first = head->status == 206 ? d->n_done : 0;
    const uint64_t n_expected = d->wanted->n_bytes - first;
    if (first > 0 && head->range_first != first)
        return tn_fail(err, TERN_NETWORK,
                       "\"%s\": the server sends another range than from byte %llu on",
                       d->wanted->name, (unsigned long long)first);
    /* Before earlier bytes are dropped: the body may be that of a page about an error. */
    if (head->content_bytes != TN_LENGTH_UNKNOWN && head->content_bytes != n_expected)
        return tn_fail(err, TERN_NETWORK,
                       "\"%s\": the server has %llu bytes where %llu were promised",
                       d->wanted->name, (unsigned long long)head->content_bytes,
                       (unsigned long long)n_expected);
    return first < d->n_done ? start_again(d, err) : TERN_OK;
}

static tern_status sink_take(void *arg, const void *bytes, size_t n, struct tern_error *err)
{
    struct download *d = arg;
    if (n > d->wanted->n_bytes - d->n_done) {
        tn_file_remove(d->part);
        return tn_fail(err, TERN_NETWORK,
                       "\"%s\": the server sends more than the %llu bytes that were promised",
                       d->wanted->name, (unsigned long long)d->wanted->n_bytes);
    }
    const tern_status status = tn_file_append(d->file, bytes, n, err);
    if (status != TERN_OK)
        return status;
    tn_sha256_update(&d->sha, bytes, n);
    d->n_done += n;
    report(d->progress, n, false);
    return TERN_OK;
}

/* ---- one file ---- */

static tern_status check(struct download *d, struct tern_error *err)
{
    char sha256[TN_SHA256_HEX_BYTES];
    tn_sha256_finish(&d->sha, sha256);
    if (d->n_done != d->wanted->n_bytes)
        return tn_fail(err, TERN_NETWORK, "\"%s\": %llu bytes came where %llu were promised",
                       d->wanted->name, (unsigned long long)d->n_done,
                       (unsigned long long)d->wanted->n_bytes);
    if (d->wanted->sha256[0] && strcmp(sha256, d->wanted->sha256) != 0)
        return tn_fail(err, TERN_NETWORK,
                       "\"%s\": its SHA-256 is %.12s..., %.12s... was promised; it was removed, "
                       "try again",
                       d->wanted->name, sha256, d->wanted->sha256);
    /* The hash is that of the bytes that came, which may not be all that the file has. */
    if (tn_file_size(d->file) != d->n_done)
        return tn_fail(err, TERN_OUTPUT,
                       "\"%s\" has %llu bytes where %llu were written; does another program write "
                       "to it? try again",
                       d->part, (unsigned long long)tn_file_size(d->file),
                       (unsigned long long)d->n_done);
    return tn_file_sync(d->file, err);
}

static tern_status download(struct download *d, const struct tn_hub *hub, const char *url,
                            const char *repository, const char *path, struct tern_error *err)
{
    const struct tn_sink sink = {sink_offset, sink_begin, sink_take, d, d->wanted->n_bytes};
    tern_status status = take_up_part(d, err);
    if (status == TERN_OK)
        status = tn_file_open_append(&d->file, d->part, err);
    if (status == TERN_OK && d->n_done < d->wanted->n_bytes)
        status = tn_fetch(hub, url, repository, &sink, err);
    if (status == TERN_OK) {
        status = check(d, err);
        if (status == TERN_NETWORK)
            tn_file_remove(d->part);
    }
    tn_file_close(d->file);
    return status == TERN_OK ? tn_file_replace(d->part, path, err) : status;
}

static bool is_complete(const struct tn_listed_file *wanted, const char *path)
{
    struct tn_file *file;
    if (tn_file_open_read(&file, path, NULL) != TERN_OK)
        return false;
    const bool complete = tn_file_size(file) == wanted->n_bytes;
    tn_file_close(file);
    return complete;
}

tern_status tn_download(const struct tn_hub *hub, const char *repository,
                        const struct tn_listing *listing, const struct tn_listed_file *file,
                        const char *folder, struct tn_pull_progress *progress,
                        struct tern_error *err)
{
    char url[TN_URL_MAX_BYTES + 1], part_name[TN_MAX_FILE_NAME_BYTES + sizeof ".part"];
    struct download d = {.wanted = file, .progress = progress};
    tn_sha256_init(&d.sha);
    memcpy(part_name, file->name, strlen(file->name) + 1);
    strcat(part_name, ".part");
    char *path = tn_path_join(folder, file->name), *part = tn_path_join(folder, part_name);
    tern_status status = TERN_OK;
    d.part = part;
    if (!path || !part)
        status = tn_fail(err, TERN_MEMORY, "no memory for a path");
    else if (!tn_listing_url(url, sizeof url, hub, repository, listing, file->name))
        status = tn_fail(err, TERN_USAGE, "HF_ENDPOINT is too long");
    else if (is_complete(file, path))
        report(progress, file->n_bytes, true);
    else
        status = download(&d, hub, url, repository, path, err);
    tn_free(path);
    tn_free(part);
    return status;
}

static uint64_t size_of(const char *folder, const char *name, const char *ending)
{
    char full[TN_MAX_FILE_NAME_BYTES + 8];
    struct tn_file *file = NULL;
    uint64_t n_bytes = 0;
    memcpy(full, name, strlen(name) + 1);
    strcat(full, ending);
    char *path = tn_path_join(folder, full);
    if (path && tn_file_open_read(&file, path, NULL) == TERN_OK)
        n_bytes = tn_file_size(file);
    tn_file_close(file);
    tn_free(path);
    return n_bytes;
}

uint64_t tn_download_present_bytes(const struct tn_listed_file *file, const char *folder)
{
    const uint64_t whole = size_of(folder, file->name, "");
    const uint64_t n = whole ? whole : size_of(folder, file->name, ".part");
    return TN_MIN(n, file->n_bytes);
}
