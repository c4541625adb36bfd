/* SPDX-License-Identifier: MIT
 *
 * OLMo 2 and 3: LLaMA with norms after the branches instead of before, and norms over all query
 * heads, and over all key heads, together.
 */
#include "arch/family.h"

/* OLMo 3 has windows in three of four layers, whose rotation is not scaled. */
static tern_status olmo2_spec(struct tn_family_spec *s, const struct tn_values *v)
{
    static const struct tn_value window_value = {"sliding_window", "attention.sliding_window", 0,
                                                 TERN_MAX_CONTEXT};
    static const struct tn_value theta_value = {"rope_parameters.sliding_attention.rope_theta",
                                                "rope.freq_base_swa", 1, 1e12};
    uint32_t window = 0;
    tern_status status = tn_values_integer(v, &window, &window_value, false);
    for (uint32_t i = 0; i < s->config->n_layer && window && status == TERN_OK; i++) {
        bool is_local;
        status = tn_spec_is_sliding(&is_local, v, i, 4);
        if (!is_local || status != TERN_OK)
            continue;
        s->layers[i].window = window;
        status = tn_values_number(v, &s->layers[i].rope_theta, &theta_value, false);
    }
    return status;
}

static const struct tn_family_name names[] = {
    {TERN_ROLE_ATTN_POST_NORM, "post_attention_layernorm", NULL},
    {TERN_ROLE_Q_NORM, "", ""},
    {TERN_ROLE_K_NORM, "", ""},
    {TERN_ROLE_Q_ALL_NORM, "self_attn.q_norm", "attn_q_norm"},
    {TERN_ROLE_K_ALL_NORM, "self_attn.k_norm", "attn_k_norm"},
    {0, NULL, NULL},
};

const struct tn_family tn_family_olmo2 = {
    .name = "olmo2",
    .model_types = {"olmo2", "olmo3"},
    .gguf = {{"olmo2", TERN_ACT_SILU}},
    .names = names,
    .needs = {TERN_ROLE_ATTN_POST_NORM, TERN_ROLE_FFN_POST_NORM, TERN_ROLE_Q_ALL_NORM,
              TERN_ROLE_K_ALL_NORM},
    .order = TERN_ORDER_BARE,
    .has_windows = true,
    .has_local_layers = true,
    .spec = olmo2_spec,
};
