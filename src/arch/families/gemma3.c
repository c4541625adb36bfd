/* SPDX-License-Identifier: MIT
 *
 * Gemma 3: embeddings times the square root of their width, norms before and after each branch, and
 * five layers with a window and a slower rotation for each one that sees all positions.
 */
#include "arch/family.h"

static const struct tn_family_name names[] = {
    {TERN_ROLE_FFN_NORM, "pre_feedforward_layernorm", NULL},
    {TERN_ROLE_ATTN_POST_NORM, "post_attention_layernorm", NULL},
    {0, NULL, NULL},
};

/* Windows, and the rotation of the layers with one.  A GGUF file without a window has none. */
static tern_status local_layers(struct tn_family_spec *s, const struct tn_values *v)
{
    const struct tn_value window_value = {"sliding_window", "attention.sliding_window",
                                          v->is_gguf ? 0 : 1, TERN_MAX_CONTEXT};
    static const struct tn_value theta_value = {
        "rope_parameters.sliding_attention.rope_theta|rope_local_base_freq", "rope.freq_base_swa",
        1, 1e12};
    double theta = 10000;
    uint32_t window = 0;
    tern_status status = TERN_OK;
    for (uint32_t i = 0; i < s->config->n_layer && status == TERN_OK; i++) {
        bool is_local;
        status = tn_spec_is_sliding(&is_local, v, i, 6);
        if (!is_local || status != TERN_OK)
            continue;
        if (window == 0) {
            status = tn_values_integer(v, &window, &window_value, !v->is_gguf);
            if (status == TERN_OK && window != 0)
                status = tn_values_number(v, &theta, &theta_value, false);
        }
        if (window == 0)
            return status;
        s->layers[i].rope_theta = theta;
        s->layers[i].window = window;
    }
    return status;
}

static tern_status gemma3_spec(struct tn_family_spec *s, const struct tn_values *v)
{
    const tern_status status = tn_spec_gemma(s, v, 62);
    return status == TERN_OK ? local_layers(s, v) : status;
}

/* Defaults of transformers' Gemma3TextConfig: files of models that take images contain only
 * differences. */
static const char defaults[] =
    "{\"hidden_size\": 2304, \"intermediate_size\": 9216, \"num_hidden_layers\": 26,"
    " \"num_attention_heads\": 8, \"num_key_value_heads\": 4, \"head_dim\": 256,"
    " \"vocab_size\": 262208, \"max_position_embeddings\": 131072, \"rms_norm_eps\": 1e-6,"
    " \"hidden_activation\": \"gelu_pytorch_tanh\", \"query_pre_attn_scalar\": 256,"
    " \"sliding_window\": 4096, \"tie_word_embeddings\": true}";

const struct tn_family tn_family_gemma3 = {
    .name = "gemma3",
    .model_types = {"gemma3_text"},
    .prefixes = {"language_model.model.", "model.language_model."},
    .skipped = {"vision_tower.", "multi_modal_projector.", "model.vision_tower.",
                "model.multi_modal_projector."},
    .defaults = defaults,
    .gguf = {{"gemma3", TERN_ACT_GELU_TANH}},
    .names = names,
    .needs = {TERN_ROLE_Q_NORM, TERN_ROLE_K_NORM, TERN_ROLE_ATTN_POST_NORM,
              TERN_ROLE_FFN_POST_NORM},
    .folder_fixups = TN_FIX_NORMS_PLUS_ONE,
    .has_windows = true,
    .has_caps = true,
    .has_local_layers = true,
    .rope_theta = 1e6,
    .spec = gemma3_spec,
};
