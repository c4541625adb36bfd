/* SPDX-License-Identifier: MIT
 *
 * GPT-2: LayerNorms and biases everywhere, learned positions, a feed-forward without a gate.
 * Folders hold the projections as [columns, rows].
 */
#include "arch/families/gpt2.h"

const struct tn_family_name tn_gpt2_names[] = {
    {TERN_ROLE_EMBED, "wte", NULL},
    {TERN_ROLE_POSITIONS, "wpe", NULL},
    {TERN_ROLE_FINAL_NORM, "ln_f", NULL},
    {TERN_ROLE_FINAL_NORM_BIAS, "ln_f", NULL},
    {TERN_ROLE_ATTN_NORM, "ln_1", NULL},
    {TERN_ROLE_ATTN_NORM_BIAS, "ln_1", NULL},
    {TERN_ROLE_FFN_NORM, "ln_2", NULL},
    {TERN_ROLE_FFN_NORM_BIAS, "ln_2", NULL},
    {TERN_ROLE_O, "attn.c_proj", NULL},
    {TERN_ROLE_O_BIAS, "attn.c_proj", NULL},
    {TERN_ROLE_UP, "mlp.c_fc", NULL},
    {TERN_ROLE_UP_BIAS, "mlp.c_fc", NULL},
    {TERN_ROLE_DOWN, "mlp.c_proj", NULL},
    {TERN_ROLE_DOWN_BIAS, "mlp.c_proj", NULL},
    {0, NULL, NULL},
};

static const struct tn_fused fused[] = {
    {"attn.c_attn", "attn_qkv", {TERN_ROLE_Q, TERN_ROLE_K, TERN_ROLE_V}, TN_FUSED_PARTS},
    {"attn.c_attn", "attn_qkv", {TERN_ROLE_Q_BIAS, TERN_ROLE_K_BIAS, TERN_ROLE_V_BIAS},
     TN_FUSED_PARTS},
    {NULL, NULL, {0}, TN_FUSED_PARTS},
};

const struct tn_family_key tn_gpt2_keys[] = {
    {"hidden_size", "n_embd"},
    {"intermediate_size", "n_inner"},
    {"num_hidden_layers", "n_layer"},
    {"num_attention_heads", "n_head"},
    {"max_position_embeddings", "n_positions"},
    {"rms_norm_eps", "layer_norm_epsilon"},
    {"hidden_act", "activation_function"},
    {NULL, NULL},
};

tern_status tn_gpt2_spec(struct tn_family_spec *s, const struct tn_values *v)
{
    bool is_scaled = true, is_by_layer = false;
    tern_status status = tn_values_truth(v, &is_scaled, "scale_attn_weights", NULL);
    if (status == TERN_OK)
        status = tn_values_truth(v, &is_by_layer, "scale_attn_by_inverse_layer_idx", NULL);
    for (uint32_t i = 0; i < s->config->n_layer; i++) {
        float *scale = &s->layers[i].score_scale;
        *scale = (is_scaled ? *scale : 1) / (is_by_layer ? (float)(i + 1) : 1);
    }
    return status;
}

const struct tn_family tn_family_gpt2 = {
    .name = "gpt2",
    .model_types = {"gpt2"},
    .prefixes = {"transformer."},
    .defaults = "{\"tie_word_embeddings\": true}",
    .gguf = {{"gpt2", TERN_ACT_GELU_TANH}},
    .names = tn_gpt2_names,
    .fused = fused,
    .keys = tn_gpt2_keys,
    .layers = "h",
    .buffers = {".attn.bias", ".attn.masked_bias"},
    .needs = {TN_NEEDS_EVERY_BIAS, TERN_ROLE_POSITIONS},
    .folder_fixups = TN_FIX_TRANSPOSED,
    .norm = TERN_NORM_LAYER,
    .ffn = TERN_FFN_PLAIN,
    .ffn_factor = 4,
    .has_positions = true,
    .has_gpt2_tokenizer = true,
    .spec = tn_gpt2_spec,
};
