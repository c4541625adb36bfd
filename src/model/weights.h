/* SPDX-License-Identifier: MIT
 *
 * The model's weights as typed views into the mapped file.  Only rope factors
 * are copied: angles divide by them, so they must be what was checked.  A
 * struct tn_weights lives as long as the file is open.  Read-only.
 */
#ifndef TN_WEIGHTS_H
#define TN_WEIGHTS_H

#include "file/model_file.h"
#include "model/format.h"

/* Indices of the matrices of a layer, in the order of the slots.  A slot of these kinds expands to
 * what the place of expansion defines as TN_PLACE. */
#define TN_PLACE_MATRIX(role) TN_PLACE(role)
#define TN_PLACE_ROW_LIST(role) TN_PLACE(role)
#define TN_PLACE_COL_LIST(role) TN_PLACE(role)
#define TN_PLACE_STACK(role) TN_PLACE(role)
#define TN_PLACE_FLOATS(role) TN_PLACE(role)
#define TN_PLACE_TABLE(role)
#define TN_PLACE_NORM(role)
#define TN_PLACE_BIAS(role)
#define TN_PLACE_FACTORS(role)
enum tn_matrix_place {
#define TN_PLACE(role) TN_MATRIX_##role,
#define SLOT(role, scope, kind, ...) TN_PLACE_##kind(role)
#include "arch/slots.h"
#undef SLOT
#undef TN_PLACE
    TN_N_MATRICES
};

extern const uint8_t tn_matrix_places[TN_ROLE_END]; /* by role; undefined for other slots */

/* Positions that a draft head attends to. */
#define TN_DRAFT_WINDOW 256u

struct tn_ffn;
struct tn_mixer;

/* A norm of the kind that the configuration names. */
struct tn_norm {
    const float *weights, *bias; /* NULL: no norm, no bias */
};

struct tn_layer {
    const struct tern_file_layer *spec;
    struct tn_layer_dims dims;
    const struct tn_mixer *mixer; /* model/mixer.h */
    const struct tn_ffn *ffn;     /* model/ffn.h */
    const float *vectors[TN_ROLE_END]; /* by role, of the length in slots.h; NULL: none */
    struct tn_matrix matrices[TN_N_MATRICES]; /* by index; for stacks matrix 0; format NULL: none */
    uint32_t i_rope; /* layers with the same angles have the same number */
    /* The layer's range in the file, for read-ahead and for releasing pages. */
    uint64_t begin, end;
};

static inline const struct tn_matrix *tn_matrix_of(const struct tn_layer *layer,
                                                   enum tern_role role)
{
    return &layer->matrices[tn_matrix_places[role]];
}

/* The maximum columns of an input in each format, 0: no product takes it. */
struct tn_input_widths {
    uint32_t of[TN_N_ACTS];
};

/* Sets out to the matrix of expert i in a stack. */
void tn_matrix_slice(struct tn_matrix *out, const struct tn_matrix *stack, uint32_t i);

struct tn_weights {
    const struct tern_file_config *config;
    struct tn_matrix embed;          /* [vocab][hidden] */
    struct tn_matrix head;           /* the same as embed when tied; format NULL: none */
    struct tn_norm final_norm;       /* [hidden] */
    const float *head_in_norm;       /* [columns of head], or NULL */
    const float *head_bias;          /* [vocab], or NULL */
    struct tn_matrix embed_in;       /* format NULL: none; also the next two */
    struct tn_matrix embed_out;
    struct tn_matrix positions;      /* [context][hidden] */
    struct tn_layer *layers;         /* [tn_n_all_layers(config)], heap */
    const struct tn_layer **ropes;   /* [n_ropes] the first layer of each number, heap */
    uint32_t n_ropes;
    float *rope_factors; /* of all layers that have them, heap */
    struct tn_rotation *rotations; /* heap, as their signs; NULL: none */
    float *rotation_signs;
    struct tern_file_layer draft_spec; /* of the draft head's layer, with TN_DRAFT_WINDOW */
    uint32_t mixers, ffns; /* bit k: some layer has number k */
    uint32_t rope_half;    /* the maximum of the layers' rotated pairs */
    /* The memory that the formats of the matrices need. */
    struct tn_input_widths widths[TN_N_INPUTS_AS];
    struct tn_input_widths expert_widths[TN_N_INPUTS_AS]; /* of gate and up of experts only */
    struct tn_input_widths down_widths[TN_N_INPUTS_AS];   /* of down of experts, not in widths */
    struct tn_input_widths shared_widths[TN_N_INPUTS_AS]; /* the same for the shared expert */
    size_t lut_bytes, row_bytes; /* per thread: format.h */
    size_t col_sum_rows;         /* padded rows of matrices whose columns can be skipped */
    size_t n_listed;             /* capacity of lists of active rows or columns */
};

/* The layer of the draft head; NULL: the model has none. */
static inline const struct tn_layer *tn_draft_layer(const struct tn_weights *weights)
{
    const struct tern_file_config *c = weights->config;
    return c->n_draft_layer ? &weights->layers[c->n_layer] : NULL;
}

/* Whether the best rows of the head can be searched (head.h): a search compares products without
 * their bias, and a cap may make two logits equal, where the lower number wins. */
static inline bool tn_head_is_searchable(const struct tn_weights *weights)
{
    return weights->head.format && weights->head.format->is_searchable &&
           weights->config->logit_cap == 0 && !weights->head_bias;
}

/* Binds slots to views. `file` was opened by tn_model_file_open, which checked presence and shapes.
 * TERN_UNSUPPORTED: the file is valid, but no format supports one of its matrices. */
tern_status tn_weights_bind(struct tn_weights *out, const struct tn_model_file *file,
                            struct tern_error *err);
void tn_weights_fini(struct tn_weights *weights);

#endif
