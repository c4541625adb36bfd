/* SPDX-License-Identifier: MIT
 *
 * What the conversion will do: the tensors of the .tern file in their order,
 * and for each the tensors of the source that it is made of.  Everything that
 * can be known from headers is checked here, before anything is written.
 */
#ifndef TN_TENSOR_PLAN_H
#define TN_TENSOR_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "config_import.h"
#include "source.h"
#include "tern/convert.h"
#include "tern/model_format.h"

enum tn_tensor_kind {
    TN_TENSOR_NORM,   /* a vector, stored in f32 */
    TN_TENSOR_LATENT, /* a matrix of floats, ternary by absmean */
    TN_TENSOR_PACKED, /* four row blocks of 2-bit codes in U8, and a scale that multiplies */
    TN_TENSOR_TABLE,  /* embedding or head */
};

struct tn_tensor_plan_row {
    enum tn_tensor_kind kind;
    struct tern_file_tensor file; /* role, layer, layout, scale_kind, rows, cols */
    struct tn_source_tensor *weight;
    struct tn_source_tensor *scale; /* of packed weights, else NULL */
};

struct tn_tensor_plan {
    struct tn_tensor_plan_row *tensors; /* sorted by layer and role, as the file wants them */
    uint32_t n_tensors;
    bool is_packed;
    bool is_tied;
    uint64_t n_params;
    uint64_t n_ternary;
    uint32_t n_ignored; /* *.rotary_emb.inv_freq */
};

/* TERN_INPUT names a tensor that is missing, of the wrong shape or type, or that nothing needs. */
tern_status tn_tensor_plan_make(struct tn_tensor_plan *out, const struct tn_config_import *import,
                                struct tn_source *source, enum tern_head_type head,
                                struct tern_error *err);
void tn_tensor_plan_fini(struct tn_tensor_plan *plan);

#endif
