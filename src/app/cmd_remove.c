/* SPDX-License-Identifier: MIT
 *
 * tern remove: deletes a model in the user's folder, and the rest of its download.  Never deletes
 * anything outside that folder.
 */
#include <string.h>

#include "app.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/text_match.h"
#include "hub/download_folder.h"
#include "known_models.h"
#include "output.h"
#include "plat/plat.h"
#include "pull.h"

/* A name of the list, with or without its extension; never a path. */
static tern_status check_name(struct tn_buf *name, const char *typed, struct tern_error *err)
{
    const size_t n_stem = tn_text_n_stem(typed, ".tern");
    tn_buf_append(name, typed, n_stem ? n_stem : strlen(typed));
    if (name->failed)
        return tn_fail(err, TERN_MEMORY, "no memory for a name");
    if (!tn_file_name_is_harmless(tn_buf_text(name)))
        return tn_fail(err, TERN_USAGE,
                       "\"%.200s\" is not a name; type one that tern list shows", typed);
    return TERN_OK;
}

/* The model is not in the user's folder: reports where it is, or that there is none. */
static tern_status not_here(const char *name, const char *folder, struct tern_error *err)
{
    char *path = NULL;
    const tern_status status = tn_model_resolve(&path, name, TN_KNOWN_FOLDERS, err);
    if (status == TERN_OK)
        tn_fail(err, TERN_USAGE,
                "\"%s\" is not in %s, so tern did not put it there; delete the file yourself",
                path, folder);
    tn_free(path);
    return status == TERN_OK ? TERN_USAGE : status;
}

static tern_status remove_file(bool *removed, const char *path, struct tern_error *err)
{
    *removed = tn_path_kind(path) == TN_PATH_FILE;
    if (!*removed)
        return TERN_OK;
    tn_file_remove(path);
    if (tn_path_kind(path) != TN_PATH_ABSENT)
        return tn_fail(err, TERN_OUTPUT, "\"%s\" cannot be deleted; is it in use?", path);
    tn_origin_remove(path);
    tn_info_say("deleted %s", path);
    return TERN_OK;
}

static tern_status remove_all(const char *name, struct tern_error *err)
{
    struct tn_buf file = {0};
    bool removed = false;
    tn_buf_printf(&file, "%s.tern", name);
    char *models = tn_path_of_models_dir(), *data = tn_path_of_data_dir();
    char *path = models ? tn_path_join(models, tn_buf_text(&file)) : NULL;
    char *downloads = data ? tn_path_join(data, "downloads") : NULL;
    tern_status status = path && downloads
                             ? remove_file(&removed, path, err)
                             : tn_fail(err, TERN_INPUT, TN_NO_MODELS_DIR);
    if (status == TERN_OK && tn_download_folder_remove(downloads, name, err))
        tn_info_say("deleted the download of %s", name);
    else if (status == TERN_OK && err->status != TERN_OK)
        status = err->status;
    else if (status == TERN_OK && !removed)
        status = not_here(name, models, err);
    tn_free(models);
    tn_free(data);
    tn_free(path);
    tn_free(downloads);
    tn_buf_fini(&file);
    return status;
}

int tn_cmd_remove(const struct tn_options *o)
{
    struct tern_error err = {0};
    struct tn_buf name = {0};
    tern_status status =
        o->n_positional ? check_name(&name, o->positional[0], &err)
                        : tn_fail(&err, TERN_USAGE, "no name; usage: tern remove NAME");
    if (status == TERN_OK)
        status = remove_all(tn_buf_text(&name), &err);
    tn_buf_fini(&name);
    return status == TERN_OK ? 0 : tn_error_print(&err);
}
