/* SPDX-License-Identifier: MIT
 *
 * Rotated inputs: R(x) = B^-1/2 H (s * x), and its inverse s * (B^-1/2 H x), with the Hadamard
 * kernel and the signs s of the file.
 */
#include "model/rotation.h"

#include "base/alloc.h"
#include "base/error.h"

static void expand_signs(float *dst, const uint8_t *bits, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        dst[i] = bits[i / 8] >> i % 8 & 1 ? -1.0f : 1.0f;
}

tern_status tn_rotations_make(struct tn_rotation **out, float **signs,
                              const struct tn_model_spec *spec, struct tern_error *err)
{
    const uint8_t *metadata = (const uint8_t *)spec->config;
    size_t n_signs = 0;
    *out = NULL;
    *signs = NULL;
    for (uint32_t i = 0; i < spec->n_rotations; i++)
        n_signs += spec->rotations[i].signs.bytes ? spec->rotations[i].cols : 0;
    if (spec->n_rotations == 0)
        return TERN_OK;
    *out = tn_alloc_zeroed(spec->n_rotations, sizeof **out);
    *signs = tn_alloc_zeroed(n_signs + 1, sizeof **signs);
    if (!*out || !*signs)
        return tn_fail(err, TERN_MEMORY, "no memory for the signs of %u rotations",
                       spec->n_rotations);
    float *next = *signs;
    for (uint32_t i = 0; i < spec->n_rotations; i++) {
        const struct tern_file_rotation *r = &spec->rotations[i];
        (*out)[i] = (struct tn_rotation){.cols = r->cols, .block = spec->config->rotation_block};
        if (r->signs.bytes == 0)
            continue;
        expand_signs(next, metadata + r->signs.offset, r->cols);
        (*out)[i].signs = next;
        next += r->cols;
    }
    return TERN_OK;
}

static void apply_signs(float *x, const struct tn_rotation *r)
{
    for (uint32_t i = 0; i < r->cols && r->signs; i++)
        x[i] *= r->signs[i];
}

void tn_rotate(float *x, const struct tn_rotation *r, const struct tn_kernels *kernels)
{
    apply_signs(x, r);
    kernels->hadamard_f32(x, r->cols, r->block);
}

void tn_rotate_back(float *x, const struct tn_rotation *r, const struct tn_kernels *kernels)
{
    kernels->hadamard_f32(x, r->cols, r->block);
    apply_signs(x, r);
}
