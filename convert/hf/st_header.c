/* SPDX-License-Identifier: MIT
 *
 * Parses the header of a safetensors file, a JSON object of tensors,
 *
 *   "name": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [begin, end]}
 *
 * with the checks of the reference reader (no holes, no overlaps, sizes exact)
 * and tern's stricter limits: no duplicate names, first byte '{', rank and
 * number of tensors.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bits.h"
#include "base/error.h"
#include "base/json_load.h"
#include "convert/source.h"
#include "tern/model_format.h"

/* A header of TERN_MAX_TENSORS tensors of rank 2 has about 8 commas per tensor; the limit bounds
 * the parser's memory. */
#define MAX_COMMAS (16u * TERN_MAX_TENSORS)

static const struct {
    const char *text;
    uint32_t bits;
} dtypes[] = {
#define DTYPE_ROW(name, bits) {#name, bits},
    TN_DTYPE_LIST(DTYPE_ROW)
#undef DTYPE_ROW
};

const char *tn_shape_text(char *dst, size_t n_dst, const struct tn_source_tensor *tensor)
{
    size_t at = (size_t)snprintf(dst, n_dst, "[");
    for (uint32_t i = 0; i < tensor->rank && at < n_dst; i++)
        at += (size_t)snprintf(dst + at, n_dst - at, "%s%llu", i ? ", " : "",
                               (unsigned long long)tensor->shape[i]);
    if (at < n_dst)
        snprintf(dst + at, n_dst - at, "]");
    return dst;
}

static bool find_dtype(enum tn_dtype *out, const char *text)
{
    for (int i = 0; text && i < TN_DTYPE_COUNT; i++) {
        if (strcmp(text, dtypes[i].text) == 0) {
            *out = (enum tn_dtype)i;
            return true;
        }
    }
    return false;
}

/* An integer >= 0; rejects numbers with a fraction or an exponent. */
static bool get_u64(const json_t *value, uint64_t *out)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return false;
    *out = (uint64_t)json_integer_value(value);
    return true;
}

/* Bytes of the tensor's elements; false if they are not a whole number or overflow. */
static bool element_bytes(const struct tn_source_tensor *t, uint64_t *out)
{
    uint64_t n = dtypes[t->dtype].bits;
    for (uint32_t i = 0; i < t->rank; i++)
        if (!tn_mul_u64(n, t->shape[i], &n))
            return false;
    *out = n / 8;
    return n % 8 == 0;
}

static tern_status parse_shape(struct tn_source_tensor *t, const char *file, const char *name,
                               const json_t *shape, struct tern_error *err)
{
    if (!json_is_array(shape))
        return tn_fail(err, TERN_INPUT, "%s: tensor \"%s\": \"shape\" is missing or not an array",
                       file, name);
    if (json_array_size(shape) > TN_ST_MAX_RANK)
        return tn_fail(err, TERN_INPUT, "%s: tensor \"%s\": %zu dimensions, at most %u are allowed",
                       file, name, json_array_size(shape), TN_ST_MAX_RANK);
    t->rank = (uint32_t)json_array_size(shape);
    for (uint32_t i = 0; i < t->rank; i++)
        if (!get_u64(json_array_get(shape, i), &t->shape[i]))
            return tn_fail(err, TERN_INPUT,
                           "%s: tensor \"%s\": dimension %u is not an integer from 0 on", file,
                           name, i);
    return TERN_OK;
}

/* Parses one member of the header; offsets stay relative to the data area. */
static tern_status parse_tensor(struct tn_source_tensor *t, const char *file, const char *name,
                                const json_t *value, uint64_t data_bytes, struct tern_error *err)
{
    const char *dtype = json_string_value(json_object_get(value, "dtype"));
    if (!find_dtype(&t->dtype, dtype))
        return tn_fail(err, TERN_INPUT, "%s: tensor \"%s\": dtype \"%s\" is unknown", file, name,
                       dtype ? dtype : "(none)");
    t->type = dtypes[t->dtype].text;
    tern_status status = parse_shape(t, file, name, json_object_get(value, "shape"), err);
    if (status != TERN_OK)
        return status;
    const json_t *range = json_object_get(value, "data_offsets");
    uint64_t begin;
    uint64_t end;
    if (json_array_size(range) != 2 || !get_u64(json_array_get(range, 0), &begin) ||
        !get_u64(json_array_get(range, 1), &end) || begin > end)
        return tn_fail(err, TERN_INPUT,
                       "%s: tensor \"%s\": \"data_offsets\" is not a pair [begin, end]", file,
                       name);
    if (end > data_bytes)
        return tn_fail(err, TERN_INPUT,
                       "%s: tensor \"%s\" ends at data byte %llu, but the file has only %llu; it "
                       "is truncated or damaged",
                       file, name, (unsigned long long)end, (unsigned long long)data_bytes);
    t->offset = begin;
    t->bytes = end - begin;
    uint64_t expected;
    char shape[200];
    if (!element_bytes(t, &expected) || expected != t->bytes)
        return tn_fail(err, TERN_INPUT, "%s: tensor \"%s\": %s %s does not fit its %llu bytes",
                       file, name, dtypes[t->dtype].text, tn_shape_text(shape, sizeof shape, t),
                       (unsigned long long)t->bytes);
    return TERN_OK;
}

