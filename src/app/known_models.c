/* SPDX-License-Identifier: MIT
 *
 * Reads the folders in which models have names, and resolves a name to a file (known_models.h).
 */
#include "known_models.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/text_match.h"
#include "hints.h"
#include "hub/catalogue.h"
#include "nearest.h"
#include "plat/plat.h"

#define ENDING ".tern"

/* ---- folders ---- */

/* Takes ownership of `path` (NULL: no effect), resolved if possible; adds each folder once. */
static void add_folder(struct tn_known_models *m, char *path)
{
    char *resolved = path ? tn_path_resolve(path) : NULL;
    if (resolved) {
        tn_free(path);
        path = resolved;
    }
    for (uint32_t i = 0; path && i < m->n_folders; i++)
        if (strcmp(m->folders[i], path) == 0) {
            tn_free(path);
            return;
        }
    if (path)
        m->folders[m->n_folders++] = path;
}

char *tn_path_of_models_dir(void)
{
    char *data = tn_path_of_data_dir();
    char *models = data ? tn_path_join(data, "models") : NULL;
    tn_free(data);
    return models;
}

static void add_folders(struct tn_known_models *m, enum tn_model_places places)
{
    char *program = tn_path_of_executable_dir();
    const char *named = getenv("TERN_MODELS");
    add_folder(m, program ? tn_copy_text(program) : NULL);
    add_folder(m, program ? tn_path_join(program, "models") : NULL);
    add_folder(m, program ? tn_path_join(program, "../share/tern") : NULL);
    add_folder(m, named && named[0] ? tn_copy_text(named) : NULL);
    add_folder(m, tn_path_of_models_dir());
    if (places == TN_KNOWN_FOLDERS_AND_CURRENT)
        add_folder(m, tn_copy_text("."));
    tn_free(program);
}

/* ---- models ---- */

struct walk {
    struct tn_known_models *models;
    const char *folder;
    size_t capacity;
    bool is_short; /* out of memory */
};

size_t tn_known_models_find(const struct tn_known_models *m, const char *name, size_t n_name)
{
    size_t i = 0;
    while (i < m->n &&
           (strncmp(m->rows[i].name, name, n_name) != 0 || m->rows[i].name[n_name] != '\0'))
        i++;
    return i;
}

static bool has_room(struct walk *w)
{
    struct tn_known_models *m = w->models;
    struct tn_known_model *rows = tn_grow(m->rows, sizeof *rows, m->n, &w->capacity);
    if (rows)
        m->rows = rows;
    return rows != NULL;
}

static bool visit_file(void *arg, const char *file_name)
{
    struct walk *w = arg;
    struct tn_known_models *m = w->models;
    const size_t n = tn_text_n_stem(file_name, ENDING);
    if (n == 0 || tn_known_models_find(m, file_name, n) < m->n)
        return true;
    struct tn_known_model row = {tn_copy_text(file_name), tn_path_join(w->folder, file_name)};
    const bool is_file = row.path && tn_path_kind(row.path) == TN_PATH_FILE;
    w->is_short = !row.name || !row.path || (is_file && !has_room(w));
    if (w->is_short || !is_file) {
        tn_free(row.name);
        tn_free(row.path);
        return !w->is_short;
    }
    row.name[n] = '\0';
    m->rows[m->n++] = row;
    return true;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct tn_known_model *)a)->name,
                  ((const struct tn_known_model *)b)->name);
}

tern_status tn_known_models_read(struct tn_known_models *out, enum tn_model_places places,
                                 struct tern_error *err)
{
    *out = (struct tn_known_models){0};
    struct walk w = {.models = out};
    add_folders(out, places);
    for (uint32_t i = 0; i < out->n_folders && !w.is_short; i++) {
        w.folder = out->folders[i];
        (void)tn_dir_walk(w.folder, visit_file, &w);
    }
    if (w.is_short) {
        tn_known_models_fini(out);
        return tn_fail(err, TERN_MEMORY, "no memory for a list of models");
    }
    if (out->n)
        qsort(out->rows, out->n, sizeof *out->rows, by_name);
    return tn_ok(err);
}

size_t tn_known_models_pick(const struct tn_known_models *m, const char *answer)
{
    char *end;
    const unsigned long number = strtoul(answer, &end, 10);
    const size_t i = tn_known_models_find(m, answer, strlen(answer));
    if (i < m->n)
        return i;
    const bool is_number = !*end && answer[0] >= '0' && answer[0] <= '9';
    return is_number && number >= 1 && number <= m->n ? (size_t)number - 1 : m->n;
}

void tn_known_models_fini(struct tn_known_models *m)
{
    for (uint32_t i = 0; i < m->n_folders; i++)
        tn_free(m->folders[i]);
    for (size_t i = 0; i < m->n; i++) {
        tn_free(m->rows[i].name);
        tn_free(m->rows[i].path);
    }
    tn_free(m->rows);
    *m = (struct tn_known_models){0};
}

