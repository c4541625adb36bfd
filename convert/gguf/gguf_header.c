/* SPDX-License-Identifier: MIT
 *
 * Reads the header of one GGUF file through a window of 64 KiB.  Arrays are walked, to check that
 * their texts end inside the file, but not loaded.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bits.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/utf8.h"
#include "convert/gguf/gguf.h"
#include "file/wrong_file.h"
#include "tern/model_format.h"

#define WINDOW_BYTES 65536u

static const struct {
    const char *text;
    uint32_t bytes;
} value_types[] = {
#define VALUE_ROW(number, name, bytes) [number] = {#name, bytes},
    TN_GGUF_VALUE_LIST(VALUE_ROW)
#undef VALUE_ROW
};

const char *tn_gguf_value_text(uint32_t type)
{
    return type < TN_GGUF_N_VALUE_TYPES ? value_types[type].text : "an unknown type";
}

/* ---- reading forward ---- */

struct cursor {
    struct tn_gguf_part *part;
    struct tern_error *err;
    unsigned char *window; /* [WINDOW_BYTES] */
    uint64_t window_at;
    size_t n_window;
    uint64_t at;
    char place[128]; /* the current key or tensor, for messages */
};

static tern_status fail_end(struct cursor *c, uint64_t n)
{
    return tn_fail(c->err, TERN_INPUT,
                   "%s: %s: %llu bytes at offset %llu reach beyond the end, byte %llu; the file is "
                   "truncated or damaged",
                   c->part->input.name, c->place, (unsigned long long)n, (unsigned long long)c->at,
                   (unsigned long long)c->part->input.n_bytes);
}

/* Skips n bytes, which must exist. */
static tern_status skip(struct cursor *c, uint64_t n)
{
    if (!tn_range_fits(c->at, n, c->part->input.n_bytes))
        return fail_end(c, n);
    if (!tn_range_fits(c->at, n, TN_GGUF_MAX_HEADER))
        return tn_fail(c->err, TERN_INPUT, "%s: %s: the header is longer than %u bytes",
                       c->part->input.name, c->place, TN_GGUF_MAX_HEADER);
    c->at += n;
    return TERN_OK;
}

static tern_status refill(struct cursor *c)
{
    const struct tn_gguf_input *in = &c->part->input;
    c->window_at = c->at;
    c->n_window = (size_t)TN_MIN(in->n_bytes - c->at, (uint64_t)WINDOW_BYTES);
    return in->read_at(in->arg, c->at, c->window, c->n_window, c->err);
}

static tern_status take_bytes(struct cursor *c, void *dst, size_t n)
{
    const uint64_t from = c->at;
    tern_status status = skip(c, n);
    if (status != TERN_OK || n == 0)
        return status;
    const struct tn_gguf_input *in = &c->part->input;
    if (n > WINDOW_BYTES)
        return in->read_at(in->arg, from, dst, n, c->err);
    if (from < c->window_at || from + n > c->window_at + c->n_window) {
        c->at = from;
        status = refill(c);
        if (status != TERN_OK)
            return status;
        c->at = from + n;
    }
    memcpy(dst, c->window + (from - c->window_at), n);
    return TERN_OK;
}

static tern_status take_u32(struct cursor *c, uint32_t *out)
{
    unsigned char bytes[4] = {0};
    tern_status status = take_bytes(c, bytes, sizeof bytes);
    *out = tn_load_u32(bytes);
    return status;
}

static tern_status take_u64(struct cursor *c, uint64_t *out)
{
    unsigned char bytes[8] = {0};
    tern_status status = take_bytes(c, bytes, sizeof bytes);
    *out = tn_load_u64(bytes);
    return status;
}

/* A count, which the format stores as i64. */
static tern_status take_count(struct cursor *c, uint32_t *out, const char *what, uint32_t max)
{
    uint64_t n;
    tern_status status = take_u64(c, &n);
    *out = 0;
    if (status != TERN_OK)
        return status;
    if (n > max)
        return tn_fail(c->err, TERN_INPUT, "%s: the number of %s is %lld, allowed are 0 to %u",
                       c->part->input.name, what, (long long)n, max);
    *out = (uint32_t)n;
    return TERN_OK;
}

