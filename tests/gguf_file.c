/* SPDX-License-Identifier: MIT
 *
 * The writer of gguf_file.h: appends keys and tensors to a buffer and records where each number is.
 */
#include "gguf_file.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "convert/gguf/gguf.h"

static void put(struct gguf_file *f, const void *bytes, size_t n)
{
    assert(f->n + n <= GGUF_FILE_BYTES);
    if (n)
        memcpy(f->bytes + f->n, bytes, n);
    f->n += n;
}

/* Records a field of n bytes at the current end. */
static void mark(struct gguf_file *f, const char *kind, const char *name, const char *what,
                 size_t n)
{
    assert(f->n_fields < GGUF_FILE_FIELDS);
    struct gguf_field *field = &f->fields[f->n_fields++];
    snprintf(field->name, sizeof field->name, "%s%s%s%s%s", kind, *kind ? "/" : "", name,
             *kind ? "/" : "", what);
    field->at = f->n;
    field->bytes = n;
}

static void put_number(struct gguf_file *f, const char *kind, const char *name, const char *what,
                       uint64_t value, size_t n)
{
    mark(f, kind, name, what, n);
    put(f, &value, n);
}

static void put_text(struct gguf_file *f, const char *text)
{
    const uint64_t n = strlen(text);
    put(f, &n, sizeof n);
    put(f, text, (size_t)n);
}

/* Writes the length and bytes of a name. */
static void put_name(struct gguf_file *f, const char *kind, const char *name)
{
    put_number(f, kind, name, "length", strlen(name), 8);
    mark(f, kind, name, "name", strlen(name));
    put(f, name, strlen(name));
}

void gguf_begin(struct gguf_file *f, unsigned char *bytes, uint32_t version, uint64_t n_tensors,
                uint64_t n_keys)
{
    memset(f, 0, sizeof *f);
    f->bytes = bytes;
    f->alignment = 32;
    mark(f, "", "magic", "", 4);
    put(f, "GGUF", 4);
    put_number(f, "", "version", "", version, 4);
    put_number(f, "", "n_tensors", "", n_tensors, 8);
    put_number(f, "", "n_keys", "", n_keys, 8);
}

static void begin_key(struct gguf_file *f, const char *name, uint32_t type)
{
    put_name(f, "key", name);
    put_number(f, "key", name, "type", type, 4);
}

static size_t value_bytes(uint32_t type)
{
    static const size_t bytes[] = {
#define BYTES(number, name, bytes) [number] = bytes,
        TN_GGUF_VALUE_LIST(BYTES)
#undef BYTES
    };
    return bytes[type];
}

void gguf_key(struct gguf_file *f, const char *name, uint32_t type, uint64_t value)
{
    begin_key(f, name, type);
    put_number(f, "key", name, "value", value, value_bytes(type));
    if (strcmp(name, "general.alignment") == 0 && type == TN_GGUF_U32)
        f->alignment = (uint32_t)value;
}

void gguf_key_f32(struct gguf_file *f, const char *name, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    gguf_key(f, name, TN_GGUF_F32, bits);
}

void gguf_key_text(struct gguf_file *f, const char *name, const char *text)
{
    begin_key(f, name, TN_GGUF_STRING);
    mark(f, "key", name, "value", 8);
    put_text(f, text);
}

static void begin_array(struct gguf_file *f, const char *name, uint32_t type, uint64_t count)
{
    begin_key(f, name, TN_GGUF_ARRAY);
    put_number(f, "key", name, "element", type, 4);
    put_number(f, "key", name, "count", count, 8);
    mark(f, "key", name, "value", 8);
}

void gguf_key_numbers(struct gguf_file *f, const char *name, uint32_t type, const void *values,
                      uint64_t count)
{
    begin_array(f, name, type, count);
    put(f, values, (size_t)count * value_bytes(type));
}

void gguf_key_texts(struct gguf_file *f, const char *name, const char *const *texts,
                    uint64_t count)
{
    begin_array(f, name, TN_GGUF_STRING, count);
    for (uint64_t i = 0; i < count; i++)
        put_text(f, texts[i]);
}

static uint64_t padded(const struct gguf_file *f, uint64_t n)
{
    return (n + f->alignment - 1) / f->alignment * f->alignment;
}

void gguf_tensor(struct gguf_file *f, const char *name, uint32_t type, uint64_t cols,
                 uint64_t rows, uint32_t q2_block)
{
    uint64_t n_bytes = 0;
    tn_gguf_type_bytes(&n_bytes, type, q2_block, rows ? rows : 1, cols);
    put_name(f, "tensor", name);
    put_number(f, "tensor", name, "rank", rows ? 2 : 1, 4);
    put_number(f, "tensor", name, "ne0", cols, 8);
    if (rows)
        put_number(f, "tensor", name, "ne1", rows, 8);
    put_number(f, "tensor", name, "type", type, 4);
    put_number(f, "tensor", name, "offset", f->data_bytes, 8);
    f->data_bytes += padded(f, n_bytes);
}

void gguf_data(struct gguf_file *f, unsigned char fill)
{
    const size_t n = (size_t)(padded(f, f->n) - f->n + f->data_bytes);
    assert(f->n + n <= GGUF_FILE_BYTES);
    const size_t n_padding = (size_t)(padded(f, f->n) - f->n);
    memset(f->bytes + f->n, 0, n_padding);
    f->n += n_padding;
    mark(f, "", "data", "", (size_t)f->data_bytes);
    memset(f->bytes + f->n, fill, (size_t)f->data_bytes);
    f->n += (size_t)f->data_bytes;
}

const struct gguf_field *gguf_field(const struct gguf_file *f, const char *name)
{
    for (size_t i = 0; i < f->n_fields; i++)
        if (strcmp(f->fields[i].name, name) == 0)
            return &f->fields[i];
    fprintf(stderr, "no field %s\n", name);
    abort();
}

void gguf_set(struct gguf_file *f, const char *field, uint64_t value)
{
    const struct gguf_field *found = gguf_field(f, field);
    const size_t n = found->bytes < 8 ? found->bytes : 8;
    memcpy(f->bytes + found->at, &value, n);
}
