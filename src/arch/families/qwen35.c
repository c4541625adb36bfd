/* SPDX-License-Identifier: MIT
 *
 * Qwen3.5, 3.6, 3.8, Ternary-Bonsai-27B: every n-th layer is attention with an output gate, the
 * others mix by a gated delta rule.  GGUF files have the value heads of a key head apart.
 */
#include "arch/family.h"
#include "base/compiler.h"
#include "base/error.h"

static const struct tn_family_name names[] = {
    {TERN_ROLE_FFN_NORM, NULL, "post_attention_norm"},
    {TERN_ROLE_ATTN_POST_NORM, NULL, ""}, /* the usual name of which that is */
    {0, NULL, NULL},
};

static const struct tn_fused fused[] = {
    {"self_attn.q_proj", "attn_q", {TERN_ROLE_Q, TERN_ROLE_Q_GATE}, true},
    {NULL, NULL, {0}, false},
};

struct delta {
    uint32_t n_head, n_kv_head, head_dim, value_dim, conv_taps;
};

static tern_status read_delta(struct delta *d, const struct tn_values *v)
{
    static const struct tn_value values[] = {
        {"linear_num_value_heads", "ssm.time_step_rank", 1, TERN_MAX_DIM},
        {"linear_num_key_heads", "ssm.group_count", 1, TERN_MAX_DIM},
        {"linear_key_head_dim", "ssm.state_size", 2, TERN_MAX_DELTA_DIM},
        {"linear_conv_kernel_dim", "ssm.conv_kernel", 1, TERN_MAX_CONV_TAPS},
    };
    uint32_t *const out[] = {&d->n_head, &d->n_kv_head, &d->head_dim, &d->conv_taps};
    tern_status status = TERN_OK;
    for (uint32_t i = 0; i < TN_COUNT_OF(values) && status == TERN_OK; i++)
        status = tn_values_integer(v, out[i], &values[i], true);
    return status;
}

/* Folders say how many values a head has, GGUF files how many all have. */
static tern_status read_value_dim(struct delta *d, const struct tn_values *v)
{
    const uint32_t all = v->is_gguf ? d->n_head : 1;
    const struct tn_value value = {"linear_value_head_dim", "ssm.inner_size", 1,
                                   TERN_MAX_DELTA_DIM * (double)all};
    uint32_t n = 0;
    tern_status status = tn_values_integer(v, &n, &value, true);
    d->value_dim = n / all;
    if (status == TERN_OK && n % all)
        status = tn_fail(v->err, TERN_INPUT, "ssm.inner_size %u is no multiple of "
                         "ssm.time_step_rank %u", n, all);
    return status;
}

static tern_status check_delta(const struct delta *d, const struct tn_values *v)
{
    if (d->n_head % d->n_kv_head)
        return tn_fail(v->err, TERN_INPUT,
                       "%u key heads of a gated delta rule do not divide its %u value heads",
                       d->n_kv_head, d->n_head);
    if (d->head_dim % 2)
        return tn_fail(v->err, TERN_INPUT,
                       "key heads of a gated delta rule have %u values, but must have an even "
                       "number", d->head_dim);
    if ((uint64_t)d->n_head * d->head_dim > TERN_MAX_DIM ||
        2 * (uint64_t)d->n_kv_head * d->head_dim + (uint64_t)d->n_head * d->value_dim >
            TERN_MAX_DIM)
        return tn_fail(v->err, TERN_INPUT,
                       "a gated delta rule of %u heads with %u and %u values: all together may "
                       "have %u", d->n_head, d->head_dim, d->value_dim, TERN_MAX_DIM);
    return TERN_OK;
}

static void set_delta(struct tern_file_layer *l, const struct delta *d, bool is_gguf)
{
    *l = (struct tern_file_layer){
        .mixer = TERN_MIXER_GATED_DELTA,
        .ffn = l->ffn,
        .activation = l->activation,
        .n_head = d->n_head,
        .n_kv_head = d->n_kv_head,
        .head_dim = d->head_dim,
        .ffn_dim = l->ffn_dim,
        .value_dim = (uint16_t)d->value_dim,
        .conv_taps = (uint8_t)d->conv_taps,
        .delta_flags = is_gguf ? TERN_DELTA_TILED : 0,
    };
}

/* The source lists its layers, or every interval-th is attention. */
static tern_status is_linear(bool *out, const struct tn_values *v, uint32_t layer)
{
    static const struct tn_value interval_value = {"full_attention_interval",
                                                   "full_attention_interval", 1, TERN_MAX_LAYERS};
    enum tn_layer_kind kind = TN_LAYER_UNSAID;
    uint32_t interval = 4;
    tern_status status = v->layer_kind(v, &kind, layer);
    if (kind == TN_LAYER_UNSAID && status == TERN_OK)
        status = tn_values_integer(v, &interval, &interval_value, false);
    if (kind == TN_LAYER_SLIDING)
        status = tn_fail(v->err, TERN_UNSUPPORTED, "layer %u has a window", layer);
    *out = kind == TN_LAYER_UNSAID ? (layer + 1) % interval != 0 : kind == TN_LAYER_LINEAR;
    return status;
}

static tern_status qwen35_spec(struct tn_family_spec *s, const struct tn_values *v)
{
    struct delta delta;
    tern_status status = read_delta(&delta, v);
    if (status == TERN_OK)
        status = read_value_dim(&delta, v);
    if (status == TERN_OK)
        status = check_delta(&delta, v);
    for (uint32_t i = 0; i < s->config->n_layer && status == TERN_OK; i++) {
        bool linear = false;
        status = is_linear(&linear, v, i);
        if (linear)
            set_delta(&s->layers[i], &delta, v->is_gguf);
    }
    return status;
}

const struct tn_family tn_family_qwen35 = {
    .name = "qwen3.5",
    .model_types = {"qwen3_5_text"},
    .prefixes = {"model.language_model."},
    .skipped = {"model.visual.", "visual."},
    .drafts = {"mtp.", "model.mtp."},
    .gguf = {{"qwen35", TERN_ACT_SILU}},
    .names = names,
    .fused = fused,
    .needs = {TERN_ROLE_Q_NORM, TERN_ROLE_K_NORM, TERN_ROLE_Q_GATE},
    .folder_fixups = TN_FIX_NORMS_PLUS_ONE | TN_FIX_LOG_DECAY,
    .inputs = TN_INPUTS_FLOAT,
    .rotates_partly = true,
    .spec = qwen35_spec,
};