/* A text of at most max bytes in new memory, NUL-terminated. */
static tern_status take_text(struct cursor *c, char **text, uint64_t *n, uint64_t max)
{
    tern_status status = take_u64(c, n);
    if (status != TERN_OK)
        return status;
    if (!tn_range_fits(c->at, *n, c->part->input.n_bytes))
        return fail_end(c, *n);
    if (*n > max)
        return tn_fail(c->err, TERN_INPUT, "%s: %s: a text of %llu bytes, at most %llu are allowed",
                       c->part->input.name, c->place, (unsigned long long)*n,
                       (unsigned long long)max);
    c->part->text_bytes += (size_t)*n;
    if (c->part->text_bytes > TN_GGUF_MAX_TEXT)
        return tn_fail(c->err, TERN_INPUT, "%s: %s: more than %u bytes of strings",
                       c->part->input.name, c->place, TN_GGUF_MAX_TEXT);
    *text = tn_alloc((size_t)*n + 1);
    if (!*text)
        return tn_fail(c->err, TERN_MEMORY, "%s: no memory for a text of %llu bytes",
                       c->part->input.name, (unsigned long long)*n);
    (*text)[*n] = '\0';
    return take_bytes(c, *text, (size_t)*n);
}

/* Names are displayed and looked up: one line of UTF-8, not empty. */
static tern_status check_name(struct cursor *c, const char *what, const char *name, uint64_t n)
{
    if (n > 0 && strlen(name) == n && tn_utf8_find_bad(name, (size_t)n, true) == n)
        return TERN_OK;
    return tn_fail(c->err, TERN_INPUT, "%s: %s: the name of the %s is %s", c->part->input.name,
                   c->place, what, n ? "not a line of UTF-8 text" : "empty");
}

/* ---- values ---- */

static tern_status fail_type(struct cursor *c, const char *what, uint32_t type)
{
    return tn_fail(c->err, TERN_INPUT, "%s: %s: %s %d is unknown, 0 to %d are defined",
                   c->part->input.name, c->place, what, (int)type, TN_GGUF_N_VALUE_TYPES - 1);
}

static tern_status check_bool(struct cursor *c, uint64_t value)
{
    if (value <= 1)
        return TERN_OK;
    return tn_fail(c->err, TERN_INPUT, "%s: %s: a truth value is %llu, 0 and 1 are allowed",
                   c->part->input.name, c->place, (unsigned long long)value);
}

/* A value of fixed size. */
static tern_status take_number(struct cursor *c, struct tn_gguf_key *key)
{
    unsigned char bytes[8] = {0};
    const uint32_t n = value_types[key->type].bytes;
    tern_status status = take_bytes(c, bytes, n);
    if (status != TERN_OK)
        return status;
    const uint64_t bits = tn_load_u64(bytes);
    key->count = 1;
    switch (key->type) {
    case TN_GGUF_I8:
        key->value.i = (int8_t)bits;
        break;
    case TN_GGUF_I16:
        key->value.i = (int16_t)bits;
        break;
    case TN_GGUF_I32:
        key->value.i = (int32_t)bits;
        break;
    case TN_GGUF_I64:
        key->value.i = (int64_t)bits;
        break;
    case TN_GGUF_F32:
        key->value.f = (double)tn_f32_from_bits((uint32_t)bits);
        break;
    case TN_GGUF_F64:
        memcpy(&key->value.f, &bits, sizeof bits);
        break;
    default:
        key->value.u = bits;
    }
    return key->type == TN_GGUF_BOOL ? check_bool(c, bits) : TERN_OK;
}

static tern_status walk_texts(struct cursor *c, uint64_t count)
{
    tern_status status = TERN_OK;
    for (uint64_t i = 0; i < count && status == TERN_OK; i++) {
        uint64_t n;
        status = take_u64(c, &n);
        if (status == TERN_OK)
            status = skip(c, n);
    }
    return status;
}

