/* SPDX-License-Identifier: MIT
 *
 * Rotated inputs: matrices whose weights were multiplied by a block-diagonal Hadamard matrix take
 * R(x) of tern/model_format.h instead of x.
 */
#ifndef TN_ROTATION_H
#define TN_ROTATION_H

#include "arch/arch.h"
#include "kern/kern.h"
#include "tern/status.h"

/* The rotation of all inputs of `cols` columns. */
struct tn_rotation {
    uint32_t cols;
    uint32_t block;     /* divides cols */
    const float *signs; /* [cols] 1 or -1; NULL: all 1 */
};

/* Allocates out [spec->n_rotations] and *signs, which they point to (tn_free); NULL if there are no
 * rotations.  TERN_MEMORY. */
tern_status tn_rotations_make(struct tn_rotation **out, float **signs,
                              const struct tn_model_spec *spec, struct tern_error *err);

/* x [cols] = R(x). */
void tn_rotate(float *x, const struct tn_rotation *r, const struct tn_kernels *kernels);
/* The inverse of R, for the rows of rotated embeddings. */
void tn_rotate_back(float *x, const struct tn_rotation *r, const struct tn_kernels *kernels);

#endif
