/* SPDX-License-Identifier: MIT
 *
 * What reader and writer of a .tern file agree on: names, sizes of layouts,
 * order and places of tensors.
 */
#include <stdio.h>

#include "base/bits.h"
#include "file/mfile.h"

const char *tn_layout_name(uint32_t layout)
{
    switch (layout) {
#define LAYOUT_CASE(name, number, text)                                                            \
    case number:                                                                                   \
        return text;
        TERN_LAYOUT_LIST(LAYOUT_CASE)
#undef LAYOUT_CASE
    default:
        return NULL;
    }
}

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

/* rows and cols rounded up, times `bits` per weight. */
static int padded_bytes(uint32_t rows, uint32_t row_align, uint32_t cols, uint32_t col_align,
                        uint64_t bits, uint64_t *out)
{
    uint64_t r, c, n;
    if (!tn_align_up_u64(rows, row_align, &r) || !tn_align_up_u64(cols, col_align, &c) ||
        !tn_mul_u64(r, c, &n) || !tn_mul_u64(n, bits, &n))
        return 0;
    *out = n / 8;
    return 1;
}

uint32_t tn_layout_planes(uint32_t layout)
{
    return layout == TERN_LAYOUT_Q8_PLANES ? 4
           : layout == TERN_LAYOUT_Q6      ? 3
           : layout == TERN_LAYOUT_Q4      ? 1
                                           : 0;
}

uint32_t tn_layout_scales(uint32_t layout)
{
    uint32_t n_planes = tn_layout_planes(layout);
    return n_planes ? n_planes + 1 : layout == TERN_LAYOUT_Q8;
}

uint64_t tn_layout_scale_bytes(uint32_t layout, uint32_t rows, uint32_t cols)
{
    uint64_t floats = (uint64_t)rows * tn_layout_scales(layout) * sizeof(float);
    return tn_layout_planes(layout) ? floats + cols + rows : floats;
}

uint64_t tn_tensor_scale_bytes(const struct tern_file_tensor *t)
{
    if (t->scale_kind == TERN_SCALE_ROW)
        return tn_layout_scale_bytes(t->layout, t->rows, t->cols);
    if (!tn_is_col_group(t->scale_kind) || t->scale_group == 0)
        return 0;
    const uint64_t rows = ((uint64_t)t->rows + 63) / 64 * 64;
    const uint64_t groups = t->cols / t->scale_group + (t->cols % t->scale_group != 0);
    return rows * groups * (t->scale_kind == TERN_SCALE_COL_GROUP ? 4 : 2);
}

uint32_t tn_layout_bits(uint32_t layout)
{
    switch (layout) {
    case TERN_LAYOUT_F32:
        return 32;
    case TERN_LAYOUT_F16:
    case TERN_LAYOUT_BF16:
        return 16;
    case TERN_LAYOUT_Q8:
    case TERN_LAYOUT_Q8_PLANES:
        return 8;
    case TERN_LAYOUT_Q6:
        return 6;
    case TERN_LAYOUT_Q4:
        return 4;
    case TERN_LAYOUT_T2:
    case TERN_LAYOUT_R2:
    case TERN_LAYOUT_C2:
        return 2;
    default:
        return 0;
    }
}

int tn_layout_bytes(uint32_t layout, uint32_t rows, uint32_t cols, uint64_t *out)
{
    const uint32_t bits = tn_layout_bits(layout);
    *out = 0;
    if (bits == 0)
        return 0;
    if (tn_layout_planes(layout))
        return padded_bytes(rows, 1, cols, TERN_PLANE_COL_ALIGN, bits, out);
    switch (layout) {
    case TERN_LAYOUT_T2:
        return padded_bytes(rows, TERN_T2_TILE_ROWS, cols, TERN_T2_COL_ALIGN, bits, out);
    case TERN_LAYOUT_R2:
        return padded_bytes(rows, 1, cols, TERN_R2_COL_ALIGN, bits, out);
    case TERN_LAYOUT_C2:
        return padded_bytes(rows, TERN_C2_ROW_ALIGN, cols, 1, bits, out);
    default:
        return padded_bytes(rows, 1, cols, 1, bits, out);
    }
}

uint32_t tn_mfile_data_align(uint64_t data_bytes)
{
    return data_bytes >= TERN_FILE_LARGE ? TERN_FILE_CHUNK : TERN_FILE_PAGE;
}

int tn_tensor_place(uint64_t end, uint64_t n_bytes, uint64_t *offset)
{
    uint32_t align = n_bytes >= TERN_FILE_PAGE_TENSOR ? TERN_FILE_PAGE : TERN_FILE_ALIGN;
    return tn_align_up_u64(end, align, offset);
}

int tn_tensor_compare(uint32_t layer_a, uint32_t role_a, uint32_t layer_b, uint32_t role_b)
{
    if (layer_a != layer_b)
        return layer_a < layer_b ? -1 : 1;
    return role_a < role_b ? -1 : role_a > role_b;
}
