/* SPDX-License-Identifier: MIT
 *
 * Geometry of matrices on disk: sizes of layouts and of their scales, from the list in layouts.h.
 * Pure: no memory, no failure.  Callers that pass sizes from files use the functions that check.
 */
#ifndef TN_LAYOUT_SPEC_H
#define TN_LAYOUT_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include "tern/model_format.h"

enum tn_layout_use { TN_USE_ANY, TN_USE_ROW_LIST, TN_USE_COL_LIST };

struct tn_layout_spec {
    uint32_t layout;   /* enum tern_layout */
    const char *shown; /* the name for users: "q8" */
    uint32_t tile_rows, tile_cols, tile_bytes;
    bool is_whole; /* columns are whole tiles; tiles of the same rows are padded to 64 bytes */
    uint32_t scale_kinds; /* bit k: enum tern_scale_kind k */
    uint32_t row_floats;
    uint32_t n_planes;
    bool is_ternary;
    enum tn_layout_use use;
    bool is_by_columns; /* rows cannot be packed in separate blocks */
};

/* The row of a layout in layouts.h; NULL if unknown. */
const struct tn_layout_spec *tn_layout_find(uint32_t layout);
const char *tn_layout_name(uint32_t layout); /* the name in files: "q8p"; NULL if unknown */
/* Whether the layout stores -1, 0, +1 and scales. */
bool tn_layout_is_ternary(uint32_t layout);

/* Bytes of [rows][cols] in `layout`, without scales; false if the layout is unknown, does not take
 * this number of columns, or the size overflows. */
bool tn_layout_bytes(uint32_t layout, uint32_t rows, uint32_t cols, uint64_t *out);
/* The same for a known layout, with rows and cols at most TERN_MAX_VOCAB. */
uint64_t tn_layout_size(uint32_t layout, uint32_t rows, uint32_t cols);
/* Bytes of n_weights weights in a known layout, without padding and scales. */
uint64_t tn_layout_weight_bytes(uint32_t layout, uint64_t n_weights);

/* f32 per row in the scales of a layout (kind ROW): 1 for q8; 5, 4, 2 for q8, q6, q4 in planes
 * (scale and norms); else 0. */
uint32_t tn_layout_scales(uint32_t layout);
/* Bytes of these scales; in planes with the offsets and shifts that follow them. */
uint64_t tn_layout_scale_bytes(uint32_t layout, uint32_t rows, uint32_t cols);
/* Planes of a layout: 4, 3, 1 for q8, q6, q4 in planes; else 0. */
uint32_t tn_layout_planes(uint32_t layout);

/* ---- of tensors, from layout, scale kind, group, rows, cols and stack ---- */

/* Alignment of a matrix of n_bytes, single or in a stack. */
uint32_t tn_tensor_align(uint64_t n_bytes);
/* Bytes at offset; false as for tn_layout_bytes. */
bool tn_tensor_bytes(const struct tern_file_tensor *tensor, uint64_t *out);
/* Bytes at scale_offset; 0: the tensor has no scales there. */
uint64_t tn_tensor_scale_bytes(const struct tern_file_tensor *tensor);
uint64_t tn_tensor_weights(const struct tern_file_tensor *tensor);
/* Matrix i of a stack, or the tensor itself: its record with the offsets of its bytes and scales,
 * and n_stacked 0. */
struct tern_file_tensor tn_tensor_slice(const struct tern_file_tensor *tensor, uint32_t i);
static inline bool tn_is_col_group(uint32_t scale_kind)
{
    return scale_kind == TERN_SCALE_COL_GROUP || scale_kind == TERN_SCALE_COL_GROUP_F16;
}

#endif
