/* SPDX-License-Identifier: MIT
 *
 * The table of slots (slots.h) and its rules: which models and layers have a slot, its shape, its
 * names and the layouts it takes.  The file checker, the converter and the engine call it.
 */
#include "arch/arch.h"

#include <assert.h>

#include "base/compiler.h"

const struct tn_slot tn_slots[] = {
#define SLOT(role, scope, kind, rows, cols, need, hf, gguf)                                        \
    {TERN_ROLE_##role,  TN_SCOPE_##scope, TN_SLOT_##kind, TN_DIM_##rows,                           \
     TN_DIM_##cols,     TN_NEED_##need,   hf,             gguf},
#include "arch/slots.h"
#undef SLOT
};

const uint32_t tn_n_slots = TN_COUNT_OF(tn_slots);

/* Every role has a slot, and slots are in the order of role numbers. */
enum {
#define SLOT(role, scope, kind, rows, cols, need, hf, gguf) PLACE_##role,
#include "arch/slots.h"
#undef SLOT
};
#define IN_PLACE(name, number, text)                                                               \
    static_assert((int)PLACE_##name + 1 == number, "role " text " has its slot in its place");
TERN_ROLE_LIST(IN_PLACE)
#undef IN_PLACE

const struct tn_slot *tn_slot_of(uint32_t role)
{
    return role >= 1 && role <= tn_n_slots ? &tn_slots[role - 1] : NULL;
}

bool tn_slot_is_vector(const struct tn_slot *slot)
{
    return slot->kind == TN_SLOT_NORM || slot->kind == TN_SLOT_BIAS ||
           slot->kind == TN_SLOT_FACTORS;
}

uint32_t tn_slot_n_stacked(const struct tn_slot *slot, const struct tern_file_config *config)
{
    return slot->kind == TN_SLOT_STACK ? config->n_experts : 0;
}

/* Whether a model of this order has the norm that the role (a norm or its bias) belongs to. */
static bool has_norm(uint32_t role, uint32_t order)
{
    switch (role) {
    case TERN_ROLE_FINAL_NORM:
    case TERN_ROLE_FINAL_NORM_BIAS:
        return order != TERN_ORDER_AFTER;
    case TERN_ROLE_FFN_NORM:
    case TERN_ROLE_FFN_NORM_BIAS:
        return order != TERN_ORDER_BARE && order != TERN_ORDER_SHARED;
    default:
        return order != TERN_ORDER_BARE;
    }
}

bool tn_slot_is_allowed(const struct tn_slot *slot, const struct tern_file_config *config)
{
    switch (slot->need) {
    case TN_NEED_HEAD:
    case TN_NEED_WITH_HEAD:
        return !(config->flags & (TERN_MODEL_TIED_HEAD | TERN_MODEL_NO_HEAD));
    case TN_NEED_NORM:
        return has_norm(slot->role, config->order);
    case TN_NEED_NORM_BIAS:
        return has_norm(slot->role, config->order) && config->norm == TERN_NORM_LAYER;
    case TN_NEED_WIDTH:
        return config->embed_width != 0;
    case TN_NEED_SHARED:
        return config->shared_ffn > 0;
    default:
        return true;
    }
}

bool tn_slot_is_required(const struct tn_slot *slot, const struct tern_file_config *config)
{
    switch (slot->need) {
    case TN_NEED_REQUIRED:
        return true;
    case TN_NEED_HEAD:
    case TN_NEED_NORM:
    case TN_NEED_WIDTH:
    case TN_NEED_SHARED:
        return tn_slot_is_allowed(slot, config);
    default:
        return false;
    }
}

/* The mixers and feed-forwards whose layers have the slots of a scope: bit k for number k; 0:
 * any. */
static const struct {
    uint32_t mixers, ffns;
} scopes[] = {
    [TN_SCOPE_LAYER] = {0, 0},
    [TN_SCOPE_ATTN] = {.mixers = 1u << TERN_MIXER_ATTENTION},
    [TN_SCOPE_DELTA] = {.mixers = 1u << TERN_MIXER_GATED_DELTA},
    [TN_SCOPE_GATED] = {.ffns = 1u << TERN_FFN_GATED},
    [TN_SCOPE_DENSE] = {.ffns = 1u << TERN_FFN_GATED | 1u << TERN_FFN_PLAIN},
    [TN_SCOPE_EXPERTS] = {.ffns = 1u << TERN_FFN_EXPERTS},
    [TN_SCOPE_DRAFT] = {0, 0},
};

bool tn_slot_is_in(const struct tn_slot *slot, const struct tern_file_layer *layer)
{
    const uint32_t mixers = scopes[slot->scope].mixers, ffns = scopes[slot->scope].ffns;
    if (slot->scope == TN_SCOPE_DRAFT)
        return layer->is_draft;
    return slot->scope != TN_SCOPE_MODEL && (!mixers || mixers >> layer->mixer & 1) &&
           (!ffns || ffns >> layer->ffn & 1);
}

/* ---- sizes ---- */

struct tn_layer_dims tn_layer_dims(const struct tern_file_config *config,
                                   const struct tern_file_layer *layer)
{
    struct tn_layer_dims d = {
        .n_head = layer->n_head ? layer->n_head : config->n_head,
        .n_kv_head = layer->n_kv_head ? layer->n_kv_head : config->n_kv_head,
        .head_dim = layer->head_dim ? layer->head_dim : config->head_dim,
        .ffn = layer->ffn_dim ? layer->ffn_dim : config->ffn,
        .value_dim = layer->value_dim,
        .conv_taps = layer->conv_taps,
    };
    d.channels = d.value_dim ? 2 * d.n_kv_head * d.head_dim + d.n_head * d.value_dim : 0;
    return d;
}

static uint32_t dim_of_layer(enum tn_dim dim, const struct tn_model_spec *spec, uint32_t layer)
{
    const struct tn_layer_dims dims = tn_layer_dims(spec->config, &spec->layers[layer]);
    switch (dim) {
    case TN_DIM_FFN:
        return dims.ffn;
    case TN_DIM_HEADS:
        return dims.n_head * dims.head_dim;
    case TN_DIM_KV:
        return dims.n_kv_head * dims.head_dim;
    case TN_DIM_HEAD_DIM:
        return dims.head_dim;
    case TN_DIM_N_HEAD:
        return dims.n_head;
    case TN_DIM_VALUE_DIM:
        return dims.value_dim;
    case TN_DIM_VALUES:
        return dims.n_head * dims.value_dim;
    case TN_DIM_CHANNELS:
        return dims.channels;
    case TN_DIM_TAPS:
        return dims.channels * dims.conv_taps;
    default:
        assert(dim == TN_DIM_ROPE);
        return spec->layers[layer].rope_dims / 2;
    }
}

/* Columns of the embedding and of the head. */
static uint32_t embed_width(const struct tern_file_config *config)
{
    return config->embed_width ? config->embed_width : config->hidden;
}

static uint32_t dim_of(enum tn_dim dim, const struct tn_model_spec *spec, uint32_t layer)
{
    switch (dim) {
    case TN_DIM_ONE:
        return 1;
    case TN_DIM_VOCAB:
        return spec->config->vocab;
    case TN_DIM_HIDDEN:
        return spec->config->hidden;
    case TN_DIM_PAIR:
        return 2 * spec->config->hidden;
    case TN_DIM_EMBED:
        return embed_width(spec->config);
    case TN_DIM_CONTEXT:
        return spec->config->context;
    case TN_DIM_EXPERTS:
        return spec->config->n_experts;
    case TN_DIM_EXPERT_FFN:
        return spec->config->expert_ffn;
    case TN_DIM_SHARED_FFN:
        return spec->config->shared_ffn;
    default:
        return dim_of_layer(dim, spec, layer);
    }
}

void tn_slot_shape(uint32_t *rows, uint32_t *cols, const struct tn_slot *slot,
                   const struct tn_model_spec *spec, uint32_t layer)
{
    *rows = dim_of(slot->rows, spec, layer);
    *cols = dim_of(slot->cols, spec, layer);
}

/* ---- names ---- */

const char *tn_role_name(uint32_t role)
{
#define ROLE_NAME(name, number, text) [number] = text,
    static const char *const names[TN_ROLE_END] = {TERN_ROLE_LIST(ROLE_NAME)};
#undef ROLE_NAME
    return role < TN_ROLE_END ? names[role] : NULL;
}

const char *tn_activation_name(uint32_t activation)
{
    static const char *const names[] = {
        [TERN_ACT_RELU2] = "relu2", [TERN_ACT_SILU] = "silu", [TERN_ACT_GELU_TANH] = "gelu",
        [TERN_ACT_RELU] = "relu",   [TERN_ACT_GELU_ERF] = "gelu-erf"};
    return activation < TN_COUNT_OF(names) ? names[activation] : NULL;
}

const char *tn_norm_name(uint32_t norm)
{
    static const char *const names[TERN_NORM_END] = {[TERN_NORM_RMS] = "rms",
                                                     [TERN_NORM_LAYER] = "layer"};
    return norm < TN_COUNT_OF(names) ? names[norm] : NULL;
}

const char *tn_order_name(uint32_t order)
{
    static const char *const names[TERN_ORDER_END] = {
        [TERN_ORDER_BEFORE] = "before", [TERN_ORDER_BARE] = "bare",
        [TERN_ORDER_AFTER] = "after",   [TERN_ORDER_PARALLEL] = "parallel",
        [TERN_ORDER_SHARED] = "shared"};
    return order < TN_COUNT_OF(names) ? names[order] : NULL;
}

const char *tn_pooling_name(uint32_t pooling)
{
    static const char *const names[] = {[TERN_POOLING_NONE] = "none",
                                        [TERN_POOLING_MEAN] = "mean",
                                        [TERN_POOLING_CLS] = "cls",
                                        [TERN_POOLING_LAST] = "last"};
    return pooling < TN_COUNT_OF(names) ? names[pooling] : NULL;
}

/* ---- layouts ---- */

bool tn_slot_takes_layout(const struct tn_slot *slot, uint32_t layout)
{
    const struct tn_layout_spec *spec = tn_layout_find(layout);
    if (!spec || tn_slot_is_vector(slot))
        return layout == TERN_LAYOUT_F32;
    if (slot->kind == TN_SLOT_FLOATS)
        return layout == TERN_LAYOUT_F32 || layout == TERN_LAYOUT_F16 ||
               layout == TERN_LAYOUT_BF16;
    return spec->use == TN_USE_ANY ||
           (spec->use == TN_USE_ROW_LIST && slot->kind == TN_SLOT_ROW_LIST) ||
           (spec->use == TN_USE_COL_LIST && slot->kind == TN_SLOT_COL_LIST);
}

uint32_t tn_slot_ternary_layout(const struct tn_slot *slot, uint32_t inputs, uint32_t activation)
{
    const bool skips = inputs == TERN_INPUTS_I8_TOKEN && activation == TERN_ACT_RELU2;
    return skips && slot->kind == TN_SLOT_ROW_LIST   ? TERN_LAYOUT_R2
           : skips && slot->kind == TN_SLOT_COL_LIST ? TERN_LAYOUT_C2
                                                     : TERN_LAYOUT_T2;
}

/* ---- defaults ---- */

struct tern_file_layer tn_layer_default(uint32_t head_dim, uint32_t activation, double rope_theta)
{
    return (struct tern_file_layer){
        .mixer = TERN_MIXER_ATTENTION,
        .ffn = TERN_FFN_GATED,
        .activation = activation,
        .rope = TERN_ROPE_HALF,
        .rope_dims = head_dim,
        /* Square root and division are IEEE, so every machine computes the same scale. */
        .score_scale = 1.0f / __builtin_sqrtf((float)head_dim),
        .rope_theta = rope_theta,
    };
}

void tn_config_default(struct tern_file_config *out)
{
    *out = (struct tern_file_config){
        .inputs = TERN_INPUTS_I8_TOKEN,
        .bos_id = TERN_NO_ID,
        .rms_eps = 1e-5f,
        .in_norm_eps = 1e-6f,
        .embedding_scale = 1.0f,
        .residual_scale = 1.0f,
        .logit_scale = 1.0f,
    };
}

const struct tern_file_rotation *tn_rotation_find(const struct tn_model_spec *spec, uint32_t cols)
{
    for (uint32_t i = 0; i < spec->n_rotations; i++)
        if (spec->rotations[i].cols == cols)
            return &spec->rotations[i];
    return NULL;
}

bool tn_slot_may_be_rotated(const struct tn_slot *slot, const struct tern_file_config *config)
{
    if (slot->role == TERN_ROLE_EMBED)
        return !(config->flags & TERN_MODEL_TIED_HEAD);
    const bool is_matrix = slot->kind == TN_SLOT_MATRIX || slot->kind == TN_SLOT_ROW_LIST ||
                           slot->kind == TN_SLOT_COL_LIST;
    return slot->role == TERN_ROLE_HEAD || (is_matrix && slot->scope != TN_SCOPE_EXPERTS);
}
