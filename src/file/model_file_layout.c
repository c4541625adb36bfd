/* SPDX-License-Identifier: MIT
 *
 * Rules that reader and writer of a .tern file share: names, order and offsets of tensors.  Sizes
 * of layouts are in arch/layout_spec.c.
 */
#include <stdio.h>

#include "base/bits.h"
#include "file/model_file.h"

const char *tn_tensor_name(char *dst, size_t n_dst, const struct tern_file_tensor *tensor)
{
    const char *role = tn_role_name(tensor->role);
    if (!role)
        role = "?";
    if (tensor->layer == TERN_NO_LAYER)
        snprintf(dst, n_dst, "%s", role);
    else
        snprintf(dst, n_dst, "layers.%u.%s", tensor->layer, role);
    return dst;
}

uint32_t tn_model_file_data_align(uint64_t data_bytes)
{
    return data_bytes >= TERN_FILE_LARGE ? TERN_FILE_CHUNK : TERN_FILE_PAGE;
}

int tn_tensor_place(uint64_t end, uint64_t n_bytes, uint64_t *offset)
{
    return tn_align_up_u64(end, tn_tensor_align(n_bytes), offset);
}

bool tn_tensor_put(struct tern_file_tensor *t, uint64_t *end)
{
    if (!tn_tensor_bytes(t, &t->bytes) ||
        !tn_tensor_place(*end, t->bytes, &t->offset) || !tn_add_u64(t->offset, t->bytes, end))
        return false;
    t->scale_bytes = tn_tensor_scale_bytes(t);
    t->scale_offset = 0;
    if (t->scale_bytes == 0)
        return true;
    return tn_align_up_u64(*end, TERN_FILE_ALIGN, &t->scale_offset) &&
           tn_add_u64(t->scale_offset, t->scale_bytes, end);
}

int tn_tensor_compare(const struct tern_file_tensor *a, const struct tern_file_tensor *b)
{
    if (a->layer != b->layer)
        return a->layer < b->layer ? -1 : 1;
    return a->role < b->role ? -1 : a->role > b->role;
}
