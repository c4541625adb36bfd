/* SPDX-License-Identifier: MIT
 *
 * Sizes of matrices, scales and stacks on disk, computed from the rows of layouts.h.  layout_spec.h
 * has the contracts.
 */
#include "arch/layout_spec.h"

#include <assert.h>

#include "base/bits.h"
#include "base/compiler.h"

enum { /* bits of struct tn_layout_spec.scale_kinds */
    NONE = 1u << TERN_SCALE_NONE,
    TENSOR = 1u << TERN_SCALE_TENSOR,
    ROW = 1u << TERN_SCALE_ROW,
    GROUP = 1u << TERN_SCALE_COL_GROUP | 1u << TERN_SCALE_COL_GROUP_F16,
};
enum { PADDED = false, WHOLE = true };
enum { OTHER = false, TERNARY = true };
enum { ROWS = false, COLUMNS = true };

static const char *const names[] = {
#define LAYOUT_NAME(layout, number, text) [number] = text,
    TERN_LAYOUT_LIST(LAYOUT_NAME)
#undef LAYOUT_NAME
};

#define BAND_ALIGN 64u

static const struct tn_layout_spec specs[] = {
#define LAYOUT(id, shown, rows, cols, bytes, band, scales, floats, planes, values, use, order)     \
    {TERN_LAYOUT_##id, shown, rows,   cols,   bytes,          (bool)(band),                        \
     scales,           floats, planes, (bool)(values), TN_USE_##use, (bool)(order)},
#include "arch/layouts.h"
#undef LAYOUT
};

const struct tn_layout_spec *tn_layout_find(uint32_t layout)
{
    for (uint32_t i = 0; i < TN_COUNT_OF(specs); i++)
        if (specs[i].layout == layout)
            return &specs[i];
    return NULL;
}

const char *tn_layout_name(uint32_t layout)
{
    return layout < TN_COUNT_OF(names) ? names[layout] : NULL;
}

bool tn_layout_is_ternary(uint32_t layout)
{
    const struct tn_layout_spec *spec = tn_layout_find(layout);
    return spec && spec->is_ternary;
}

/* ---- data ---- */

bool tn_layout_bytes(uint32_t layout, uint32_t rows, uint32_t cols, uint64_t *out)
{
    const struct tn_layout_spec *s = tn_layout_find(layout);
    uint64_t r, c, n_weights, band;
    *out = 0;
    /* The padded number of weights is limited, too. */
    if (!s || !tn_align_up_u64(rows, s->tile_rows, &r) ||
        !tn_align_up_u64(cols, s->tile_cols, &c) || !tn_mul_u64(r, c, &n_weights) ||
        (s->is_whole && c != cols) || !tn_mul_u64(c / s->tile_cols, s->tile_bytes, &band) ||
        (s->is_whole && !tn_align_up_u64(band, BAND_ALIGN, &band)))
        return false;
    return tn_mul_u64(r / s->tile_rows, band, out);
}

uint64_t tn_layout_size(uint32_t layout, uint32_t rows, uint32_t cols)
{
    uint64_t n_bytes;
    const bool fits = tn_layout_bytes(layout, rows, cols, &n_bytes);
    assert(fits && "callers know the layout, and sizes are limited");
    (void)fits;
    return n_bytes;
}

uint64_t tn_layout_weight_bytes(uint32_t layout, uint64_t n_weights)
{
    const struct tn_layout_spec *s = tn_layout_find(layout);
    assert(s && "tn_model_file_open checks layouts");
    return n_weights * s->tile_bytes / (s->tile_rows * s->tile_cols);
}

/* ---- scales ---- */

uint32_t tn_layout_scales(uint32_t layout)
{
    const struct tn_layout_spec *s = tn_layout_find(layout);
    return s ? s->row_floats : 0;
}

uint32_t tn_layout_planes(uint32_t layout)
{
    const struct tn_layout_spec *s = tn_layout_find(layout);
    return s ? s->n_planes : 0;
}

uint64_t tn_layout_scale_bytes(uint32_t layout, uint32_t rows, uint32_t cols)
{
    const uint64_t floats = (uint64_t)rows * tn_layout_scales(layout) * sizeof(float);
    return tn_layout_planes(layout) ? floats + cols + rows : floats;
}

/* Scales of one matrix. */
static uint64_t scale_bytes(const struct tern_file_tensor *t)
{
    if (t->scale_kind == TERN_SCALE_ROW)
        return tn_layout_scale_bytes(t->layout, t->rows, t->cols);
    if (!tn_is_col_group(t->scale_kind) || t->scale_group == 0)
        return 0;
    const uint64_t rows = ((uint64_t)t->rows + 63) / 64 * 64;
    const uint64_t groups = t->cols / t->scale_group + (t->cols % t->scale_group != 0);
    return rows * groups * (t->scale_kind == TERN_SCALE_COL_GROUP ? 4 : 2);
}

/* ---- stacks ---- */

uint32_t tn_tensor_align(uint64_t n_bytes)
{
    return n_bytes >= TERN_FILE_PAGE_TENSOR ? TERN_FILE_PAGE : TERN_FILE_ALIGN;
}

bool tn_tensor_bytes(const struct tern_file_tensor *t, uint64_t *out)
{
    if (!tn_layout_bytes(t->layout, t->rows, t->cols, out))
        return false;
    return t->n_stacked == 0 || (tn_align_up_u64(*out, tn_tensor_align(*out), out) &&
                                 tn_mul_u64(*out, t->n_stacked, out));
}

uint64_t tn_tensor_scale_bytes(const struct tern_file_tensor *t)
{
    const uint64_t one = scale_bytes(t);
    const uint64_t padded = (one + TERN_FILE_ALIGN - 1) / TERN_FILE_ALIGN * TERN_FILE_ALIGN;
    return t->n_stacked ? padded * t->n_stacked : one;
}

uint64_t tn_tensor_weights(const struct tern_file_tensor *t)
{
    return (uint64_t)t->rows * t->cols * (t->n_stacked ? t->n_stacked : 1);
}

struct tern_file_tensor tn_tensor_slice(const struct tern_file_tensor *t, uint32_t i)
{
    struct tern_file_tensor slice = *t;
    if (t->n_stacked == 0)
        return slice;
    assert(i < t->n_stacked);
    slice.n_stacked = 0;
    slice.offset += t->bytes / t->n_stacked * i;
    slice.bytes = tn_layout_size(t->layout, t->rows, t->cols);
    if (t->scale_bytes > 0)
        slice.scale_offset += t->scale_bytes / t->n_stacked * i;
    slice.scale_bytes = scale_bytes(t);
    return slice;
}
