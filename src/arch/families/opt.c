/* SPDX-License-Identifier: MIT
 *
 * OPT: LayerNorms, biases everywhere unless "enable_bias" is false, learned positions that begin
 * in the third row of their table, a feed-forward with ReLU and without a gate.  The 350m has its
 * norms after the sums, and narrower embeddings.
 */
#include "arch/family.h"

static const struct tn_family_name names[] = {
    {TERN_ROLE_POSITIONS, "embed_positions", NULL},
    {TERN_ROLE_EMBED_IN, "project_in", NULL},
    {TERN_ROLE_EMBED_OUT, "project_out", NULL},
    {TERN_ROLE_FINAL_NORM, "final_layer_norm", NULL},
    {TERN_ROLE_FINAL_NORM_BIAS, "final_layer_norm", NULL},
    {TERN_ROLE_ATTN_NORM, "self_attn_layer_norm", NULL},
    {TERN_ROLE_ATTN_NORM_BIAS, "self_attn_layer_norm", NULL},
    {TERN_ROLE_FFN_NORM, "final_layer_norm", NULL},
    {TERN_ROLE_FFN_NORM_BIAS, "final_layer_norm", NULL},
    {TERN_ROLE_O, "self_attn.out_proj", NULL},
    {TERN_ROLE_O_BIAS, "self_attn.out_proj", NULL},
    {TERN_ROLE_UP, "fc1", NULL},
    {TERN_ROLE_UP_BIAS, "fc1", NULL},
    {TERN_ROLE_DOWN, "fc2", NULL},
    {TERN_ROLE_DOWN_BIAS, "fc2", NULL},
    {0, NULL, NULL},
};

static const struct tn_family_key keys[] = {
    {"intermediate_size", "ffn_dim"},
    {"rms_norm_eps", "layer_norm_eps"},
    {"hidden_act", "activation_function"},
    {"attention_bias", "enable_bias"},
    {"mlp_bias", "enable_bias"},
    {NULL, NULL},
};

static tern_status opt_spec(struct tn_family_spec *s, const struct tn_values *v)
{
    const struct tn_value width_value = {"word_embed_proj_dim", NULL, 1, s->config->hidden};
    uint32_t width = s->config->hidden;
    bool is_before = true, lacks_norm = false;
    tern_status status = tn_values_truth(v, &is_before, "do_layer_norm_before", NULL);
    if (status == TERN_OK)
        status = tn_values_truth(v, &lacks_norm, "_remove_final_layer_norm", NULL);
    if (status == TERN_OK && lacks_norm && is_before)
        status = tn_values_refuse(v, "\"_remove_final_layer_norm\"");
    if (status == TERN_OK)
        status = tn_values_integer(v, &width, &width_value, false);
    s->config->order = is_before ? TERN_ORDER_BEFORE : TERN_ORDER_AFTER;
    s->config->embed_width = width != s->config->hidden ? width : 0;
    return status;
}

const struct tn_family tn_family_opt = {
    .name = "opt",
    .model_types = {"opt"},
    .prefixes = {"model.decoder.", "decoder."},
    .defaults = "{\"layer_norm_eps\": 1e-5, \"tie_word_embeddings\": true}",
    .names = names,
    .keys = keys,
    .needs = {TN_NEEDS_EVERY_BIAS, TERN_ROLE_POSITIONS},
    .norm = TERN_NORM_LAYER,
    .ffn = TERN_FFN_PLAIN,
    .has_positions = true,
    .first_position = 2,
    .has_gpt2_tokenizer = true,
    .spec = opt_spec,
};
