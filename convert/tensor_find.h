/* SPDX-License-Identifier: MIT
 *
 * Finds the tensor of a slot among those of a source: by the names of slots.h and of the family, as
 * a separate tensor, as a section of a fused tensor, or as one of stacked experts.
 */
#ifndef TN_TENSOR_FIND_H
#define TN_TENSOR_FIND_H

#include "convert/config_import.h"
#include "convert/row_order.h"
#include "convert/source.h"

#define TN_TENSOR_NAME_BYTES 160u

struct tn_match {
    const struct tn_slot *slot;
    uint32_t layer;      /* or TERN_NO_LAYER */
    bool is_draft;       /* the layer is that of a draft head */
    uint32_t expert;     /* 0 if the slot has none */
    uint32_t rows, cols; /* of the slot */
    struct tn_source_tensor *weight; /* NULL: the source has none */
    uint32_t source_rows;            /* rows that weight must have (a vector: values) */
    uint32_t n_stacked;              /* weight is a stack of matrices of source_rows; or 0 */
    struct tn_row_order order;
    /* Its usual name; "" if this kind of source has no name for the slot. */
    char name[TN_TENSOR_NAME_BYTES];
};

void tn_tensor_find(struct tn_match *out, const struct tn_config_import *import,
                    const struct tn_source *source, const struct tn_slot *slot, uint32_t layer,
                    uint32_t expert);

#endif
