/* SPDX-License-Identifier: MIT
 *
 * Opens GGUF files, one or the parts NAME-00001-of-00003.gguf and so on, and finds keys and
 * tensors.
 *
 * Every part is checked separately (gguf_header.c, gguf_layout.c), then against the others:
 * split.no counts from 0, split.count and split.tensors.count agree, and no tensor occurs twice.
 * Only the first part has keys of the model.
 */
#include "convert/gguf/gguf.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bits.h"
#include "base/compiler.h"
#include "base/error.h"
#include "plat/plat.h"
#include "tern/model_format.h"

#define SPLIT_TAIL_BYTES 20u /* -00001-of-00003.gguf */

static tern_status read_file_at(void *arg, uint64_t offset, void *dst, size_t n,
                                struct tern_error *err)
{
    return tn_file_read_at(arg, offset, dst, n, err);
}

/* ---- one file ---- */

static tern_status open_part(struct tn_gguf *g, const char *path, struct tern_error *err)
{
    struct tn_gguf_part *parts = tn_realloc(g->parts, (g->n_parts + 1) * sizeof *parts);
    char *name = tn_copy_text(tn_path_name(path));
    if (parts)
        g->parts = parts;
    if (!parts || !name) {
        tn_free(name);
        return tn_fail(err, TERN_MEMORY, "%s: no memory to open it", path);
    }
    const uint32_t i_part = g->n_parts;
    struct tn_gguf_part *part = &g->parts[i_part];
    memset(part, 0, sizeof *part);
    part->name = name;
    g->n_parts++; /* from here on tn_gguf_close frees it */
    tern_status status = tn_file_open_read(&part->file, path, err);
    if (status != TERN_OK)
        return status;
    part->input = (struct tn_gguf_input){.read_at = read_file_at,
                                         .arg = part->file,
                                         .n_bytes = tn_file_size(part->file),
                                         .name = part->name};
    return tn_gguf_parse(part, i_part, err);
}

/* ---- parts ---- */

/* Reads an integer key of the split, of exactly this type. */
static tern_status split_number(uint64_t *out, const struct tn_gguf_part *part, const char *name,
                                uint32_t type, struct tern_error *err)
{
    const struct tn_gguf_key *key = tn_gguf_part_key(part, name);
    if (!key)
        return tn_fail(err, TERN_INPUT, "%s: key \"%s\" is missing in a part of a split file",
                       part->input.name, name);
    if (key->type != type)
        return tn_fail(err, TERN_INPUT, "%s: key \"%s\" is of type %s, %s is right",
                       part->input.name, name, tn_gguf_value_text(key->type),
                       tn_gguf_value_text(type));
    *out = key->value.u;
    return TERN_OK;
}

struct split {
    uint64_t count;
    uint64_t n_tensors;
};

/* The part must state that it is number i of the same split. */
static tern_status check_part(const struct tn_gguf_part *part, uint32_t i, struct split *split,
                              struct tern_error *err)
{
    uint64_t no = 0, count = 0, n_tensors = 0;
    tern_status status = split_number(&no, part, "split.no", TN_GGUF_U16, err);
    if (status == TERN_OK)
        status = split_number(&count, part, "split.count", TN_GGUF_U16, err);
    if (status == TERN_OK)
        status = split_number(&n_tensors, part, "split.tensors.count", TN_GGUF_I32, err);
    if (status != TERN_OK)
        return status;
    if (no != i)
        return tn_fail(err, TERN_INPUT, "%s: \"split.no\" is %llu, expected %u%s",
                       part->input.name, (unsigned long long)no, i,
                       i ? ": the parts are mixed up" : "; give the first part");
    if (i == 0)
        *split = (struct split){count, n_tensors};
    if (count == 0 || count > TN_GGUF_MAX_PARTS || count != split->count)
        return tn_fail(err, TERN_INPUT,
                       "%s: \"split.count\" is %llu, expected %llu (at most %u parts)",
                       part->input.name, (unsigned long long)count,
                       (unsigned long long)(i ? split->count : 1), TN_GGUF_MAX_PARTS);
    if (n_tensors > TERN_MAX_TENSORS || n_tensors != split->n_tensors)
        return tn_fail(err, TERN_INPUT, "%s: \"split.tensors.count\" is %lld, expected %llu",
                       part->input.name, (long long)(int64_t)n_tensors,
                       (unsigned long long)TN_MIN(split->n_tensors, TERN_MAX_TENSORS));
    return TERN_OK;
}

/* Keys of the model in a later part would be ignored, so they are an error. */
static tern_status check_keys(const struct tn_gguf_part *part, struct tern_error *err)
{
    for (uint32_t i = 0; i < part->n_keys; i++) {
        const char *name = part->keys[i].name;
        if (strncmp(name, "split.", 6) != 0 && strncmp(name, "general.", 8) != 0)
            return tn_fail(err, TERN_INPUT,
                           "%s: key \"%s\" in a part that is not the first, where only \"split.\" "
                           "and \"general.\" keys may be",
                           part->input.name, name);
    }
    return TERN_OK;
}