static tern_status walk_bools(struct cursor *c, uint64_t count)
{
    tern_status status = TERN_OK;
    for (uint64_t i = 0; i < count && status == TERN_OK; i++) {
        uint8_t value = 0;
        status = take_bytes(c, &value, 1);
        if (status == TERN_OK)
            status = check_bool(c, value);
    }
    return status;
}

static tern_status walk_array(struct cursor *c, struct tn_gguf_key *key)
{
    tern_status status = take_u32(c, &key->element_type);
    if (status != TERN_OK)
        return status;
    if (key->element_type == TN_GGUF_ARRAY)
        return tn_fail(c->err, TERN_INPUT, "%s: %s: an array of arrays is not allowed",
                       c->part->input.name, c->place);
    if (key->element_type >= TN_GGUF_N_VALUE_TYPES)
        return fail_type(c, "element type", key->element_type);
    status = take_u64(c, &key->count);
    if (status != TERN_OK)
        return status;
    /* A text takes at least 8 bytes: an array that cannot fit is not walked. */
    const uint32_t n_least = key->element_type == TN_GGUF_STRING
                                 ? 8
                                 : value_types[key->element_type].bytes;
    uint64_t n_bytes;
    if (!tn_mul_u64(key->count, n_least, &n_bytes) ||
        !tn_range_fits(c->at, n_bytes, c->part->input.n_bytes))
        return tn_fail(c->err, TERN_INPUT,
                       "%s: %s: an array of %llu elements does not fit into the %llu bytes that "
                       "follow; the file is truncated or damaged",
                       c->part->input.name, c->place, (unsigned long long)key->count,
                       (unsigned long long)(c->part->input.n_bytes - c->at));
    key->offset = c->at;
    if (key->element_type == TN_GGUF_STRING)
        status = walk_texts(c, key->count);
    else if (key->element_type == TN_GGUF_BOOL)
        status = walk_bools(c, key->count);
    else
        status = skip(c, n_bytes);
    key->bytes = c->at - key->offset;
    return status;
}

/* ---- keys ---- */

static tern_status take_key(struct cursor *c, uint32_t i)
{
    snprintf(c->place, sizeof c->place, "key %u", i);
    uint64_t n;
    char *name = NULL;
    tern_status status = take_text(c, &name, &n, TN_GGUF_MAX_KEY_BYTES);
    if (status == TERN_OK)
        status = check_name(c, "key", name, n);
    if (status != TERN_OK) {
        tn_free(name);
        return status;
    }
    struct tn_gguf_key *key = &c->part->keys[c->part->n_keys++];
    key->name = name;
    snprintf(c->place, sizeof c->place, "key \"%.80s\"", name);
    tn_utf8_make_printable(c->place);
    status = take_u32(c, &key->type);
    if (status != TERN_OK)
        return status;
    if (key->type >= TN_GGUF_N_VALUE_TYPES)
        return fail_type(c, "value type", key->type);
    if (key->type == TN_GGUF_STRING)
        return take_text(c, &key->text, &key->count, TN_GGUF_MAX_TEXT);
    return key->type == TN_GGUF_ARRAY ? walk_array(c, key) : take_number(c, key);
}

static int compare_keys(const void *a, const void *b)
{
    return strcmp(((const struct tn_gguf_key *)a)->name, ((const struct tn_gguf_key *)b)->name);
}

static tern_status take_keys(struct cursor *c, uint32_t n)
{
    struct tn_gguf_part *part = c->part;
    part->keys = tn_alloc_zeroed(TN_MAX(n, 1u), sizeof *part->keys);
    if (!part->keys)
        return tn_fail(c->err, TERN_MEMORY, "%s: no memory for %u keys", part->input.name, n);
    for (uint32_t i = 0; i < n; i++) {
        tern_status status = take_key(c, i);
        if (status != TERN_OK)
            return status;
    }
    if (n)
        qsort(part->keys, n, sizeof *part->keys, compare_keys);
    for (uint32_t i = 1; i < n; i++)
        if (strcmp(part->keys[i - 1].name, part->keys[i].name) == 0)
            return tn_fail(c->err, TERN_INPUT, "%s: key \"%s\" occurs twice", part->input.name,
                           part->keys[i].name);
    return TERN_OK;
}

