/* SPDX-License-Identifier: MIT
 *
 * Gemma 2: norms before and after each branch, soft caps of scores and logits, and a window in
 * every other layer, the first included.
 */
#include "arch/family.h"

static const struct tn_family_name names[] = {
    {TERN_ROLE_FFN_NORM, "pre_feedforward_layernorm", NULL},
    {TERN_ROLE_ATTN_POST_NORM, "post_attention_layernorm", NULL},
    {0, NULL, NULL},
};

/* GGUF files of the first weeks after the release lack the keys of caps and window: they have the
 * values that all published models share, as in llama.cpp. */
static tern_status gemma2_spec(struct tn_family_spec *s, const struct tn_values *v)
{
    static const struct tn_value window_value = {"sliding_window", "attention.sliding_window", 1,
                                                 TERN_MAX_CONTEXT};
    uint32_t window = 4096;
    if (v->is_gguf) {
        s->config->score_cap = 50;
        s->config->logit_cap = 30;
    }
    tern_status status = tn_spec_gemma(s, v, 46);
    if (status == TERN_OK)
        status = tn_values_integer(v, &window, &window_value, !v->is_gguf);
    for (uint32_t i = 0; i < s->config->n_layer && status == TERN_OK; i++) {
        bool is_sliding = false;
        status = tn_spec_is_sliding(&is_sliding, v, i, 2);
        s->layers[i].window = is_sliding ? window : 0;
    }
    return status;
}

const struct tn_family tn_family_gemma2 = {
    .name = "gemma2",
    .model_types = {"gemma2"},
    .defaults = "{\"hidden_activation\": \"gelu_pytorch_tanh\", \"query_pre_attn_scalar\": 256,"
                " \"sliding_window\": 4096, \"attn_logit_softcapping\": 50,"
                " \"final_logit_softcapping\": 30, \"tie_word_embeddings\": true}",
    .gguf = {{"gemma2", TERN_ACT_GELU_TANH}},
    .names = names,
    .needs = {TERN_ROLE_ATTN_POST_NORM, TERN_ROLE_FFN_POST_NORM},
    .folder_fixups = TN_FIX_NORMS_PLUS_ONE,
    .has_windows = true,
    .has_caps = true,
    .spec = gemma2_spec,
};
