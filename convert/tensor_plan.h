/* SPDX-License-Identifier: MIT
 *
 * What the conversion will do: the matrices and vectors of the .tern file in their order, and for
 * each the tensors of the source that it is made of.  A stack has a row for each of its matrices.
 * Everything that can be known from headers is checked here, before anything is written.
 *
 *   tn_tensor_plan_make    slots -> rows, from names, types and shapes
 *   tn_survey              (survey.h) reads what only the data can tell: scales
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

/* How the scales of a ternary matrix lie. */
struct tn_scale_facts {
    bool is_one;    /* a single one for the whole matrix, `value` */
    float value;
    uint32_t group; /* else: columns that share one; the whole row from the number of columns on */
    bool are_f16;   /* all of them are f16 numbers */
};

struct tn_tensor_plan_row {
    enum tn_tensor_kind kind;
    struct tern_file_tensor file; /* role, layer, layout, scale_kind, rows, cols, n_stacked */
    uint32_t i_tensor; /* in the file; the rows of a stack follow each other and share it */
    uint32_t i_matrix; /* of the stack */
    struct tn_source_tensor *weight; /* NULL: FACTORS */
    struct tn_source_tensor *scale;  /* of PACKED, ROUNDED; a factor of EXACT, CODED, or NULL */
    bool scale_divides;
    bool adds_one;           /* VECTOR: 1 + w is stored */
    bool is_log;             /* VECTOR: -exp(w) is stored */
    bool may_be_ternary;     /* TABLE: to be found out */
    bool is_transposed;      /* FLOATS: rows are columns of the source */
    bool is_zero;            /* EXACT: no weight is anything else; after the survey */
    uint32_t narrow_layout;  /* TABLE, FLOATS in F32: a narrower one that keeps every value; or 0 */
    struct tn_row_order order; /* rows of the tensor among those of weight */
    struct tn_scale_facts scales; /* of ternary kinds, after the survey */
};

struct tn_tensor_plan {
    struct tn_tensor_plan_row *tensors; /* sorted by layer and role, as the file wants them */
    uint32_t n_tensors;
    const float *factors; /* of FACTORS rows; belongs to the import */
    bool is_packed;
    bool is_tied;
    uint64_t n_params;
    uint64_t n_ternary;
    bool says_ternary; /* something beside the weights does */
    uint32_t n_ignored; /* *.rotary_emb.inv_freq */
    uint32_t n_skipped; /* that are not the text model's; `skipped` begins the name of the first */
    const char *skipped;
    uint32_t n_drafts; /* of a draft head */
    /* A head beside embeddings that it is tied to: left out if it holds their numbers, which the
     * survey finds out.  NULL: there is none. */
    struct tn_source_tensor *twin;
    const struct tn_source_tensor *idle_head; /* of an embedding model, left out; NULL: none */
};

/* The row of the embeddings, which every plan has. */
const struct tn_tensor_plan_row *tn_tensor_plan_embed(const struct tn_tensor_plan *plan);
bool tn_tensor_is_ternary(const struct tn_tensor_plan_row *tensor);
/* A projection in floats, whose values are kept: after the survey. */
bool tn_tensor_is_dense(const struct tn_tensor_plan_row *tensor);
/* Is any tensor ternary? */
bool tn_tensor_plan_has_ternary(const struct tn_tensor_plan *plan);

/* TERN_INPUT names a tensor that is missing, of the wrong shape or type, or that nothing needs;
 * TERN_UNSUPPORTED one of a type that tern does not read there. */
tern_status tn_tensor_plan_make(struct tn_tensor_plan *out, const struct tn_config_import *import,
                                struct tn_source *source, struct tern_error *err);
/* The first ternary tensor that has several scales; NULL: each has one.  After the survey. */
const struct tn_tensor_plan_row *
tn_tensor_plan_many_scales(const struct tn_tensor_plan *plan);
/* Sets config.inputs (by params->activations, the family, or the scales) and all layouts. */
tern_status tn_tensor_plan_settle(struct tn_tensor_plan *plan, struct tn_config_import *import,
                                  const struct tern_convert_params *params,
                                  struct tern_error *err);
void tn_tensor_plan_fini(struct tn_tensor_plan *plan);

#endif
