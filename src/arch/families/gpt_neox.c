/* SPDX-License-Identifier: MIT
 *
 * GPT-NeoX, Pythia: attention and a feed-forward without a gate in parallel, LayerNorms, biases
 * everywhere (attention: unless "attention_bias" is false), partial rotation of each head.
 * Folders store q, k and v head by head, GGUF files all q, then all k, then all v; there GELU means
 * the tanh variant.
 */
#include "arch/family.h"

static const struct tn_family_name names[] = {
    {TERN_ROLE_EMBED, "embed_in", NULL},
    {TERN_ROLE_HEAD, "/embed_out|/lm_head", NULL},
    {TERN_ROLE_FINAL_NORM, "final_layer_norm", NULL},
    {TERN_ROLE_FINAL_NORM_BIAS, "final_layer_norm", NULL},
    {TERN_ROLE_O, "attention.dense", NULL},
    {TERN_ROLE_O_BIAS, "attention.dense", NULL},
    {TERN_ROLE_UP, "mlp.dense_h_to_4h", NULL},
    {TERN_ROLE_UP_BIAS, "mlp.dense_h_to_4h", NULL},
    {TERN_ROLE_DOWN, "mlp.dense_4h_to_h", NULL},
    {TERN_ROLE_DOWN_BIAS, "mlp.dense_4h_to_h", NULL},
    {0, NULL, NULL},
};

#define QKV {TERN_ROLE_Q, TERN_ROLE_K, TERN_ROLE_V}
#define QKV_BIAS {TERN_ROLE_Q_BIAS, TERN_ROLE_K_BIAS, TERN_ROLE_V_BIAS}
static const struct tn_fused fused[] = {
    {"attention.query_key_value", NULL, QKV, TN_FUSED_BY_HEAD},
    {"attention.query_key_value", NULL, QKV_BIAS, TN_FUSED_BY_HEAD},
    {NULL, "attn_qkv", QKV, TN_FUSED_PARTS},
    {NULL, "attn_qkv", QKV_BIAS, TN_FUSED_PARTS},
    {NULL, NULL, {0}, TN_FUSED_PARTS},
};

static const struct tn_family_key keys[] = {{"rms_norm_eps", "layer_norm_eps"}, {NULL, NULL}};

static tern_status gpt_neox_spec(struct tn_family_spec *s, const struct tn_values *v)
{
    bool is_parallel = true;
    tern_status status =
        tn_values_truth(v, &is_parallel, "use_parallel_residual", "use_parallel_residual");
    if (status == TERN_OK && s->config->n_kv_head != s->config->n_head)
        status = tn_values_refuse(v, "a key head for several query heads");
    s->config->order = is_parallel ? TERN_ORDER_PARALLEL : TERN_ORDER_BEFORE;
    return status;
}

const struct tn_family tn_family_gpt_neox = {
    .name = "gpt-neox",
    .model_types = {"gpt_neox"},
    .prefixes = {"gpt_neox."},
    .defaults = "{\"rotary_pct\": 0.25, \"tie_word_embeddings\": false}",
    .gguf = {{"gptneox", TERN_ACT_GELU_TANH}},
    .names = names,
    .fused = fused,
    .keys = keys,
    .buffers = {".attention.bias", ".attention.masked_bias"},
    .needs = {TN_NEEDS_EVERY_BIAS},
    .norm = TERN_NORM_LAYER,
    .ffn = TERN_FFN_PLAIN,
    .rotates_partly = true,
    .has_parallel = true,
    .spec = gpt_neox_spec,
};