const struct tn_gguf_key *tn_gguf_part_key(const struct tn_gguf_part *part, const char *name)
{
    if (part->n_keys == 0)
        return NULL;
    char own[TN_GGUF_MAX_KEY_BYTES + 1];
    snprintf(own, sizeof own, "%s", name);
    const struct tn_gguf_key wanted = {.name = own};
    return bsearch(&wanted, part->keys, part->n_keys, sizeof *part->keys, compare_keys);
}

static tern_status read_alignment(struct cursor *c)
{
    static const char name[] = "general.alignment";
    struct tn_gguf_part *part = c->part;
    const struct tn_gguf_key *key = tn_gguf_part_key(part, name);
    part->alignment = 32;
    if (!key)
        return TERN_OK;
    if (key->type != TN_GGUF_U32)
        return tn_fail(c->err, TERN_INPUT, "%s: key \"%s\" is of type %s, U32 is right",
                       part->input.name, name, tn_gguf_value_text(key->type));
    const uint64_t n = key->value.u;
    if (n == 0 || (n & (n - 1)) || n > TN_GGUF_MAX_ALIGNMENT)
        return tn_fail(c->err, TERN_INPUT,
                       "%s: key \"%s\" is %llu, allowed are the powers of two from 1 to %u",
                       part->input.name, name, (unsigned long long)n, TN_GGUF_MAX_ALIGNMENT);
    part->alignment = (uint32_t)n;
    return TERN_OK;
}

/* ---- tensors ---- */

static tern_status take_name(struct cursor *c, struct tn_gguf_tensor *t)
{
    uint64_t n;
    tern_status status = take_u64(c, &n);
    if (status != TERN_OK)
        return status;
    if (n >= TN_GGUF_MAX_NAME)
        return tn_fail(c->err, TERN_INPUT, "%s: %s: a name of %llu bytes, at most %u are allowed",
                       c->part->input.name, c->place, (unsigned long long)n, TN_GGUF_MAX_NAME - 1);
    status = take_bytes(c, t->name, (size_t)n);
    if (status == TERN_OK)
        status = check_name(c, "tensor", t->name, n);
    if (status == TERN_OK)
        snprintf(c->place, sizeof c->place, "tensor \"%s\"", t->name);
    return status;
}

static tern_status take_shape(struct cursor *c, struct tn_gguf_tensor *t)
{
    tern_status status = take_u32(c, &t->rank);
    if (status != TERN_OK)
        return status;
    if (t->rank > TN_GGUF_MAX_RANK)
        return tn_fail(c->err, TERN_INPUT, "%s: %s: %u dimensions, at most %u are allowed",
                       c->part->input.name, c->place, t->rank, TN_GGUF_MAX_RANK);
    uint64_t n = 1;
    for (uint32_t i = 0; i < TN_GGUF_MAX_RANK; i++) {
        t->ne[i] = 1;
        if (i < t->rank)
            status = take_u64(c, &t->ne[i]);
        if (status != TERN_OK)
            return status;
        if (t->ne[i] > INT64_MAX)
            return tn_fail(c->err, TERN_INPUT, "%s: %s: dimension %u is %lld, below 0",
                           c->part->input.name, c->place, i, (long long)t->ne[i]);
        if (!tn_mul_u64(n, t->ne[i], &n) || n > INT64_MAX)
            return tn_fail(c->err, TERN_INPUT, "%s: %s: more than 2^63 elements",
                           c->part->input.name, c->place);
    }
    return TERN_OK;
}

static tern_status take_tensor(struct cursor *c, uint32_t i, uint32_t i_part)
{
    struct tn_gguf_tensor *t = &c->part->tensors[i];
    snprintf(c->place, sizeof c->place, "tensor %u", i);
    t->i_part = i_part;
    tern_status status = take_name(c, t);
    if (status == TERN_OK)
        status = take_shape(c, t);
    if (status == TERN_OK)
        status = take_u32(c, &t->type);
    if (status == TERN_OK)
        status = take_u64(c, &t->offset);
    c->part->n_tensors = i + 1;
    return status;
}

