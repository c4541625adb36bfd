/* SPDX-License-Identifier: MIT
 *
 * The plan of a conversion: the matrices and vectors of the .tern file in their order, with the
 * tensors of the source for each.  A stack has one row for each of its matrices.  Everything that
 * headers determine is checked here, before anything is written.
 *
 *   tn_tensor_plan_make    slots to rows, from names, types and shapes
 *   tn_survey              (survey.h) reads scales and other facts from the data
 *   tn_tensor_plan_settle  layouts and kinds of scales
 */
#ifndef TN_TENSOR_PLAN_H
#define TN_TENSOR_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "convert/config_import.h"
#include "convert/source.h"
#include "convert/tensor_find.h"
#include "tern/convert.h"
#include "tern/model_format.h"

enum tn_tensor_kind {
    TN_TENSOR_VECTOR,  /* stored in f32 */
    TN_TENSOR_FACTORS, /* a vector of the configuration, stored in f32 */
    TN_TENSOR_LATENT,  /* a matrix of floats, ternary by absmean */
    TN_TENSOR_PACKED,  /* four row blocks of 2-bit codes in U8, and a scale */
    TN_TENSOR_ROUNDED, /* a matrix of floats near -1, 0 and +1, and a scale for each row */
    TN_TENSOR_EXACT,   /* a matrix of floats that are exactly scale * trit */
    TN_TENSOR_CODED,   /* a matrix of a ternary type of GGUF */
    TN_TENSOR_TABLE,   /* embedding or head, of floats */
    TN_TENSOR_BLOCKS,  /* a matrix in a block type of GGUF whose values are kept */
    TN_TENSOR_FLOATS,  /* a matrix of floats whose values are kept */
};

/* The tiling of a ternary matrix's scales. */
struct tn_scale_facts {
    bool is_one;    /* one scale for the whole matrix, `value` */
    float value;
    uint32_t group; /* else: columns that share one; at least the number of columns for whole
                     * rows */
    bool are_f16;   /* all are exact in f16 */
};

struct tn_tensor_plan_row {
    enum tn_tensor_kind kind;
    struct tern_file_tensor file; /* role, layer, layout, scale_kind, rows, cols, n_stacked */
    uint32_t i_tensor; /* in the file; the rows of a stack are consecutive and share it */
    uint32_t i_matrix; /* in the stack */
    struct tn_source_tensor *weight; /* NULL: FACTORS */
    struct tn_source_tensor *scale;  /* for PACKED, ROUNDED; a factor of EXACT, CODED, or NULL */
    bool scale_divides;
    bool adds_one;           /* VECTOR: 1 + w is stored */
    bool is_log;             /* VECTOR: -exp(w) is stored */
    bool may_be_ternary;     /* TABLE: the survey decides */
    bool is_transposed;      /* FLOATS: rows are columns of the source */
    bool is_zero;            /* EXACT: all weights are 0; set by the survey */
    uint32_t narrow_layout;  /* TABLE, FLOATS in F32: a narrower layout that preserves every value;
                              * or 0 */
    struct tn_row_order order; /* maps rows of the tensor to those of weight */
    struct tn_scale_facts scales; /* of ternary kinds, set by the survey */
};

struct tn_tensor_plan {
    struct tn_tensor_plan_row *tensors; /* sorted by layer and role, as in the file */
    uint32_t n_tensors;
    const float *factors; /* for FACTORS rows; owned by the import */
    bool is_packed;
    uint64_t n_params;
    uint64_t n_ternary;
    bool says_ternary; /* the source says so, apart from its weights */
    uint32_t n_buffers; /* tables that tern computes; `buffer` is the ending of the first */
    const char *buffer;
    uint32_t n_skipped; /* tensors outside the text model; `skipped` is the prefix of the first */
    const char *skipped;
    uint32_t n_drafts; /* of a draft head that is left out */
    /* A separate head although config.json ties it to the embeddings: skipped if their numbers are
     * equal, which the survey checks.  NULL: there is none. */
    struct tn_source_tensor *twin;
    const struct tn_source_tensor *idle_head; /* of an embedding model, skipped; NULL: none */
};

/* The row of the embeddings, which every plan has. */
const struct tn_tensor_plan_row *tn_tensor_plan_embed(const struct tn_tensor_plan *plan);
bool tn_tensor_is_ternary(const struct tn_tensor_plan_row *tensor);
/* Whether it is a projection in floats whose values are kept; valid after the survey. */
bool tn_tensor_is_dense(const struct tn_tensor_plan_row *tensor);
/* Whether any tensor is ternary. */
bool tn_tensor_plan_has_ternary(const struct tn_tensor_plan *plan);

/* TERN_INPUT names a tensor that is missing, has the wrong shape or type, or is not needed;
 * TERN_UNSUPPORTED one of an unsupported type. */
tern_status tn_tensor_plan_make(struct tn_tensor_plan *out, const struct tn_config_import *import,
                                struct tn_source *source, struct tern_error *err);
/* The first ternary tensor with several scales; NULL: each has one.  Valid after the survey. */
const struct tn_tensor_plan_row *
tn_tensor_plan_many_scales(const struct tn_tensor_plan *plan);
/* Sets config.inputs (by params->activations, the family, or the scales) and all layouts. */
tern_status tn_tensor_plan_settle(struct tn_tensor_plan *plan, struct tn_config_import *import,
                                  const struct tern_convert_params *params,
                                  struct tern_error *err);
void tn_tensor_plan_fini(struct tn_tensor_plan *plan);

#endif
