/* SPDX-License-Identifier: MIT
 *
 * The steps of tn_model_file_check, shared by model_file.c and the files model_file_check*.c.
 */
#ifndef TN_MODEL_FILE_CHECK_H
#define TN_MODEL_FILE_CHECK_H

#include "file/model_file.h"

struct tn_mcheck {
    struct tn_model_file *file; /* header, configuration and so on are set once they may be read */
    const unsigned char *bytes;
    size_t n_bytes;
    const char *name; /* of the file, short enough for a message */
    struct tern_error *err;
};

/* Call in this order; each relies on the checks of the previous ones.  The first copies the data
 * that the others check to file->head on the heap. */
tern_status tn_mcheck_header(struct tn_mcheck *c);
tern_status tn_mcheck_head_hash(struct tn_mcheck *c);
tern_status tn_mcheck_config(struct tn_mcheck *c);
tern_status tn_mcheck_layers(struct tn_mcheck *c); /* experts and draft head, too */
tern_status tn_mcheck_rotations(struct tn_mcheck *c);
tern_status tn_mcheck_tensors(struct tn_mcheck *c);

/* Sizes that may differ between layers. */
tern_status tn_mcheck_layer_dims(struct tn_mcheck *c, const struct tn_layer_dims *d);
/* Called by the last one: the rotation flag of a tensor. */
tern_status tn_mcheck_rotated(struct tn_mcheck *c, const struct tern_file_tensor *t,
                              const char *name);

/* TERN_OK if min <= value <= max, else TERN_INPUT with all three. */
tern_status tn_mcheck_range(struct tn_mcheck *c, const char *field, uint64_t value, uint64_t min,
                            uint64_t max);
/* TERN_OK if the value is finite and above 0. */
tern_status tn_mcheck_positive(struct tn_mcheck *c, const char *field, float value);
/* TERN_OK if value == expected. */
tern_status tn_mcheck_equal(struct tn_mcheck *c, const char *field, uint64_t value,
                            uint64_t expected);
/* TERN_OK if a reference into the metadata fits, begins at a multiple of `align` and has records of
 * n_record bytes. */
tern_status tn_mcheck_records(struct tn_mcheck *c, const char *field, struct tern_file_ref ref,
                              uint32_t align, size_t n_record);
/* TERN_UNSUPPORTED, "written by a newer tern", unless all bytes are zero. */
tern_status tn_mcheck_reserved(struct tn_mcheck *c, const char *field, const void *bytes,
                               size_t n_bytes);
/* TERN_UNSUPPORTED with field and value. */
tern_status tn_mcheck_unknown(struct tn_mcheck *c, const char *field, uint64_t value);

#endif
