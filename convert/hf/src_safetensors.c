/* SPDX-License-Identifier: MIT
 *
 * A safetensors model as a source (source.h): one file, or shards that an index lists.
 *
 *   u64 n (little-endian) | n bytes of JSON header | data
 *
 * Every file is checked separately (st_header.c), then the shards against the index.
 */
#include "convert/source.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "arch/family.h"
#include "base/alloc.h"
#include "base/bits.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/json_load.h"
#include "base/utf8.h"
#include "convert/gguf/gguf.h"
#include "file/wrong_file.h"

/* ---- one file ---- */

/* Reads the header's JSON text into new memory. */
static tern_status read_header(char **json, size_t *n_json, const struct tn_source_file *f,
                               struct tern_error *err)
{
    unsigned char start[64] = {0};
    const size_t n_start = (size_t)TN_MIN(f->bytes, (uint64_t)sizeof start);
    tern_status status = tn_file_read_at(f->file, 0, start, n_start, err);
    if (status != TERN_OK)
        return status;
    const char *wrong = tn_wrong_file_text(start, n_start);
    if (wrong)
        return tn_fail(err, TERN_INPUT, "%s: is %s", f->name, wrong);
    if (n_start < 8)
        return tn_fail(err, TERN_INPUT, "%s: %zu bytes are too few for a safetensors file",
                       f->name, n_start);
    const uint64_t n = tn_load_u64(start);
    if (n > TN_ST_MAX_HEADER)
        return tn_fail(err, TERN_INPUT,
                       "%s: header length %llu is beyond the limit of %u bytes (not a safetensors "
                       "file?)",
                       f->name, (unsigned long long)n, TN_ST_MAX_HEADER);
    if (n > f->bytes - 8)
        return tn_fail(err, TERN_INPUT,
                       "%s: header length %llu, but the file has only %llu bytes; it is truncated",
                       f->name, (unsigned long long)n, (unsigned long long)f->bytes);
    char *text = tn_alloc((size_t)n + 1);
    if (!text)
        return tn_fail(err, TERN_MEMORY, "%s: no memory for %llu bytes of header", f->name,
                       (unsigned long long)n);
    status = tn_file_read_at(f->file, 8, text, (size_t)n, err);
    if (status != TERN_OK) {
        tn_free(text);
        return status;
    }
    text[n] = '\0';
    *json = text;
    *n_json = (size_t)n;
    return TERN_OK;
}

/* Opens dir/name (name if dir is NULL) as the next file and adds its tensors. */
static tern_status add_file(struct tn_source *s, const char *dir, const char *name,
                            struct tern_error *err)
{
    const uint32_t i_file = s->n_files;
    char *path = dir ? tn_path_join(dir, name) : tn_path_resolve(name);
    char *own_name = tn_copy_text(name);
    struct tn_source_file *files = tn_realloc(s->files, (i_file + 1) * sizeof *files);
    if (files)
        s->files = files;
    if (!path || !own_name || !files) {
        tn_free(path);
        tn_free(own_name);
        return tn_fail(err, TERN_MEMORY, "%s: no memory to open it", name);
    }
    struct tn_source_file *f = &s->files[i_file];
    memset(f, 0, sizeof *f);
    f->name = own_name;
    tern_status status = tn_file_open_read(&f->file, path, err);
    tn_free(path);
    if (status != TERN_OK) {
        tn_free(own_name);
        return status;
    }
    s->n_files++; /* from here on tn_source_close frees it */
    f->bytes = tn_file_size(f->file);
    char *json = NULL;
    size_t n_json = 0;
    status = read_header(&json, &n_json, f, err);
    if (status != TERN_OK)
        return status;
    const uint64_t data_offset = 8 + (uint64_t)n_json;
    status = tn_st_parse_header(s, f->name, i_file, json, n_json, data_offset,
                                f->bytes - data_offset, err);
    tn_free(json);
    return status;
}

/* Of equal names the earlier file comes first, regardless of how the C library's qsort orders
 * equals. */
static int compare_names_and_files(const void *a, const void *b)
{
    const struct tn_source_tensor *x = a, *y = b;
    const int order = strcmp(x->name, y->name);
    return order ? order : x->i_file < y->i_file ? -1 : x->i_file > y->i_file;
}