/* Makes room for n more tensors. */
static tern_status grow(struct tn_source *s, const char *file, size_t n, struct tern_error *err)
{
    if (n > TERN_MAX_TENSORS - s->n_tensors)
        return tn_fail(err, TERN_INPUT, "%s: more than %u tensors", file, TERN_MAX_TENSORS);
    const uint32_t capacity = s->n_tensors + (uint32_t)n;
    if (capacity <= s->capacity)
        return TERN_OK;
    struct tn_source_tensor *tensors = tn_realloc(s->tensors, capacity * sizeof *tensors);
    if (!tensors)
        return tn_fail(err, TERN_MEMORY, "%s: no memory for %u tensors", file, capacity);
    s->tensors = tensors;
    s->capacity = capacity;
    return TERN_OK;
}

static tern_status parse_members(struct tn_source *s, const char *file, uint32_t i_file,
                                 const json_t *root, uint64_t data_bytes, struct tern_error *err)
{
    if (!json_is_object(root))
        return tn_fail(err, TERN_INPUT, "%s: the header is not a JSON object", file);
    tern_status status = grow(s, file, json_object_size(root), err);
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)root, name, value) {
        if (status != TERN_OK)
            return status;
        if (strcmp(name, "__metadata__") == 0)
            continue;
        struct tn_source_tensor t = {.i_file = i_file};
        status = parse_tensor(&t, file, name, value, data_bytes, err);
        if (status != TERN_OK)
            return status;
        t.name = tn_copy_text(name);
        if (!t.name)
            return tn_fail(err, TERN_MEMORY, "%s: no memory for tensor names", file);
        s->tensors[s->n_tensors++] = t;
    }
    return status;
}

static tern_status check_metadata(const char *file, const json_t *root, struct tern_error *err)
{
    const json_t *metadata = json_object_get(root, "__metadata__");
    if (!metadata)
        return TERN_OK;
    if (!json_is_object(metadata))
        return tn_fail(err, TERN_INPUT, "%s: \"__metadata__\" is not a map of texts", file);
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)metadata, key, value) {
        if (!json_is_string(value))
            return tn_fail(err, TERN_INPUT, "%s: \"__metadata__\": \"%s\" is not a text", file,
                           key);
    }
    return TERN_OK;
}

static int compare_offsets(const void *a, const void *b)
{
    const struct tn_source_tensor *x = a;
    const struct tn_source_tensor *y = b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* The tensors must tile the data area.  An overlap is an immediate error, a hole is recorded. */
static tern_status check_tiling(struct tn_source *s, struct tn_source_tensor *tensors, uint32_t n,
                                const char *file, uint64_t data_bytes, struct tern_error *err)
{
    if (n)
        qsort(tensors, n, sizeof *tensors, compare_offsets);
    uint64_t end = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct tn_source_tensor *t = &tensors[i];
        if (t->offset < end)
            return tn_fail(err, TERN_INPUT,
                           "%s: tensor \"%s\" starts at data byte %llu, expected %llu: tensors "
                           "overlap",
                           file, t->name, (unsigned long long)t->offset, (unsigned long long)end);
        if (t->offset > end && s->hole.status == TERN_OK)
            (void)tn_fail(&s->hole, TERN_INPUT,
                          "%s: tensor \"%s\" starts at data byte %llu, expected %llu: there is a "
                          "hole",
                          file, t->name, (unsigned long long)t->offset, (unsigned long long)end);
        end = t->offset + t->bytes;
    }
    if (end != data_bytes && s->hole.status == TERN_OK)
        (void)tn_fail(&s->hole, TERN_INPUT,
                      "%s: %llu bytes of data, but the tensors need %llu; the file is damaged",
                      file, (unsigned long long)data_bytes, (unsigned long long)end);
    return TERN_OK;
}

static tern_status check_text(const char *file, const char *json, size_t n, struct tern_error *err)
{
    if (n == 0 || json[0] != '{')
        return tn_fail(err, TERN_INPUT,
                       "%s: the header does not start with '{' (not a safetensors file?)", file);
    size_t n_commas = 0;
    for (size_t i = 0; i < n; i++)
        n_commas += json[i] == ',';
    if (n_commas > MAX_COMMAS)
        return tn_fail(err, TERN_INPUT, "%s: the header has %zu commas, at most %u are allowed",
                       file, n_commas, MAX_COMMAS);
    return TERN_OK;
}

tern_status tn_st_parse_header(struct tn_source *source, const char *file_name, uint32_t i_file,
                               const char *json, size_t n_json, uint64_t data_offset,
                               uint64_t data_bytes, struct tern_error *err)
{
    const uint32_t first = source->n_tensors;
    tern_status status = check_text(file_name, json, n_json, err);
    if (status != TERN_OK)
        return status;
    json_t *root;
    status = tn_json_load(&root, file_name, json, n_json, JSON_REJECT_DUPLICATES, err);
    if (status != TERN_OK)
        return status;
    status = check_metadata(file_name, root, err);
    if (status == TERN_OK)
        status = parse_members(source, file_name, i_file, root, data_bytes, err);
    json_decref(root);
    if (status != TERN_OK)
        return status;
    struct tn_source_tensor *own = source->tensors ? source->tensors + first : NULL;
    const uint32_t n = source->n_tensors - first;
    status = check_tiling(source, own, n, file_name, data_bytes, err);
    for (uint32_t i = 0; i < n; i++)
        own[i].offset += data_offset;
    return status;
}
