/* SPDX-License-Identifier: MIT
 *
 * Reads the hub's list of files (listing.h), checks every name, and selects the files of one model.
 */
#include "hub/listing.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/json_load.h"

#define MAX_ANSWER_BYTES ((size_t)8 << 20)
#define MAX_FILE_BYTES ((json_int_t)1 << 50)
#define N_SHOWN 12 /* models to choose from in an error message */

static bool is_hex(const char *text, size_t n)
{
    return strlen(text) == n && strspn(text, "0123456789abcdef") == n;
}

/* ---- entries ---- */

/* Checks every name of the list, even of files that are not fetched: a list with a malicious name
 * is not used at all. */
static tern_status read_entry(struct tn_listed_file *out, bool *is_file, const json_t *entry,
                              const char *repository, struct tern_error *err)
{
    const char *type = json_string_value(json_object_get(entry, "type"));
    const json_t *path = json_object_get(entry, "path"), *lfs = json_object_get(entry, "lfs");
    const char *name = json_string_value(path);
    const char *sha256 = json_string_value(json_object_get(lfs, "oid"));
    const json_t *size = json_object_get(lfs ? lfs : entry, "size");
    if (!type || !name || strlen(name) != json_string_length(path))
        return tn_fail(err, TERN_NETWORK, "%s: the hub's list of files is malformed", repository);
    if (!tn_file_name_is_harmless(name))
        return tn_fail(err, TERN_NETWORK,
                       "%s: the hub's list holds the name \"%.100s\", not a plain file name; "
                       "nothing was fetched",
                       repository, name);
    *is_file = strcmp(type, "file") == 0;
    if (!*is_file)
        return TERN_OK;
    const json_int_t n_bytes = json_integer_value(size);
    if (!json_is_integer(size) || n_bytes < 0 || n_bytes > MAX_FILE_BYTES ||
        (lfs && (!sha256 || !is_hex(sha256, 64))))
        return tn_fail(err, TERN_NETWORK, "%s: the hub states no size or a wrong hash for \"%s\"",
                       repository, name);
    memcpy(out->name, name, strlen(name) + 1);
    out->n_bytes = (uint64_t)n_bytes;
    memcpy(out->sha256, sha256 ? sha256 : "", sha256 ? 65 : 1);
    return TERN_OK;
}

static tern_status read_entries(struct tn_listing *out, const json_t *list, const char *repository,
                                struct tern_error *err)
{
    const size_t n = json_array_size(list);
    if (!json_is_array(list))
        return tn_fail(err, TERN_NETWORK, "%s: the hub's list of files is malformed", repository);
    if (n > TN_LISTING_MAX_ENTRIES)
        return tn_fail(err, TERN_NETWORK, "%s: the repository has more than %u files", repository,
                       TN_LISTING_MAX_ENTRIES);
    out->files = tn_alloc_zeroed(n + 1, sizeof *out->files);
    if (!out->files)
        return tn_fail(err, TERN_MEMORY, "no memory for the list of files");
    tern_status status = TERN_OK;
    for (size_t i = 0; i < n && status == TERN_OK; i++) {
        bool is_file = false;
        status = read_entry(&out->files[out->n], &is_file, json_array_get(list, i), repository,
                            err);
        if (status == TERN_OK && is_file &&
            tn_hub_file_kind(out->files[out->n].name) != TN_HUB_OTHER)
            out->n++;
    }
    return status;
}

/* ---- selecting the model ---- */

static uint32_t count_kind(const struct tn_listing *listing, enum tn_hub_file kind)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < listing->n; i++)
        n += tn_hub_file_kind(listing->files[i].name) == kind;
    return n;
}

/* Whether it is the file that names a model in .gguf files. */
static bool is_first_part(const struct tn_listed_file *file)
{
    uint32_t n_parts;
    const uint32_t part = tn_gguf_part(file->name, &n_parts);
    return tn_hub_file_kind(file->name) == TN_HUB_GGUF && part <= 1;
}

static tern_status several(const struct tn_listing *listing, const char *repository,
                           const char *file, struct tern_error *err)
{
    struct tn_buf names = {0};
    uint32_t n_shown = 0;
    for (uint32_t i = 0; i < listing->n && n_shown < N_SHOWN; i++)
        if (is_first_part(&listing->files[i]))
            tn_buf_printf(&names, "%s%s", n_shown++ ? ", " : "", listing->files[i].name);
    if (file[0])
        tn_fail(err, TERN_INPUT, "%s has no file \"%.80s\"%s%s", repository, file,
                n_shown ? "; it has " : "", tn_buf_text(&names));
    else
        tn_fail(err, TERN_INPUT, "%s has several models; name one, tern pull %s:FILE: %s",
                repository, repository, tn_buf_text(&names));
    tn_buf_fini(&names);
    return TERN_INPUT;
}

