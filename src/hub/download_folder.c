/* SPDX-License-Identifier: MIT
 *
 * The folder of a model's download (download_folder.h): reads and writes its state, locks it, and
 * removes folders that are finished or stale.
 */
#include "hub/download_folder.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/json_load.h"
#include "plat/plat.h"

#define STATE_FILE "pull.json"
#define MAX_STATE_BYTES 4096u
#define STALE_NS ((uint64_t)TN_DOWNLOAD_STALE_DAYS * 24 * 3600 * 1000000000u)

/* ---- state ---- */

/* Copies a member of the JSON object; false: it is absent or too long. */
static bool read_text(char *dst, size_t n_dst, const json_t *root, const char *name)
{
    const char *text = json_string_value(json_object_get(root, name));
    const size_t n = text ? strlen(text) : 0;
    if (!text || n >= n_dst)
        return false;
    memcpy(dst, text, n + 1);
    return true;
}

static bool read_state(struct tn_download_state *out, const json_t *root)
{
    out->is_kept = json_is_true(json_object_get(root, "kept"));
    return read_text(out->repository, sizeof out->repository, root, "repository") &&
           read_text(out->file, sizeof out->file, root, "file") &&
           read_text(out->revision, sizeof out->revision, root, "revision") &&
           strspn(out->revision, "0123456789abcdef") == TN_REVISION_BYTES - 1;
}

tern_status tn_download_state_read(struct tn_download_state *out, bool *was_begun,
                                   const char *folder, struct tern_error *err)
{
    char *text = NULL;
    size_t n;
    json_t *root = NULL;
    *out = (struct tn_download_state){.is_kept = false};
    *was_begun = false;
    char *path = tn_path_join(folder, STATE_FILE);
    /* Also after a Ctrl-C: a download whose state is unknown is not kept. */
    tern_status status = path ? tn_file_read_regular(&text, &n, path, MAX_STATE_BYTES, err)
                              : tn_fail(err, TERN_MEMORY, "no memory for a path");
    if (status == TERN_OK)
        status = tn_json_load(&root, path, text, n, TN_JSON_LARGE_AS_REAL, err);
    if (status == TERN_OK)
        *was_begun = read_state(out, root);
    json_decref(root);
    tn_free(text);
    tn_free(path);
    if (!*was_begun)
        *out = (struct tn_download_state){.is_kept = false};
    return status == TERN_MEMORY ? status : tn_ok(err);
}

/* The names of repositories, files and revisions need no JSON escapes (repository_names.h). */
tern_status tn_download_state_write(const struct tn_download_state *state, const char *folder,
                                    struct tern_error *err)
{
    struct tn_buf text = {0};
    tn_buf_printf(&text,
                  "{\"repository\":\"%s\",\"file\":\"%s\",\"revision\":\"%s\",\"kept\":%s}\n",
                  state->repository, state->file, state->revision,
                  state->is_kept ? "true" : "false");
    char *path = tn_path_join(folder, STATE_FILE);
    const tern_status status =
        path && !text.failed
            ? tn_file_write_private(path, text.data, text.n_bytes, err)
            : tn_fail(err, TERN_MEMORY, "no memory to record the download");
    tn_free(path);
    tn_buf_fini(&text);
    return status;
}

/* ---- lock ---- */

tern_status tn_download_lock(struct tn_file **out, const char *downloads, const char *name,
                             struct tern_error *err)
{
    struct tn_buf file_name = {0};
    tn_buf_printf(&file_name, "%s.lock", name);
    char *path = file_name.failed ? NULL : tn_path_join(downloads, tn_buf_text(&file_name));
    tern_status status = path ? tn_file_create_part(out, path, err)
                              : tn_fail(err, TERN_MEMORY, "no memory for a path");
    if (status == TERN_OUTPUT && err && strstr(err->detail, "another process"))
        tn_fail(err, TERN_OUTPUT, "%s: another process is pulling it; wait until it ends", name);
    tn_free(path);
    tn_buf_fini(&file_name);
    return status;
}

/* ---- removal ---- */

