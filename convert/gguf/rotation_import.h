/* SPDX-License-Identifier: MIT
 *
 * The keys prism.hadamard.* of a GGUF file: which matrices have rotated weights, and by which
 * rotation.
 */
#ifndef TN_ROTATION_IMPORT_H
#define TN_ROTATION_IMPORT_H

#include "convert/source.h"
#include "tern/model_format.h"

/* In the representation of the .tern file; block 0: nothing is rotated. */
struct tn_rotation_import {
    uint32_t block;
    struct tern_file_rotation *rotations; /* [n] ascending by cols; references count from signs */
    uint32_t n;
    uint8_t *signs; /* [n_sign_bytes] */
    uint32_t n_sign_bytes;
};

/* Sets is_rotated of the tensors that the keys name, and delta_flags of the layers [n_layer] whose
 * delta_out has its columns grouped.  TERN_UNSUPPORTED: an unknown rotation, or one of a tensor
 * that tern does not rotate; TERN_INPUT: the keys contradict themselves or the tensors. */
tern_status tn_rotation_import(struct tn_rotation_import *out, struct tn_source *source,
                               struct tern_file_layer *layers, uint32_t n_layer,
                               struct tern_error *err);
void tn_rotation_import_fini(struct tn_rotation_import *import);

#endif
