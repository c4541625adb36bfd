/* SPDX-License-Identifier: MIT
 *
 * Checks of a .tern file: rotations of inputs, and the matrices whose inputs they rotate.  Called
 * by model_file_check_tensors.c and tn_model_file_check.
 */
#include "base/bits.h"
#include "base/error.h"
#include "file/model_file_check.h"

/* Bits after the last column must be zero, so that equal rotations have equal bytes. */
static tern_status check_signs(struct tn_mcheck *c, const struct tern_file_rotation *r)
{
    const uint32_t n_bytes = tn_div_ceil_u32(r->cols, 8);
    if (r->signs.bytes == 0)
        return TERN_OK;
    tern_status status = tn_mcheck_equal(c, "rotations.signs.bytes", r->signs.bytes, n_bytes);
    if (!status)
        status = tn_mcheck_records(c, "rotations.signs", r->signs, 1, 1);
    const uint8_t *signs = (const uint8_t *)c->file->spec.config + r->signs.offset;
    if (!status && r->cols % 8 != 0 && signs[n_bytes - 1] >> r->cols % 8 != 0)
        status = tn_fail(c->err, TERN_INPUT,
                         "%s: rotations.signs has signs after the %u of its columns", c->name,
                         r->cols);
    return status;
}

static tern_status check_rotation(struct tn_mcheck *c, const struct tern_file_rotation *r,
                                  uint32_t cols_before)
{
    const uint32_t block = c->file->spec.config->rotation_block;
    tern_status status = tn_mcheck_range(c, "rotations.cols", r->cols, cols_before + 1,
                                         TERN_MAX_DIM);
    if (!status && r->cols % block != 0)
        status = tn_fail(c->err, TERN_INPUT,
                         "%s: rotations.cols is %u, must be a multiple of rotation_block %u",
                         c->name, r->cols, block);
    if (!status)
        status = tn_mcheck_reserved(c, "rotations.reserved", &r->reserved, sizeof r->reserved);
    return status ? status : check_signs(c, r);
}

tern_status tn_mcheck_rotations(struct tn_mcheck *c)
{
    struct tn_model_spec *spec = &c->file->spec;
    const struct tern_file_config *m = spec->config;
    const uint32_t block = m->rotation_block;
    if (block == 0)
        return tn_mcheck_reserved(c, "rotations", &m->rotations, sizeof m->rotations);
    tern_status status = tn_mcheck_range(c, "rotation_block", block, 2, TERN_MAX_DIM);
    if (!status && (block & (block - 1)) != 0)
        status = tn_fail(c->err, TERN_INPUT, "%s: rotation_block is %u, must be a power of two",
                         c->name, block);
    if (!status)
        status = tn_mcheck_records(c, "rotations", m->rotations, 4,
                                   sizeof(struct tern_file_rotation));
    if (status)
        return status;
    spec->rotations = (const void *)((const unsigned char *)m + m->rotations.offset);
    spec->n_rotations = m->rotations.bytes / (uint32_t)sizeof *spec->rotations;
    for (uint32_t i = 0; i < spec->n_rotations && !status; i++)
        status = check_rotation(c, &spec->rotations[i], i > 0 ? spec->rotations[i - 1].cols : 0);
    return status;
}

tern_status tn_mcheck_rotated(struct tn_mcheck *c, const struct tern_file_tensor *t,
                              const char *name)
{
    const struct tn_model_spec *spec = &c->file->spec;
    if (t->flags & ~TERN_TENSOR_ROTATED)
        return tn_mcheck_unknown(c, "tensor.flags", t->flags);
    if (!(t->flags & TERN_TENSOR_ROTATED))
        return TERN_OK;
    if (!tn_slot_may_be_rotated(tn_slot_of(t->role), spec->config))
        return tn_fail(c->err, TERN_UNSUPPORTED,
                       "%s: tensor \"%s\" is rotated, which is not supported for it", c->name,
                       name);
    if (!tn_rotation_find(spec, t->cols))
        return tn_fail(c->err, TERN_INPUT,
                       "%s: tensor \"%s\" is rotated, but there is no rotation of its %u columns",
                       c->name, name, t->cols);
    return TERN_OK;
}
