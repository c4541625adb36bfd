/* SPDX-License-Identifier: MIT
 *
 * Opening a .tern file: map, check, look up.  After tn_model_file_open every size,
 * offset and enum of header, configuration and tensor table has been checked
 * against include/tern/model_format.h, so that users of a struct tn_model_file may
 * form pointers without checking again.  The tokenizer section is checked by
 * text/tokenizer.c, the tensors' presence and shapes against the configuration
 * here (tn_model_file_open) and the data bytes by tn_model_file_verify_chunk only; row
 * scales and rope factors are the exception: they are few, so that they are in
 * their range is checked at once.
 * Read-only and thread-safe once open.
 *
 * The file may be written to while it is open; nothing on POSIX systems keeps
 * others from that.  So what is trusted is a copy, made before it is checked:
 *
 *   copied     header, configuration and all metadata, tensor table: sizes,
 *              offsets, enums, ids of the model; the tokenizer copies its
 *              header, byte ids and added tokens (text/tokenizer.c), the weights
 *              their rope factors (model/weights.c)
 *   mapped     tensor data, scales, checksums, the tokenizer's large tables.
 *              Any bytes may stand there at any time, so nothing that is read
 *              out of them sizes a buffer, ends a loop or becomes an index
 *              unless it is loaded once (tn_load_once_u32) and compared after
 *              that load: a token's length with the longest one at opening, an
 *              id with the number of tokens.  A wrong number is a wrong result,
 *              which tern_model_check_unchanged turns into an error.
 */
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
    bool is_mapped; /* by tn_model_file_open */
    void *head; /* heap: the file up to the end of the tensor table; the next three point there */
    const struct tern_file_header *header;
    struct tn_model_spec spec;
    const struct tern_file_tensor *tensors;
    uint32_t n_tensors;
    const unsigned char *tokenizer; /* NULL without */
    size_t tokenizer_bytes;
    const uint64_t *data_hashes;
    uint32_t n_chunks;
};

/* TERN_INPUT: missing, unreadable, empty, truncated, a Git-LFS pointer, not a .tern file, hash
 * wrong, a field out of range (named with value and limit). TERN_UNSUPPORTED: newer version,
 * unknown layout and so on. TERN_MEMORY. The first 16 KiB decide most of it before the hash is
 * computed. */
tern_status tn_model_file_open(struct tn_model_file *out, const char *path, struct tern_error *err);
/* The same checks for a file that is in memory already: `bytes` is 8-byte aligned and outlives
 * *out; `name` stands for the path in messages. */
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
/* NULL: the tensor has no scales. */
static inline const float *tn_model_file_scales(const struct tn_model_file *file,
                                                const struct tern_file_tensor *tensor)
{
    return tensor->scale_bytes ? (const void *)(file->map.data + tensor->scale_offset) : NULL;
}
/* Bytes of a metadata string; *n_bytes may be 0. Never NULL; valid as long as the file is open. */
const char *tn_model_file_text(const struct tn_model_file *file, struct tern_file_ref ref,
                               size_t *n_bytes);
/* "layers.3.up" into dst (at least 48 bytes); returns dst. */
const char *tn_tensor_name(char *dst, size_t n_dst, const struct tern_file_tensor *tensor);

/* Alignment of a data section of so many bytes; shared by reader and writer. */
uint32_t tn_model_file_data_align(uint64_t data_bytes);
/* Where tensor data of n_bytes bytes may start, at `end` or behind it; shared by reader and writer.
 * False when that overflows. */
int tn_tensor_place(uint64_t end, uint64_t n_bytes, uint64_t *offset);
/* Sets offsets and bytes of the tensor that follows *end bytes of data, and moves *end to its end.
 * Offsets count from the start of the data, which is page-aligned, so that alignments hold.  False:
 * its layout cannot hold its shape, or a size overflows. */
bool tn_tensor_put(struct tern_file_tensor *tensor, uint64_t *end);
/* <0, 0, >0: order of the table, by layer and role. */
int tn_tensor_compare(const struct tern_file_tensor *a, const struct tern_file_tensor *b);

/* Compares the hash of data chunk i; TERN_INPUT names the chunk and the tensor at its start. */
tern_status tn_model_file_verify_chunk(const struct tn_model_file *file, uint32_t i_chunk,
                                       struct tern_error *err);

#endif