/* Replaces the tail "-00001-of-0000N.gguf" of the first part's path by that of part i. */
static tern_status part_path(char *dst, const char *first, uint32_t i, uint32_t n,
                             struct tern_error *err)
{
    char tail[SPLIT_TAIL_BYTES + 1];
    const size_t n_path = strlen(first);
    snprintf(tail, sizeof tail, "-%05u-of-%05u.gguf", 1, n);
    if (n_path < SPLIT_TAIL_BYTES || strcmp(first + n_path - SPLIT_TAIL_BYTES, tail) != 0)
        return tn_fail(err, TERN_INPUT,
                       "%s: the first of %u parts must be called NAME%s, so that the others are "
                       "found",
                       tn_path_name(first), n, tail);
    snprintf(tail, sizeof tail, "-%05u-of-%05u.gguf", i + 1, n);
    memcpy(dst, first, n_path - SPLIT_TAIL_BYTES);
    memcpy(dst + n_path - SPLIT_TAIL_BYTES, tail, sizeof tail);
    return TERN_OK;
}

static tern_status open_next(struct tn_gguf *g, const char *first, char *path, uint32_t i,
                             struct split *split, struct tern_error *err)
{
    const uint32_t n = (uint32_t)split->count;
    tern_status status = part_path(path, first, i, n, err);
    if (status != TERN_OK)
        return status;
    if (tn_path_kind(path) == TN_PATH_ABSENT)
        return tn_fail(err, TERN_INPUT, "part %u of %u is missing: %s", i + 1, n, path);
    status = open_part(g, path, err);
    if (status == TERN_OK)
        status = check_part(&g->parts[i], i, split, err);
    return status == TERN_OK ? check_keys(&g->parts[i], err) : status;
}

static tern_status open_parts(struct tn_gguf *g, const char *first, struct tern_error *err)
{
    struct split split;
    tern_status status = check_part(&g->parts[0], 0, &split, err);
    if (status != TERN_OK)
        return status;
    char *path = tn_alloc(strlen(first) + 1);
    if (!path)
        return tn_fail(err, TERN_MEMORY, "%s: no memory to open it", first);
    for (uint32_t i = 1; i < split.count && status == TERN_OK; i++)
        status = open_next(g, first, path, i, &split, err);
    tn_free(path);
    uint64_t n_tensors = 0;
    for (uint32_t i = 0; i < g->n_parts; i++)
        n_tensors += g->parts[i].n_tensors;
    if (status == TERN_OK && n_tensors != split.n_tensors)
        return tn_fail(err, TERN_INPUT,
                       "%s: the parts hold %llu tensors, but \"split.tensors.count\" is %llu",
                       g->parts[0].input.name, (unsigned long long)n_tensors,
                       (unsigned long long)split.n_tensors);
    return status;
}

/* ---- all tensors ---- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct tn_gguf_tensor *)a)->name,
                  ((const struct tn_gguf_tensor *)b)->name);
}

/* Of equal names the earlier part comes first, regardless of how the C library's qsort orders
 * equals. */
static int compare_names_and_parts(const void *a, const void *b)
{
    const struct tn_gguf_tensor *x = a, *y = b;
    const int order = compare_names(x, y);
    return order ? order : x->i_part < y->i_part ? -1 : x->i_part > y->i_part;
}

static tern_status collect_tensors(struct tn_gguf *g, struct tern_error *err)
{
    size_t n = 0;
    for (uint32_t i = 0; i < g->n_parts; i++)
        n += g->parts[i].n_tensors;
    if (n > TERN_MAX_TENSORS)
        return tn_fail(err, TERN_INPUT, "%s: %zu tensors, at most %u are allowed",
                       g->parts[0].input.name, n, TERN_MAX_TENSORS);
    g->tensors = tn_alloc(TN_MAX(n, 1u) * sizeof *g->tensors);
    if (!g->tensors)
        return tn_fail(err, TERN_MEMORY, "%s: no memory for %zu tensors", g->parts[0].input.name,
                       n);
    for (uint32_t i = 0; i < g->n_parts; i++) {
        struct tn_gguf_part *part = &g->parts[i];
        memcpy(g->tensors + g->n_tensors, part->tensors, part->n_tensors * sizeof *g->tensors);
        g->n_tensors += part->n_tensors;
        tn_free(part->tensors);
        part->tensors = NULL;
    }
    if (n)
        qsort(g->tensors, n, sizeof *g->tensors, compare_names_and_parts);
    for (size_t i = 1; i < n; i++)
        if (compare_names(&g->tensors[i - 1], &g->tensors[i]) == 0)
            return tn_fail(err, TERN_INPUT, "tensor \"%s\" occurs in %s and in %s",
                           g->tensors[i].name, g->parts[g->tensors[i - 1].i_part].name,
                           g->parts[g->tensors[i].i_part].name);
    return TERN_OK;
}

/* ---- interface ---- */

