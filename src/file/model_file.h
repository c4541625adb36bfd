/* SPDX-License-Identifier: MIT
 *
 * Opens a .tern file: map, check, look up.  After tn_model_file_open every size, offset and enum of
 * header, configuration and tensor table has been checked against include/tern/model_format.h, so
 * that users of a struct tn_model_file may form pointers without checking again.
 * tn_model_file_open also checks the presence and shapes of tensors, row scales and rope factors;
 * text/tokenizer.c checks the tokenizer section, and only tn_model_file_verify_chunk checks the
 * data bytes.  Read-only and thread-safe once open.
 */

/* Another process may write to the file while it is open; POSIX systems cannot prevent that.  So
 * trusted values are copied before they are checked:
 *
 *   copied     header, configuration and all metadata, tensor table: sizes, offsets, enums, ids of
 *              the model; the tokenizer copies its header, byte ids and added tokens
 *              (text/tokenizer.c), the weights their rope factors (model/weights.c)
 *   mapped     tensor data, scales, checksums, the tokenizer's large tables.  Any bytes may appear
 *              there at any time, so a value read from them never sizes a buffer, ends a loop or
 *              becomes an index unless it is loaded once (tn_load_once_u32) and compared after that
 *              load: a token's length with the longest one at opening, an id with the number of
 *              tokens.  A wrong number is a wrong result, which tern_model_check_unchanged turns
 *              into an error. */
#ifndef TN_MODEL_FILE_H
#define TN_MODEL_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/arch.h"
#include "plat/plat.h"
#include "tern/model_format.h"
#include "tern/status.h"

struct tn_model_file {
    struct tn_map map;
    bool is_mapped; /* set by tn_model_file_open */
    void *head; /* heap: the file up to the end of the tensor table; the next three point into it */
    const struct tern_file_header *header;
    struct tn_model_spec spec;
    const struct tern_file_tensor *tensors;
    uint32_t n_tensors;
    const unsigned char *tokenizer; /* NULL: no tokenizer */
    size_t tokenizer_bytes;
    const uint64_t *data_hashes;
    uint32_t n_chunks;
};

/* TERN_INPUT: missing, unreadable, empty, truncated, a Git-LFS pointer, not a .tern file, wrong
 * hash, a field out of range (named with value and limit).  TERN_UNSUPPORTED: newer version,
 * unknown layout and so on.  TERN_MEMORY.  Most errors are found in the first 16 KiB, before the
 * hash is computed. */
tern_status tn_model_file_open(struct tn_model_file *out, const char *path, struct tern_error *err);
/* The same checks for a file in memory: `bytes` is 8-byte aligned and outlives *out; `name`
 * replaces the path in messages. */
tern_status tn_model_file_check(struct tn_model_file *out, const void *bytes, size_t n_bytes,
                                const char *name, struct tern_error *err);
void tn_model_file_close(struct tn_model_file *file);

/* The tensor with this role and layer, or NULL. O(log n). */
const struct tern_file_tensor *tn_model_file_tensor(const struct tn_model_file *file,
                                                    enum tern_role role, uint32_t layer);
static inline const void *tn_model_file_data(const struct tn_model_file *file,
                                             const struct tern_file_tensor *tensor)
{
    return file->map.data + tensor->offset;
}
/* The scales of a tensor; NULL: it has none. */
static inline const float *tn_model_file_scales(const struct tn_model_file *file,
                                                const struct tern_file_tensor *tensor)
{
    return tensor->scale_bytes ? (const void *)(file->map.data + tensor->scale_offset) : NULL;
}
/* The bytes of a metadata string; *n_bytes may be 0.  Never NULL; valid as long as the file is
 * open. */
const char *tn_model_file_text(const struct tn_model_file *file, struct tern_file_ref ref,
                               size_t *n_bytes);
/* Writes "layers.3.up" to dst (at least 48 bytes); returns dst. */
const char *tn_tensor_name(char *dst, size_t n_dst, const struct tern_file_tensor *tensor);

/* Alignment of a data section of data_bytes; shared by reader and writer. */
uint32_t tn_model_file_data_align(uint64_t data_bytes);
/* The first valid offset at or after `end` for tensor data of n_bytes; shared by reader and writer.
 * False on overflow. */
int tn_tensor_place(uint64_t end, uint64_t n_bytes, uint64_t *offset);
/* Sets offsets and sizes of the tensor that follows *end bytes of data, and advances *end past it.
 * Offsets count from the start of the data, which is page-aligned, so that alignments hold.  False:
 * its layout cannot hold its shape, or a size overflows. */
bool tn_tensor_put(struct tern_file_tensor *tensor, uint64_t *end);
/* <0, 0, >0: order in the table, by layer and role. */
int tn_tensor_compare(const struct tern_file_tensor *a, const struct tern_file_tensor *b);

/* Compares the hash of data chunk i; TERN_INPUT names the chunk and the tensor at its start. */
tern_status tn_model_file_verify_chunk(const struct tn_model_file *file, uint32_t i_chunk,
                                       struct tern_error *err);

#endif
