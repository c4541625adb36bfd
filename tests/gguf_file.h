/* SPDX-License-Identifier: MIT
 *
 * A GGUF file made in memory.  The offset of each number is recorded under a name, so that a test
 * can corrupt it.
 *
 *   version  n_tensors  n_keys
 *   key/NAME/length  key/NAME/name  key/NAME/type  key/NAME/value
 *   arrays: key/NAME/element  key/NAME/count  key/NAME/value (the first element)
 *   tensor/NAME/length  .../name  .../rank  .../ne0 ...  .../type  .../offset
 *   data
 */
#ifndef GGUF_FILE_H
#define GGUF_FILE_H

#include <stddef.h>
#include <stdint.h>

#define GGUF_FILE_BYTES ((size_t)1 << 18)
#define GGUF_FILE_FIELDS 512u

struct gguf_field {
    char name[80];
    size_t at;
    size_t bytes;
};

struct gguf_file {
    unsigned char *bytes; /* [GGUF_FILE_BYTES] */
    size_t n;
    uint32_t alignment;
    uint64_t data_bytes; /* so far, padded */
    struct gguf_field fields[GGUF_FILE_FIELDS];
    size_t n_fields;
};

/* `bytes` [GGUF_FILE_BYTES] belongs to the caller. */
void gguf_begin(struct gguf_file *f, unsigned char *bytes, uint32_t version, uint64_t n_tensors,
                uint64_t n_keys);

/* Keys of any scalar type: the low bytes of `value`. */
void gguf_key(struct gguf_file *f, const char *name, uint32_t type, uint64_t value);
void gguf_key_f32(struct gguf_file *f, const char *name, float value);
void gguf_key_text(struct gguf_file *f, const char *name, const char *text);
/* An array of `count` numbers of the type, from memory. */
void gguf_key_numbers(struct gguf_file *f, const char *name, uint32_t type, const void *values,
                      uint64_t count);
void gguf_key_texts(struct gguf_file *f, const char *name, const char *const *texts,
                    uint64_t count);

/* A tensor of [rows][cols]; rows 0: a vector.  q2_block as in tn_gguf_type_bytes. */
void gguf_tensor(struct gguf_file *f, const char *name, uint32_t type, uint64_t cols,
                 uint64_t rows, uint32_t q2_block);
/* Call after the last tensor: writes padding and data, all bytes `fill`. */
void gguf_data(struct gguf_file *f, unsigned char fill);

/* The field with that name; fails the test if there is none. */
const struct gguf_field *gguf_field(const struct gguf_file *f, const char *name);
/* Overwrites its first bytes. */
void gguf_set(struct gguf_file *f, const char *field, uint64_t value);

#endif