tern_status tn_gguf_open(struct tn_gguf *out, const char *path, struct tern_error *err)
{
    memset(out, 0, sizeof *out);
    tern_status status = open_part(out, path, err);
    if (status == TERN_OK && tn_gguf_part_key(&out->parts[0], "split.count"))
        status = open_parts(out, path, err);
    if (status == TERN_OK)
        status = collect_tensors(out, err);
    if (status != TERN_OK)
        tn_gguf_close(out);
    return status;
}

void tn_gguf_close(struct tn_gguf *gguf)
{
    for (uint32_t i = 0; i < gguf->n_parts; i++)
        tn_gguf_part_fini(&gguf->parts[i]);
    tn_free(gguf->parts);
    tn_free(gguf->tensors);
    memset(gguf, 0, sizeof *gguf);
}

const struct tn_gguf_key *tn_gguf_find_key(const struct tn_gguf *gguf, const char *name)
{
    return tn_gguf_part_key(&gguf->parts[0], name);
}

bool tn_gguf_integer(const struct tn_gguf_key *key, double *out)
{
    switch (key->type) {
    case TN_GGUF_U8:
    case TN_GGUF_U16:
    case TN_GGUF_U32:
    case TN_GGUF_U64:
        *out = (double)key->value.u;
        return true;
    case TN_GGUF_I8:
    case TN_GGUF_I16:
    case TN_GGUF_I32:
    case TN_GGUF_I64:
        *out = (double)key->value.i;
        return true;
    default:
        return false;
    }
}

tern_status tn_gguf_fail_type(const struct tn_gguf_key *key, const char *expected,
                              struct tern_error *err)
{
    return tn_fail(err, TERN_INPUT, "key \"%s\" is of type %s, expected %s", key->name,
                   tn_gguf_value_text(key->type), expected);
}

static tern_status load_bytes(void **data, const struct tn_gguf *gguf,
                              const struct tn_gguf_key *key, struct tern_error *err)
{
    const struct tn_gguf_input *in = &gguf->parts[0].input;
    assert(key->type == TN_GGUF_ARRAY);
    *data = NULL;
    if (key->bytes > (256u << 20))
        return tn_fail(err, TERN_INPUT, "%s: key \"%s\" has %llu bytes, at most %u are allowed",
                       in->name, key->name, (unsigned long long)key->bytes, 256u << 20);
    void *bytes = tn_alloc((size_t)key->bytes);
    if (!bytes)
        return tn_fail(err, TERN_MEMORY, "%s: no memory for the %llu bytes of key \"%s\"", in->name,
                       (unsigned long long)key->bytes, key->name);
    tern_status status = in->read_at(in->arg, key->offset, bytes, (size_t)key->bytes, err);
    if (status == TERN_OK)
        *data = bytes;
    else
        tn_free(bytes);
    return status;
}

tern_status tn_gguf_load_numbers(void **data, const struct tn_gguf *gguf,
                                 const struct tn_gguf_key *key, struct tern_error *err)
{
    assert(key->element_type != TN_GGUF_STRING);
    *data = NULL;
    return key->bytes ? load_bytes(data, gguf, key, err) : TERN_OK;
}

/* Removes the lengths from [u64 length | bytes] records; false if they changed on disk. */
static bool unpack_texts(struct tn_gguf_texts *out, uint64_t n_bytes)
{
    uint64_t at = 0;
    uint32_t end = 0;
    out->offsets[0] = 0;
    for (uint32_t i = 0; i < out->n; i++) {
        if (!tn_range_fits(at, 8, n_bytes))
            return false;
        const uint64_t n = tn_load_u64(out->bytes + at);
        at += 8;
        if (!tn_range_fits(at, n, n_bytes))
            return false;
        memmove(out->bytes + end, out->bytes + at, (size_t)n);
        at += n;
        end += (uint32_t)n;
        out->offsets[i + 1] = end;
    }
    return at == n_bytes;
}

tern_status tn_gguf_load_texts(struct tn_gguf_texts *out, const struct tn_gguf *gguf,
                               const struct tn_gguf_key *key, struct tern_error *err)
{
    assert(key->element_type == TN_GGUF_STRING);
    memset(out, 0, sizeof *out);
    void *bytes;
    tern_status status = load_bytes(&bytes, gguf, key, err);
    if (status != TERN_OK)
        return status;
    out->bytes = bytes;
    out->n = (uint32_t)key->count; /* 8 bytes each in at most 256 MiB */
    out->offsets = tn_alloc(((size_t)out->n + 1) * sizeof *out->offsets);
    if (!out->offsets)
        status = tn_fail(err, TERN_MEMORY, "no memory for %u texts", out->n);
    else if (!unpack_texts(out, key->bytes))
        status = tn_fail(err, TERN_INPUT, "%s changed while it was read",
                         gguf->parts[0].input.name);
    if (status != TERN_OK)
        tn_gguf_texts_fini(out);
    return status;
}

void tn_gguf_texts_fini(struct tn_gguf_texts *texts)
{
    tn_free(texts->bytes);
    tn_free(texts->offsets);
    memset(texts, 0, sizeof *texts);
}
