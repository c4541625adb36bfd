/* SPDX-License-Identifier: MIT
 *
 * Writes a .tern file as a stream: the table comes first (tensors are declared with shape and
 * layout), the data follows tensor by tensor in the order of declaration, the head comes last.
 *
 *   tn_mwriter_create   FILE.part
 *   tn_mwriter_declare  for each tensor         -> offsets are fixed
 *   tn_mwriter_begin    metadata, tokenizer     -> free space checked
 *   tn_mwriter_append   bytes of the tensors, in order, hashed meanwhile
 *   tn_mwriter_seal     head and hash written: FILE.part is a valid model
 *   tn_mwriter_set_fingerprint   (optional) patches the head
 *   tn_mwriter_commit   sync, rename to FILE, sync the directory
 *   tn_mwriter_abort    at any time: removes the part file; FILE is unchanged
 */
#ifndef TN_MODEL_FILE_WRITER_H
#define TN_MODEL_FILE_WRITER_H

#include <stddef.h>
#include <stdint.h>

#include "tern/model_format.h"
#include "tern/status.h"

struct tn_mwriter;

/* A source file of the model; see struct tern_file_source. */
struct tn_mwriter_source {
    const char *name;
    uint64_t bytes;
    uint64_t hash;
};

/* The contents of the metadata section.  NULL texts mean "". */
struct tn_mwriter_meta {
    struct tern_file_config config; /* the writer fills in the references */
    const struct tern_file_layer *layers; /* [tn_n_all_layers(&config)] */
    const uint32_t *stop_ids;             /* [n_stop_ids] */
    uint32_t n_stop_ids;
    const char *family;
    const char *name;
    const char *template_name;
    const char *template_source;
    size_t template_source_bytes;
    const char *converter;
    uint32_t n_sources;
    const struct tn_mwriter_source *sources;
    const struct tern_file_rotation *rotations; /* [n_rotations] references count from `signs` */
    uint32_t n_rotations;
    const uint8_t *signs; /* [n_sign_bytes] */
    uint32_t n_sign_bytes;
};

/* Follows links.  TERN_OUTPUT if no file can be written there, for instance where standard output
 * writes. */
tern_status tn_mwriter_create(struct tn_mwriter **out, const char *path, struct tern_error *err);
/* Declares a tensor: role, layer, layout, scale kind and group, rows, cols, n_stacked, flags;
 * computes offset and bytes.  Returns the index through *i_tensor.  Call in the order of the table:
 * by layer, then role, tensors of no layer (TERN_NO_LAYER) last; any other order is
 * TERN_INTERNAL. */
tern_status tn_mwriter_declare(struct tn_mwriter *writer, const struct tern_file_tensor *tensor,
                               uint32_t *i_tensor, struct tern_error *err);
tern_status tn_mwriter_begin(struct tn_mwriter *writer, const struct tn_mwriter_meta *meta,
                             const void *tokenizer, size_t tokenizer_bytes,
                             struct tern_error *err);
/* Size of the finished file; valid after begin. */
uint64_t tn_mwriter_file_bytes(const struct tn_mwriter *writer);
/* Appends bytes of tensor i_tensor; its data must be complete before the next tensor starts.
 * Row scales of the tensor follow its data (tn_mwriter_append_scales). */
tern_status tn_mwriter_append(struct tn_mwriter *writer, uint32_t i_tensor, const void *bytes,
                              size_t n_bytes, struct tern_error *err);
tern_status tn_mwriter_append_scales(struct tn_mwriter *writer, uint32_t i_tensor,
                                     const void *scales, size_t n_bytes, struct tern_error *err);
/* Appends the padding that follows matrix i_matrix of a stack. */
tern_status tn_mwriter_pad_matrix(struct tn_mwriter *writer, uint32_t i_tensor, uint32_t i_matrix,
                                  struct tern_error *err);
/* Facts that are known only after the tensor was read; for a stack call it after each matrix:
 * n_zero is added up.  Before seal. */
void tn_mwriter_add_tensor_facts(struct tn_mwriter *writer, uint32_t i_tensor, float scale,
                                 uint64_t n_zero);
/* Source hashes that are known only at the end; before seal.  Same number and names as in begin. */
void tn_mwriter_set_source(struct tn_mwriter *writer, uint32_t i_source, uint64_t bytes,
                           uint64_t hash);
tern_status tn_mwriter_seal(struct tn_mwriter *writer, struct tern_error *err);
const char *tn_mwriter_part_path(const struct tn_mwriter *writer);
/* The same for a file at `path` (tn_free); NULL: no memory. */
char *tn_mwriter_part_of(const char *path);
tern_status tn_mwriter_set_fingerprint(struct tn_mwriter *writer, const uint32_t *ids,
                                       uint32_t n_ids, uint64_t hash, struct tern_error *err);
/* enum tern_file_cache; after seal. */
tern_status tn_mwriter_set_cache(struct tn_mwriter *writer, uint32_t cache, struct tern_error *err);
tern_status tn_mwriter_commit(struct tn_mwriter *writer, struct tern_error *err); /* frees */
void tn_mwriter_abort(struct tn_mwriter *writer); /* frees; NULL is fine */

#endif