/* The name of the model's first .gguf file; "": the folder.  NULL: *status has the reason. */
static const char *choose(const struct tn_listing *listing, const char *repository,
                          const char *file, tern_status *status, struct tern_error *err)
{
    const char *chosen = NULL;
    uint32_t n_models = 0;
    for (uint32_t i = 0; i < listing->n; i++) {
        const struct tn_listed_file *f = &listing->files[i];
        if (file[0] ? strcmp(f->name, file) == 0 : is_first_part(f)) {
            chosen = f->name;
            n_models++;
        }
    }
    if (n_models == 1)
        return chosen;
    if (n_models > 1 || file[0]) {
        *status = several(listing, repository, file, err);
        return NULL;
    }
    if (count_kind(listing, TN_HUB_CONFIG) > 0 && count_kind(listing, TN_HUB_SAFETENSORS) > 0)
        return "";
    *status = tn_fail(err, TERN_INPUT,
                      "%s holds neither a .gguf file nor config.json with model.safetensors",
                      repository);
    return NULL;
}

/* Small files first, so that errors are found early; parts in order. */
static int in_order(const void *a, const void *b)
{
    const struct tn_listed_file *x = a, *y = b;
    const bool x_is_large = tn_hub_file_kind(x->name) == TN_HUB_SAFETENSORS;
    const bool y_is_large = tn_hub_file_kind(y->name) == TN_HUB_SAFETENSORS;
    return x_is_large != y_is_large ? x_is_large - y_is_large : strcmp(x->name, y->name);
}

/* Each name must occur once, and all parts of a split file. */
static tern_status check_names(const struct tn_listing *listing, const char *repository,
                               struct tern_error *err)
{
    uint32_t n_parts = 1;
    for (uint32_t i = 0; i < listing->n; i++) {
        const struct tn_listed_file *file = &listing->files[i];
        (void)tn_gguf_part(file->name, &n_parts);
        if (i > 0 && strcmp(file[-1].name, file->name) == 0)
            return tn_fail(err, TERN_NETWORK, "%s: the hub lists \"%s\" twice", repository,
                           file->name);
    }
    if (tn_listing_is_gguf(listing) && listing->n != n_parts)
        return tn_fail(err, TERN_INPUT, "%s: of \"%s\" %u of %u parts are there", repository,
                       listing->files[0].name, listing->n, n_parts);
    return TERN_OK;
}

static bool has_file(const struct tn_listing *listing, const char *name)
{
    for (uint32_t i = 0; i < listing->n; i++)
        if (strcmp(listing->files[i].name, name) == 0)
            return true;
    return false;
}

static tern_status choose_files(struct tn_listing *listing, const char *repository,
                                const char *file, struct tern_error *err)
{
    tern_status status = TERN_OK;
    char first[TN_MAX_FILE_NAME_BYTES + 1];
    const char *chosen = choose(listing, repository, file, &status, err);
    if (!chosen)
        return status;
    memcpy(first, chosen, strlen(chosen) + 1);
    const bool has_tokenizer = has_file(listing, "tokenizer.json");
    uint32_t n = 0;
    for (uint32_t i = 0; i < listing->n; i++) {
        const struct tn_listed_file *f = &listing->files[i];
        const enum tn_hub_file kind = tn_hub_file_kind(f->name);
        if (first[0] ? kind == TN_HUB_GGUF && tn_gguf_is_same_model(first, f->name)
                     : kind != TN_HUB_GGUF && !(kind == TN_HUB_VOCABULARY && has_tokenizer))
            listing->files[n++] = *f;
    }
    listing->n = n;
    if (n > TN_MAX_MODEL_FILES)
        return tn_fail(err, TERN_NETWORK, "%s: a model of %u files; at most %u are fetched",
                       repository, n, TN_MAX_MODEL_FILES);
    if (n)
        qsort(listing->files, n, sizeof *listing->files, in_order);
    return check_names(listing, repository, err);
}

/* ---- the hub's answers ---- */

/* Reads only the list: a hostile one may nest, repeat names, or contain numbers beyond 64 bits. */
tern_status tn_listing_parse(struct tn_listing *out, const char *json, size_t n_json,
                             const char *repository, const char *file, struct tern_error *err)
{
    json_t *list;
    tern_status status = tn_json_load(&list, "the hub's list of files", json, n_json,
                                      JSON_REJECT_DUPLICATES | TN_JSON_LARGE_AS_REAL, err);
    if (status == TERN_INPUT) {
        status = TERN_NETWORK;
        if (err)
            err->status = TERN_NETWORK;
    }
    if (status != TERN_OK)
        return status;
    status = read_entries(out, list, repository, err);
    json_decref(list);
    return status == TERN_OK ? choose_files(out, repository, file, err) : status;
}

