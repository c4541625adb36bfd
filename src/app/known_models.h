/* SPDX-License-Identifier: MIT
 *
 * Models that have a name: .tern files in the known folders.  The name is the file's, without
 * extension; of two files with one name, the one in the first folder is used.
 *
 * The folders are the program's, `models` in it, `../share/tern` next to it, $TERN_MODELS, and
 * `tern/models` in the user's data folder; for run and chat also the current folder.
 */
#ifndef TN_KNOWN_MODELS_H
#define TN_KNOWN_MODELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/status.h"

struct tn_known_model {
    char *name, *path;
};

#define TN_MAX_MODEL_FOLDERS 6

struct tn_known_models {
    char *folders[TN_MAX_MODEL_FOLDERS]; /* [n_folders] resolved where they exist */
    uint32_t n_folders;
    struct tn_known_model *rows; /* [n] in the order of names */
    size_t n;
};

/* `tern/models` in the user's data folder, for pulled and converted models; it may not exist yet
 * (tn_dir_make).  New memory (tn_free); NULL: the user has no home. */
char *tn_path_of_models_dir(void);
/* The message where there is none; it names the variable to set. */
#if defined(_WIN32)
#define TN_NO_MODELS_DIR "this user has no folder for models; set LOCALAPPDATA"
#else
#define TN_NO_MODELS_DIR "this user has no folder for models; set HOME"
#endif

enum tn_model_places { TN_KNOWN_FOLDERS, TN_KNOWN_FOLDERS_AND_CURRENT };

/* Reads the folders, not the files.  An unreadable folder counts as empty.  TERN_MEMORY. */
tern_status tn_known_models_read(struct tn_known_models *out, enum tn_model_places places,
                                 struct tern_error *err);
/* Index of the model with the name of n_name bytes; n: none. */
size_t tn_known_models_find(const struct tn_known_models *models, const char *name, size_t n_name);
/* Index of the model that a user means by its name, or by its number from 1; n: none. */
size_t tn_known_models_pick(const struct tn_known_models *models, const char *answer);
void tn_known_models_fini(struct tn_known_models *models);

/* The name of the model that tern pull fetches by this name or a similar one; NULL: none. */
const char *tn_fetchable_name(const char *named);
/* The path for an argument that names a model: unchanged if a file or folder of this path exists,
 * else that of the model with this name.  *path is new memory (tn_free).  TERN_INPUT: a name that
 * no model has.  A path that does not exist is returned unchanged: opening it reports the error. */
tern_status tn_model_resolve(char **path, const char *named, enum tn_model_places places,
                             struct tern_error *err);

/* "tern NAME": replaces the error of an unknown command if an installed model, or one that tern
 * pull fetches, has this name. */
void tn_model_hint(const char *word, struct tern_error *err);

/* The argument to type for the model at `path`: its name if that refers to this file from the
 * current folder, else the path; in quotes if it has blanks.  New memory (tn_free), or NULL. */
char *tn_model_typed_name(const char *path);

#endif
