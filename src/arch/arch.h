/* SPDX-License-Identifier: MIT
 *
 * The components of a model, as data: the slots of its tensors (slots.h) and the parts of the
 * configuration that decide about them.  Pure: no memory, no failure.  The file checker, the
 * converter and the engine ask here, so that none of them has rules for a single family.
 */
#ifndef TN_ARCH_H
#define TN_ARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/layout_spec.h"
#include "tern/model_format.h"

/* A model without its weights.  Does not own what the pointers refer to. */
struct tn_model_spec {
    const struct tern_file_config *config;
    const struct tern_file_layer *layers; /* [tn_n_all_layers(config)] */
    const uint32_t *stop_ids;             /* [n_stop_ids] */
    uint32_t n_stop_ids;
    const struct tern_file_rotation *rotations; /* [n_rotations] */
    uint32_t n_rotations;
};

/* The rotation of inputs of n_cols columns; NULL: none. */
const struct tern_file_rotation *tn_rotation_find(const struct tn_model_spec *spec, uint32_t cols);

/* Which layers have a slot; arch.c maps scopes to mixers and feed-forwards. */
enum tn_slot_scope {
    TN_SCOPE_MODEL, /* not in a layer: one for the model */
    TN_SCOPE_LAYER, /* all layers */
    TN_SCOPE_ATTN,
    TN_SCOPE_DELTA,
    TN_SCOPE_GATED,
    TN_SCOPE_DENSE,
    TN_SCOPE_EXPERTS,
    TN_SCOPE_DRAFT,
};

enum tn_slot_kind {
    TN_SLOT_TABLE,
    TN_SLOT_MATRIX,
    TN_SLOT_ROW_LIST, /* a matrix whose rows may be skipped */
    TN_SLOT_COL_LIST, /* a matrix whose columns may be skipped */
    TN_SLOT_STACK,    /* one matrix per expert, in one tensor */
    TN_SLOT_FLOATS,   /* a matrix of floats */
    TN_SLOT_NORM,
    TN_SLOT_BIAS,
    TN_SLOT_FACTORS,
};

enum tn_slot_need {
    TN_NEED_REQUIRED,
    TN_NEED_HEAD,      /* unless the head is tied or the model has none */
    TN_NEED_WITH_HEAD, /* optional if the model has a separate head */
    TN_NEED_SHARED,    /* if the model has a shared expert */
    TN_NEED_NORM,      /* if the order of norms in the layers includes it */
    TN_NEED_NORM_BIAS, /* optional, if its norm is a LayerNorm */
    TN_NEED_WIDTH,     /* if the width of the embedding differs from that of the model */
    TN_NEED_OPTIONAL,  /* either all layers of its scope or none */
    TN_NEED_ANY,       /* optional in each layer */
};

enum tn_dim {
    TN_DIM_ONE,
    TN_DIM_VOCAB,
    TN_DIM_HIDDEN,
    TN_DIM_PAIR,     /* 2 * hidden */
    TN_DIM_EMBED,    /* columns of the embedding */
    TN_DIM_CONTEXT,
    TN_DIM_FFN,
    TN_DIM_HEADS,    /* n_head * head_dim */
    TN_DIM_KV,       /* n_kv_head * head_dim */
    TN_DIM_HEAD_DIM,
    TN_DIM_ROPE,     /* rope_dims / 2 of the layer */
    TN_DIM_EXPERTS,
    TN_DIM_EXPERT_FFN,
    TN_DIM_SHARED_FFN,
    TN_DIM_N_HEAD,
    TN_DIM_VALUE_DIM,
    TN_DIM_VALUES,   /* n_head * value_dim */
    TN_DIM_CHANNELS, /* of the convolution: q, k and v of a gated delta rule */
    TN_DIM_TAPS,     /* channels * conv_taps */
};

struct tn_slot {
    enum tern_role role;
    enum tn_slot_scope scope;
    enum tn_slot_kind kind;
    enum tn_dim rows, cols;
    enum tn_slot_need need;
    const char *hf;   /* names in sources; see slots.h */
    const char *gguf;
};

/* The layers of the model, and that of its draft head, if it has one. */
static inline uint32_t tn_n_all_layers(const struct tern_file_config *config)
{
    return config->n_layer + config->n_draft_layer;
}

/* Sizes of one layer: those it states, else the model's. */
struct tn_layer_dims {
    uint32_t n_head, n_kv_head, head_dim, ffn;
    uint32_t value_dim, channels, conv_taps; /* TERN_MIXER_GATED_DELTA, else 0 */
};
struct tn_layer_dims tn_layer_dims(const struct tern_file_config *config,
                                   const struct tern_file_layer *layer);

/* Roles are 1 ... TN_ROLE_END - 1; 0 is none. */
#define TN_ROLE_PLUS_ONE(name, number, text) +1
enum { TN_ROLE_END = 1 TERN_ROLE_LIST(TN_ROLE_PLUS_ONE) };
#undef TN_ROLE_PLUS_ONE

/* All slots, in the order of roles. */
extern const struct tn_slot tn_slots[];
extern const uint32_t tn_n_slots;

/* NULL for a number without a role. */
const struct tn_slot *tn_slot_of(uint32_t role);
bool tn_slot_is_vector(const struct tn_slot *slot);
/* Matrices stacked in a tensor of the slot; 0: it is a single matrix or vector. */
uint32_t tn_slot_n_stacked(const struct tn_slot *slot, const struct tern_file_config *config);
/* Whether a model of this configuration may have, and must have, the tensor. */
bool tn_slot_is_allowed(const struct tn_slot *slot, const struct tern_file_config *config);
bool tn_slot_is_required(const struct tn_slot *slot, const struct tern_file_config *config);
/* Whether this layer may have the tensor; false for tensors of the model. */
bool tn_slot_is_in(const struct tn_slot *slot, const struct tern_file_layer *layer);
/* Rows and columns of the tensor; layer: a layer number, ignored for TN_SCOPE_MODEL. */
void tn_slot_shape(uint32_t *rows, uint32_t *cols, const struct tn_slot *slot,
                   const struct tn_model_spec *spec, uint32_t layer);

/* Names in messages and in the output of commands; NULL if unknown. */
const char *tn_role_name(uint32_t role);
const char *tn_activation_name(uint32_t activation);
const char *tn_norm_name(uint32_t norm);
const char *tn_order_name(uint32_t order);
const char *tn_pooling_name(uint32_t pooling);

/* Whether a file may store a tensor of this slot in the layout. */
bool tn_slot_takes_layout(const struct tn_slot *slot, uint32_t layout);
/* The layout for a ternary matrix in this slot: rows of up and columns of down that squared ReLU
 * makes zero are skipped where inputs are int8. */
uint32_t tn_slot_ternary_layout(const struct tn_slot *slot, uint32_t inputs, uint32_t activation);

/* A layer with attention, a gated feed-forward, rope over whole heads, score scale 1 /
 * sqrt(head_dim) and no window: the defaults of every field except sizes. */
struct tern_file_layer tn_layer_default(uint32_t head_dim, uint32_t activation, double rope_theta);
/* Fills in the defaults: int8 inputs, all scales 1, no pooling, no BOS. */
void tn_config_default(struct tern_file_config *out);

/* True for matrices of layers except experts, for the head, and for embeddings that are not also
 * the head. */
bool tn_slot_may_be_rotated(const struct tn_slot *slot, const struct tern_file_config *config);

#endif