/* ---- names ---- */

static bool is_path(const char *named)
{
#if defined(_WIN32)
    return strpbrk(named, "/\\:") != NULL;
#else
    return strchr(named, '/') != NULL;
#endif
}

const char *tn_fetchable_name(const char *named)
{
    struct tn_nearest nearest;
    const struct tn_catalogue_model *model = tn_catalogue_find(named);
    if (model)
        return model->name;
    tn_nearest_init(&nearest, named, strlen(named));
    for (uint32_t i = 0; i < tn_n_catalogue_models; i++)
        tn_nearest_try(&nearest, "", tn_catalogue_models[i].name);
    return nearest.best;
}

static tern_status unknown_name(const struct tn_known_models *m, const char *named,
                                struct tern_error *err)
{
    struct tn_buf hint = {0};
    struct tn_nearest nearest;
    const char *fetchable = tn_fetchable_name(named);
    tn_nearest_init(&nearest, named, strlen(named));
    for (size_t i = 0; i < m->n; i++)
        tn_nearest_try(&nearest, "", m->rows[i].name);
    if (nearest.best && !tn_catalogue_find(named))
        tn_buf_printf(&hint, "did you mean %.100s?", nearest.best);
    else if (fetchable)
        tn_buf_printf(&hint, "tern pull %s fetches %s", fetchable,
                      tn_catalogue_find(named) ? "it" : "one of nearly this name");
    else if (strchr(named, ' '))
        tn_buf_append_text(&hint, "a model comes before the text: tern run MODEL \"TEXT\"");
    else
        tn_buf_append_text(&hint,
                           "tern list shows the installed models, tern pull the available ones");
    tn_fail(err, TERN_INPUT, "\"%.200s\": no such file, and no model has this name; %s", named,
            tn_buf_text(&hint));
    tn_buf_fini(&hint);
    return TERN_INPUT;
}

/* `named` with its extension is a name too, as a file of the known folders. */
static tern_status find_name(char **path, const char *named, enum tn_model_places places,
                             struct tern_error *err)
{
    struct tn_known_models m;
    const size_t n_stem = tn_text_n_stem(named, ENDING);
    const size_t n = n_stem ? n_stem : strlen(named);
    tern_status status = tn_known_models_read(&m, places, err);
    if (status != TERN_OK)
        return status;
    const size_t i = tn_known_models_find(&m, named, n);
    if (i < m.n || n_stem)
        *path = tn_copy_text(i < m.n ? m.rows[i].path : named);
    else
        status = unknown_name(&m, named, err);
    tn_known_models_fini(&m);
    if (status == TERN_OK && !*path)
        status = tn_fail(err, TERN_MEMORY, "no memory for a path");
    return status;
}

tern_status tn_model_resolve(char **path, const char *named, enum tn_model_places places,
                             struct tern_error *err)
{
    *path = NULL;
    if (!named[0])
        return tn_fail(err, TERN_USAGE, "the model's name is empty");
    if (!is_path(named) && tn_path_kind(named) == TN_PATH_ABSENT)
        return find_name(path, named, places, err);
    *path = tn_copy_text(named);
    return *path ? tn_ok(err) : tn_fail(err, TERN_MEMORY, "no memory for a path");
}

static bool is_here(const char *name)
{
    struct tn_known_models m;
    if (tn_known_models_read(&m, TN_KNOWN_FOLDERS_AND_CURRENT, NULL) != TERN_OK)
        return false;
    const bool is_found = tn_known_models_find(&m, name, strlen(name)) < m.n;
    tn_known_models_fini(&m);
    return is_found;
}

void tn_model_hint(const char *word, struct tern_error *err)
{
    const struct tn_catalogue_model *known = tn_catalogue_find(word);
    const char *sign = tn_typed_quote(word);
    if (is_here(word))
        tn_fail(err, err->status, "\"%s\" is a model, not a command; try: tern run %s%s%s", word,
                sign, word, sign);
    else if (known)
        tn_fail(err, err->status,
                "\"%s\" is a model, not a command; try: tern pull %s, then tern run %s", word,
                known->name, known->name);
}

/* New memory. */
static char *quote(const char *text)
{
    const char *sign = tn_typed_quote(text);
    const size_t size = strlen(text) + 3;
    char *copy = tn_alloc(size);
    if (copy)
        snprintf(copy, size, "%s%s%s", sign, text, sign);
    return copy;
}

char *tn_model_typed_name(const char *path)
{
    char *found = NULL, *typed = NULL;
    char *name = tn_path_stem(path, ENDING);
    if (name && tn_text_n_stem(tn_path_name(path), ENDING) > 0 &&
        tn_model_resolve(&found, name, TN_KNOWN_FOLDERS_AND_CURRENT, NULL) == TERN_OK &&
        tn_path_same(found, path))
        typed = quote(name);
    tn_free(found);
    tn_free(name);
    return typed ? typed : quote(path);
}