static tern_status get_page(char **text, size_t *n, const struct tn_hub *hub,
                            const char *repository, const char *kind, const char *revision,
                            struct tern_error *err)
{
    char url[TN_URL_MAX_BYTES + 1];
    bool has_next_page;
    *text = NULL;
    if (snprintf(url, sizeof url, "%s/api/models/%s/%s/%s", hub->endpoint.text, repository, kind,
                 revision) >= (int)sizeof url)
        return tn_fail(err, TERN_USAGE, "HF_ENDPOINT is too long");
    tern_status status =
        tn_fetch_text(text, n, &has_next_page, hub, url, repository, MAX_ANSWER_BYTES, err);
    if (status == TERN_OK && has_next_page) {
        tn_free(*text);
        *text = NULL;
        status = tn_fail(err, TERN_NETWORK, "%s: the repository has more than %u files",
                         repository, TN_LISTING_MAX_ENTRIES);
    }
    return status;
}

/* Resolves the newest revision to a commit. */
static tern_status pin(char revision[TN_REVISION_BYTES], const struct tn_hub *hub,
                       const char *repository, struct tern_error *err)
{
    char *text;
    size_t n;
    json_t *root = NULL;
    tern_status status = get_page(&text, &n, hub, repository, "revision", "main", err);
    if (status != TERN_OK)
        return status;
    status = tn_json_load(&root, "the hub's answer", text, n, TN_JSON_LARGE_AS_REAL, err);
    tn_free(text);
    const char *sha = json_string_value(json_object_get(root, "sha"));
    if (status != TERN_MEMORY && (!sha || !is_hex(sha, TN_REVISION_BYTES - 1)))
        status = tn_fail(err, TERN_NETWORK, "%s: the hub does not name the newest revision",
                         repository);
    if (status == TERN_OK)
        memcpy(revision, sha, TN_REVISION_BYTES);
    json_decref(root);
    return status;
}

tern_status tn_listing_read(struct tn_listing *out, const struct tn_hub *hub,
                            const char *repository, const char *revision, const char *file,
                            struct tern_error *err)
{
    char *text = NULL;
    size_t n = 0;
    tern_status status = TERN_OK;
    *out = (struct tn_listing){{0}, NULL, 0};
    if (revision[0])
        memcpy(out->revision, revision, TN_REVISION_BYTES);
    else
        status = pin(out->revision, hub, repository, err);
    if (status == TERN_OK)
        status = get_page(&text, &n, hub, repository, "tree", out->revision, err);
    if (status == TERN_OK)
        status = tn_listing_parse(out, text, n, repository, file, err);
    tn_free(text);
    if (status != TERN_OK)
        tn_listing_fini(out);
    return status;
}

void tn_listing_fini(struct tn_listing *listing)
{
    tn_free(listing->files);
    *listing = (struct tn_listing){{0}, NULL, 0};
}

bool tn_listing_is_gguf(const struct tn_listing *listing)
{
    return listing->n > 0 && tn_hub_file_kind(listing->files[0].name) == TN_HUB_GGUF;
}

uint64_t tn_listing_bytes(const struct tn_listing *listing)
{
    uint64_t n_bytes = 0;
    for (uint32_t i = 0; i < listing->n; i++)
        n_bytes += listing->files[i].n_bytes;
    return n_bytes;
}

/* Letters, digits and "-._~" are kept; all other bytes of the name are escaped. */
bool tn_listing_url(char *out, size_t n_out, const struct tn_hub *hub, const char *repository,
                    const struct tn_listing *listing, const char *file)
{
    static const char digits[] = "0123456789ABCDEF";
    int n = snprintf(out, n_out, "%s/%s/resolve/%s/", hub->endpoint.text, repository,
                     listing->revision);
    for (; *file && n >= 0 && (size_t)n + 4 <= n_out; file++) {
        const unsigned char c = (unsigned char)*file;
        if (isalnum(c) || strchr("-._~", c)) {
            out[n++] = (char)c;
        } else {
            out[n++] = '%';
            out[n++] = digits[c >> 4];
            out[n++] = digits[c & 15];
        }
    }
    if (n < 0 || *file || (size_t)n >= n_out)
        return false;
    out[n] = '\0';
    return true;
}