static tern_status sort_tensors(struct tn_source *s, struct tern_error *err)
{
    if (s->n_tensors)
        qsort(s->tensors, s->n_tensors, sizeof *s->tensors, compare_names_and_files);
    for (uint32_t i = 1; i < s->n_tensors; i++) {
        const struct tn_source_tensor *a = &s->tensors[i - 1];
        const struct tn_source_tensor *b = &s->tensors[i];
        if (strcmp(a->name, b->name) == 0)
            return tn_fail(err, TERN_INPUT, "tensor \"%s\" occurs in %s and in %s", a->name,
                           s->files[a->i_file].name, s->files[b->i_file].name);
    }
    return TERN_OK;
}

/* ---- shards ---- */

/* A plain file name inside the model directory. */
static bool is_safe_name(const char *name)
{
    const size_t n = strlen(name);
    return n > 0 && n < 256 && name[0] != '.' && !strpbrk(name, "/\\:") &&
           tn_utf8_find_bad(name, n, true) == n;
}

static const struct tn_source_file *find_file(const struct tn_source *s, const char *name)
{
    for (uint32_t i = 0; i < s->n_files; i++)
        if (strcmp(s->files[i].name, name) == 0)
            return &s->files[i];
    return NULL;
}

/* Opens every file named in the index's weight_map. */
static tern_status open_shards(struct tn_source *s, const char *dir, const json_t *map,
                               struct tern_error *err)
{
    const char *tensor;
    json_t *value;
    json_object_foreach((json_t *)map, tensor, value) {
        const char *name = json_string_value(value);
        if (!name || !is_safe_name(name))
            return tn_fail(err, TERN_INPUT,
                           "%s: tensor \"%s\": \"%s\" is not the name of a file in this directory",
                           TN_ST_INDEX_FILE, tensor, name ? name : "(no text)");
        if (find_file(s, name))
            continue;
        if (s->n_files == TN_ST_MAX_SHARDS)
            return tn_fail(err, TERN_INPUT, "%s: more than %u shards", TN_ST_INDEX_FILE,
                           TN_ST_MAX_SHARDS);
        tern_status status = add_file(s, dir, name, err);
        if (status != TERN_OK)
            return status;
    }
    return TERN_OK;
}

/* Index and shards must name the same tensors. */
static tern_status check_index(const struct tn_source *s, const json_t *map,
                               struct tern_error *err)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)map, name, value) {
        const struct tn_source_tensor *t = tn_source_find(s, name);
        if (!t || strcmp(s->files[t->i_file].name, json_string_value(value)) != 0)
            return tn_fail(err, TERN_INPUT, "tensor \"%s\" is missing: %s says that it is in %s",
                           name, TN_ST_INDEX_FILE, json_string_value(value));
    }
    for (uint32_t i = 0; i < s->n_tensors; i++)
        if (!json_object_get(map, s->tensors[i].name))
            return tn_fail(err, TERN_INPUT, "tensor \"%s\" of %s is not listed in %s",
                           s->tensors[i].name, s->files[s->tensors[i].i_file].name,
                           TN_ST_INDEX_FILE);
    return TERN_OK;
}

static tern_status open_index(struct tn_source *s, const char *dir, const char *path,
                              struct tern_error *err)
{
    char *text;
    size_t n;
    tern_status status = tn_file_read_all(&text, &n, path, TN_ST_MAX_HEADER, err);
    if (status != TERN_OK)
        return status;
    const char *wrong = tn_wrong_file_text(text, n);
    if (wrong) {
        tn_free(text);
        return tn_fail(err, TERN_INPUT, "%s: is %s", TN_ST_INDEX_FILE, wrong);
    }
    json_t *root;
    status = tn_json_load(&root, TN_ST_INDEX_FILE, text, n, JSON_REJECT_DUPLICATES, err);
    tn_free(text);
    if (status != TERN_OK)
        return status;
    const json_t *map = json_object_get(root, "weight_map");
    s->has_index = true;
    if (!json_is_object(map) || json_object_size(map) == 0)
        status = tn_fail(err, TERN_INPUT, "%s: \"weight_map\" is missing or empty",
                         TN_ST_INDEX_FILE);
    if (status == TERN_OK)
        status = open_shards(s, dir, map, err);
    if (status == TERN_OK)
        status = sort_tensors(s, err);
    if (status == TERN_OK)
        status = check_index(s, map, err);
    json_decref(root);
    return status;
}

