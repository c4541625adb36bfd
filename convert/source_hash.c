/* SPDX-License-Identifier: MIT
 *
 * tern_source_hash: recognises a source without reading its weights.
 *
 * Each file adds its name, size, modification time and first 64 KiB, where the headers of GGUF and
 * safetensors files are. The path is not hashed: a source that was moved keeps its hash.
 */
#include "base/text_match.h"
#include "tern/inspect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "arch/family.h"
#include "base/alloc.h"
#include "base/compiler.h"
#include "base/error.h"
#include "convert/hf/hf_config.h"
#include "plat/plat.h"

#define HEAD_BYTES ((size_t)65536)
#define MAX_FILES 4096u

struct names {
    char **items; /* [n] */
    size_t n, capacity;
    bool failed;
};

/* The endings of the files that the conversion of a folder reads, besides TN_POOLING_FILE. */
static const char *const endings[] = {".safetensors", ".json", ".jinja", "merges.txt", NULL};

static bool add_name(void *arg, const char *name)
{
    struct names *names = arg;
    if (!tn_name_ends(endings, name) || names->n == MAX_FILES)
        return true;
    char **items = tn_grow(names->items, sizeof *items, names->n, &names->capacity);
    char *copy = items ? tn_copy_text(name) : NULL;
    if (items)
        names->items = items;
    if (copy)
        names->items[names->n++] = copy;
    names->failed = !copy;
    return copy != NULL;
}

static void free_names(struct names *names)
{
    for (size_t i = 0; i < names->n; i++)
        tn_free(names->items[i]);
    tn_free(names->items);
}

/* `name` is hashed instead of the path. */
static tern_status add_file(XXH3_state_t *state, const char *path, const char *name,
                            struct tern_error *err)
{
    struct tn_file *file;
    tern_status status = tn_file_open_read(&file, path, err);
    if (status != TERN_OK)
        return status;
    const uint64_t numbers[2] = {tn_file_size(file), tn_file_modified_ns(file)};
    const size_t n_head = (size_t)TN_MIN(numbers[0], (uint64_t)HEAD_BYTES);
    char *head = tn_alloc(HEAD_BYTES);
    if (!head)
        status = tn_fail(err, TERN_MEMORY, "no memory for the start of \"%s\"", path);
    else
        status = tn_file_read_at(file, 0, head, n_head, err);
    if (status == TERN_OK) {
        XXH3_64bits_update(state, name, strlen(name) + 1);
        XXH3_64bits_update(state, numbers, sizeof numbers);
        XXH3_64bits_update(state, head, n_head);
    }
    tn_free(head);
    tn_file_close(file);
    return status;
}

/* Adds a file of the folder if it exists. */
static tern_status add_if_there(XXH3_state_t *state, const char *folder, const char *name,
                                struct tern_error *err)
{
    char *file = tn_path_join(folder, name);
    if (!file)
        return tn_fail(err, TERN_MEMORY, "no memory for a path");
    tern_status status =
        tn_path_kind(file) == TN_PATH_FILE ? add_file(state, file, name, err) : TERN_OK;
    tn_free(file);
    return status;
}

static tern_status add_folder(XXH3_state_t *state, const char *path, struct tern_error *err)
{
    struct names names = {0};
    tern_status status = TERN_OK;
    if (!tn_dir_walk(path, add_name, &names))
        status = tn_fail(err, TERN_INPUT, "%s: the folder cannot be read", path);
    if (names.failed)
        status = tn_fail(err, TERN_MEMORY, "no memory for the names of files in \"%s\"", path);
    if (names.n)
        qsort(names.items, names.n, sizeof *names.items, tn_text_compare);
    for (size_t i = 0; i < names.n && status == TERN_OK; i++)
        status = add_if_there(state, path, names.items[i], err);
    free_names(&names);
    return status == TERN_OK ? add_if_there(state, path, TN_POOLING_FILE, err) : status;
}

/* ---- GGUF files in parts ---- */

/* "...-00001-of-00003.gguf": 3; other names: 1. */
static unsigned count_parts(const char *path)
{
    static const char pattern[] = "-00001-of-";
    const size_t n = strlen(path), n_tail = sizeof pattern - 1 + sizeof "00003.gguf" - 1;
    const char *tail = n > n_tail ? path + n - n_tail : "";
    const char *digits = tail + sizeof pattern - 1;
    if (strncmp(tail, pattern, sizeof pattern - 1) != 0 || strspn(digits, "0123456789") != 5)
        return 1;
    return (unsigned)strtoul(digits, NULL, 10);
}

/* The conversion reports a missing part. */
static tern_status add_parts(XXH3_state_t *state, const char *path, struct tern_error *err)
{
    const unsigned n_parts = TN_MIN(count_parts(path), MAX_FILES);
    const size_t n = strlen(path), n_number = sizeof "00001-of-00003.gguf" - 1;
    tern_status status = add_file(state, path, tn_path_name(path), err);
    for (unsigned i = 2; i <= n_parts && status == TERN_OK; i++) {
        char number[16], *part = tn_alloc(n + 1);
        if (!part)
            return tn_fail(err, TERN_MEMORY, "no memory for a path");
        snprintf(number, sizeof number, "%05u", i);
        memcpy(part, path, n + 1);
        memcpy(part + n - n_number, number, 5);
        if (tn_path_kind(part) == TN_PATH_FILE)
            status = add_file(state, part, tn_path_name(part), err);
        tn_free(part);
    }
    return status;
}

tern_status tern_source_hash(uint64_t *out, const char *path, struct tern_error *err)
{
    XXH3_state_t state;
    *out = 0;
    (void)XXH3_64bits_reset(&state);
    tern_status status = tn_path_kind(path) == TN_PATH_DIR ? add_folder(&state, path, err)
                                                           : add_parts(&state, path, err);
    if (status == TERN_OK)
        *out = XXH3_64bits_digest(&state);
    return status;
}