static tern_status take_tensors(struct cursor *c, uint32_t n, uint32_t i_part)
{
    struct tn_gguf_part *part = c->part;
    part->tensors = tn_alloc_zeroed(TN_MAX(n, 1u), sizeof *part->tensors);
    if (!part->tensors)
        return tn_fail(c->err, TERN_MEMORY, "%s: no memory for %u tensors", part->input.name, n);
    tern_status status = TERN_OK;
    for (uint32_t i = 0; i < n && status == TERN_OK; i++)
        status = take_tensor(c, i, i_part);
    return status;
}

/* ---- the whole header ---- */

bool tn_is_gguf(const void *bytes, size_t n)
{
    return n >= 4 && memcmp(bytes, "GGUF", 4) == 0;
}

static tern_status take_magic(struct cursor *c)
{
    const char *name = c->part->input.name;
    unsigned char start[64] = {0};
    const size_t n = (size_t)TN_MIN(c->part->input.n_bytes, (uint64_t)sizeof start);
    tern_status status = take_bytes(c, start, n);
    c->at = 4;
    if (status != TERN_OK)
        return status;
    const char *wrong = tn_wrong_file_text(start, n);
    if (wrong)
        return tn_fail(c->err, TERN_INPUT, "%s: is %s", name, wrong);
    if (!tn_is_gguf(start, n))
        return tn_fail(c->err, TERN_INPUT,
                       "%s: not a GGUF file: it does not begin with \"GGUF\"; of safetensors give "
                       "the folder",
                       name);
    return TERN_OK;
}

static tern_status take_version(struct cursor *c)
{
    const char *name = c->part->input.name;
    uint32_t version;
    tern_status status = take_u32(c, &version);
    if (status != TERN_OK)
        return status;
    if (version != 0 && (version & 0xFFFF) == 0)
        return tn_fail(c->err, TERN_UNSUPPORTED,
                       "%s: version 0x%08x: the file is big-endian; tern reads little-endian files",
                       name, version);
    if (version < 2 || version > 3)
        return tn_fail(c->err, TERN_UNSUPPORTED, "%s: GGUF version %u; tern reads versions 2 and 3",
                       name, version);
    return TERN_OK;
}

static tern_status parse(struct cursor *c, uint32_t i_part)
{
    uint32_t n_tensors = 0, n_keys = 0;
    tern_status status = take_magic(c);
    if (status == TERN_OK)
        status = take_version(c);
    if (status == TERN_OK)
        status = take_count(c, &n_tensors, "tensors", TERN_MAX_TENSORS);
    if (status == TERN_OK)
        status = take_count(c, &n_keys, "keys", TN_GGUF_MAX_KEYS);
    if (status == TERN_OK)
        status = take_keys(c, n_keys);
    if (status == TERN_OK)
        status = read_alignment(c);
    if (status == TERN_OK)
        status = take_tensors(c, n_tensors, i_part);
    if (status != TERN_OK)
        return status;
    /* No overflow: the header is short. */
    c->part->data_offset = (uint64_t)tn_align_up((size_t)c->at, c->part->alignment);
    return tn_gguf_check_layout(c->part, c->err);
}

tern_status tn_gguf_parse(struct tn_gguf_part *part, uint32_t i_part, struct tern_error *err)
{
    struct cursor c = {.part = part, .err = err, .place = "header"};
    c.window = tn_alloc(WINDOW_BYTES);
    if (!c.window)
        return tn_fail(err, TERN_MEMORY, "%s: no memory to read it", part->input.name);
    tern_status status = parse(&c, i_part);
    tn_free(c.window);
    return status;
}

void tn_gguf_part_fini(struct tn_gguf_part *part)
{
    for (uint32_t i = 0; i < part->n_keys; i++) {
        tn_free(part->keys[i].name);
        tn_free(part->keys[i].text);
    }
    tn_free(part->keys);
    tn_free(part->tensors);
    tn_free(part->name);
    if (part->file)
        tn_file_close(part->file);
    memset(part, 0, sizeof *part);
}
