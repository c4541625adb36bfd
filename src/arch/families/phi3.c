/* SPDX-License-Identifier: MIT
 *
 * Phi-3, Phi-4-mini: LLaMA with q, k, v in one tensor and gate, up in another, and a window in all
 * layers.  GGUF files call the second one ffn_up.
 */
#include "arch/family.h"

static const struct tn_fused fused[] = {
    {"self_attn.qkv_proj", "attn_qkv", {TERN_ROLE_Q, TERN_ROLE_K, TERN_ROLE_V}},
    {"mlp.gate_up_proj", "ffn_up", {TERN_ROLE_GATE, TERN_ROLE_UP}},
    {NULL, NULL, {0}},
};

static tern_status phi3_spec(struct tn_family_spec *s, const struct tn_values *v)
{
    static const struct tn_value window_value = {"sliding_window", "attention.sliding_window", 0,
                                                 TERN_MAX_CONTEXT};
    uint32_t window = 0;
    tern_status status = tn_values_integer(v, &window, &window_value, false);
    for (uint32_t i = 0; i < s->config->n_layer; i++)
        s->layers[i].window = window;
    return status;
}

const struct tn_family tn_family_phi3 = {
    .name = "phi3",
    .model_types = {"phi3"},
    .gguf = {{"phi3", TERN_ACT_SILU}},
    .fused = fused,
    .has_windows = true,
    .rotates_partly = true,
    .spec = phi3_spec,
};