/* ---- interface ---- */

tern_status tn_source_open_file(struct tn_source *out, const char *path, struct tern_error *err)
{
    memset(out, 0, sizeof *out);
    tern_status status = add_file(out, NULL, path, err);
    if (status == TERN_OK)
        status = sort_tensors(out, err);
    if (status != TERN_OK)
        tn_source_close(out);
    return status;
}

static bool visit_for_pickle(void *arg, const char *name)
{
    static const char *const endings[] = {".bin", ".pt", ".pth", NULL};
    *(bool *)arg = tn_name_ends(endings, name) != NULL;
    return !*(bool *)arg;
}

/* Reports that the folder has neither safetensors files nor their index. */
static tern_status fail_missing(const char *dir, struct tern_error *err)
{
    bool has_pickle = false;
    if (!tn_dir_walk(dir, visit_for_pickle, &has_pickle) || !has_pickle)
        return tn_fail(err, TERN_INPUT,
                       "%s: holds no " TN_ST_SINGLE_FILE ", no index of shards; a model's folder "
                       "has config.json, weights and tokenizer.json",
                       dir);
    return tn_fail(err, TERN_INPUT,
                   "%s: its weights are PyTorch's .bin files, which may run code and are not read; "
                   "get the same model as " TN_ST_SINGLE_FILE " or .gguf",
                   dir);
}

tern_status tn_source_open(struct tn_source *out, const char *dir, struct tern_error *err)
{
    memset(out, 0, sizeof *out);
    char *single = tn_path_join(dir, TN_ST_SINGLE_FILE);
    char *index = tn_path_join(dir, TN_ST_INDEX_FILE);
    tern_status status;
    if (!single || !index)
        status = tn_fail(err, TERN_MEMORY, "%s: no memory to open it", dir);
    else if (tn_path_kind(single) == TN_PATH_ABSENT && tn_path_kind(index) != TN_PATH_ABSENT)
        status = open_index(out, dir, index, err);
    else if (tn_path_kind(single) == TN_PATH_ABSENT)
        status = fail_missing(dir, err);
    else
        status = add_file(out, dir, TN_ST_SINGLE_FILE, err);
    if (status == TERN_OK && !out->has_index)
        status = sort_tensors(out, err);
    tn_free(single);
    tn_free(index);
    if (status != TERN_OK)
        tn_source_close(out);
    return status;
}

void tn_source_close(struct tn_source *source)
{
    for (uint32_t i = 0; i < source->n_files; i++) {
        if (!source->gguf)
            tn_file_close(source->files[i].file);
        tn_free(source->files[i].name);
    }
    if (source->gguf)
        tn_gguf_close(source->gguf);
    tn_free(source->gguf);
    for (uint32_t i = 0; i < source->n_tensors; i++)
        tn_free(source->tensors[i].name);
    tn_free(source->files);
    tn_free(source->tensors);
    memset(source, 0, sizeof *source);
}

struct tn_source_tensor *tn_source_find(const struct tn_source *source, const char *name)
{
    uint32_t low = 0;
    uint32_t high = source->n_tensors;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const int order = strcmp(name, source->tensors[middle].name);
        if (order == 0)
            return &source->tensors[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

tern_status tn_source_read(const struct tn_source *source, const struct tn_source_tensor *tensor,
                           uint64_t begin, void *dst, size_t n, struct tern_error *err)
{
    assert(tn_range_fits(begin, n, tensor->bytes));
    return tn_file_read_at(source->files[tensor->i_file].file, tensor->offset + begin, dst, n,
                           err);
}

bool tn_source_is_float(const struct tn_source_tensor *tensor)
{
    return tensor->dtype == TN_DTYPE_BF16 || tensor->dtype == TN_DTYPE_F16 ||
           tensor->dtype == TN_DTYPE_F32;
}