/* Finds the next file of a folder; false: there is none. */
struct find {
    const char *folder;
    char *path;
};

static bool find_file(void *arg, const char *name)
{
    struct find *find = arg;
    find->path = tn_path_join(find->folder, name);
    if (find->path && tn_path_kind(find->path) != TN_PATH_DIR)
        return false; /* stops the walk: found */
    tn_free(find->path);
    find->path = NULL;
    return true;
}

/* Walks once per file, because a walk over a changing folder is undefined. */
void tn_download_folder_clear(const char *folder)
{
    for (;;) {
        struct find find = {folder, NULL};
        (void)tn_dir_walk(folder, find_file, &find);
        if (!find.path)
            return;
        tn_file_remove(find.path);
        const bool stays = tn_path_kind(find.path) != TN_PATH_ABSENT;
        tn_free(find.path);
        if (stays)
            return;
    }
}

bool tn_download_folder_remove(const char *downloads, const char *name, struct tern_error *err)
{
    struct tn_file *lock;
    tn_ok(err);
    char *folder = tn_path_join(downloads, name);
    bool removed = folder && tn_path_kind(folder) == TN_PATH_DIR &&
                   tn_download_lock(&lock, downloads, name, err) == TERN_OK;
    if (removed) {
        tn_download_folder_clear(folder);
        removed = tn_dir_remove(folder);
        tn_file_abort_part(lock);
    }
    tn_free(folder);
    return removed;
}

void tn_download_folder_remove_rest(const char *downloads, const char *name)
{
    struct tn_file *lock;
    struct tn_download_state state;
    bool was_begun;
    if (tn_path_kind(downloads) != TN_PATH_DIR ||
        tn_download_lock(&lock, downloads, name, NULL) != TERN_OK)
        return;
    char *folder = tn_path_join(downloads, name);
    if (folder && tn_download_state_read(&state, &was_begun, folder, NULL) == TERN_OK &&
        !state.is_kept) {
        tn_download_folder_clear(folder);
        (void)tn_dir_remove(folder);
    }
    tn_free(folder);
    tn_file_abort_part(lock); /* also removes the lock file */
}

/* ---- age ---- */

struct age {
    const char *folder;
    uint64_t newest_ns;
};

static bool look_at_file(void *arg, const char *name)
{
    struct age *age = arg;
    struct tn_file *file;
    char *path = tn_path_join(age->folder, name);
    if (path && tn_file_open_read(&file, path, NULL) == TERN_OK) {
        age->newest_ns = TN_MAX(age->newest_ns, tn_file_modified_ns(file));
        tn_file_close(file);
    }
    tn_free(path);
    return true;
}

static bool is_stale(const char *folder, uint64_t now_ns)
{
    struct tn_download_state state;
    struct age age = {folder, 0};
    bool was_begun;
    if (tn_download_state_read(&state, &was_begun, folder, NULL) != TERN_OK || !was_begun ||
        state.is_kept)
        return false;
    (void)tn_dir_walk(folder, look_at_file, &age);
    return age.newest_ns > 0 && now_ns > age.newest_ns && now_ns - age.newest_ns > STALE_NS;
}

struct stale {
    const char *downloads, *name;
    uint64_t now_ns;
    char *found; /* name of a folder */
};

static bool find_stale(void *arg, const char *name)
{
    struct stale *s = arg;
    char *folder = tn_path_join(s->downloads, name);
    const bool found = folder && strcmp(name, s->name) != 0 &&
                       tn_path_kind(folder) == TN_PATH_DIR && is_stale(folder, s->now_ns);
    if (found)
        s->found = tn_path_join("", name);
    tn_free(folder);
    return !found;
}

void tn_download_remove_stale(const char *downloads, const char *name, uint64_t now_ns)
{
    struct tern_error unused;
    bool removed;
    do {
        struct stale s = {downloads, name, now_ns, NULL};
        (void)tn_dir_walk(downloads, find_stale, &s);
        removed = s.found && tn_download_folder_remove(downloads, s.found, &unused);
        tn_free(s.found);
    } while (removed);
}
