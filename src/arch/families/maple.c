/* SPDX-License-Identifier: MIT
 *
 * Maple: ternary experts whose gates and ups are clamped at 7.  Of every four layers three have a
 * window and rotate half of each head; the last one sees all positions and has no rotation.
 */
#include "arch/family.h"
#include "base/compiler.h"

#define LIMIT 7.0

static const struct tn_fused fused[] = {
    {"mlp.experts.gate_up_proj.", "ffn_gate_up_exps", {TERN_ROLE_EXPERT_GATE, TERN_ROLE_EXPERT_UP},
     TN_FUSED_PARTS},
    {NULL, NULL, {0}, TN_FUSED_PARTS},
};

static const struct tn_family_name names[] = {
    {TERN_ROLE_EMBED, "word_embeddings|embed_tokens", NULL},
    {0, NULL, NULL},
};

/* Refuses keys that would change the graph. */
static tern_status check_keys(const struct tn_values *v)
{
    static const struct tn_value zeros[] = {{"first_k_dense_replace", NULL, 0, 0},
                                            {"num_shared_experts", NULL, 0, 0}};
    bool has_bias = false, is_unrotated = true;
    tern_status status = TERN_OK;
    for (size_t i = 0; i < TN_COUNT_OF(zeros) && status == TERN_OK; i++) {
        uint32_t zero = 0;
        status = tn_values_integer(v, &zero, &zeros[i], false);
    }
    if (status == TERN_OK)
        status = tn_values_truth(v, &has_bias, "moe_router_enable_expert_bias", NULL);
    if (status == TERN_OK && has_bias)
        status = tn_values_refuse(v, "\"moe_router_enable_expert_bias\"");
    if (status == TERN_OK)
        status = tn_values_truth(v, &is_unrotated, "nope_on_global_attention", NULL);
    if (status == TERN_OK && !is_unrotated)
        status = tn_values_refuse(v, "\"nope_on_global_attention\": false");
    return status;
}

/* GGUF files store a limit per layer. */
static tern_status read_limit(struct tn_family_spec *s, const struct tn_values *v)
{
    s->config->expert_limit = (float)LIMIT;
    for (uint32_t i = 0; v->is_gguf && i < s->config->n_layer; i++) {
        double limit = LIMIT;
        tern_status status = v->element(v, &limit, "swiglu_clamp_exp", i);
        if (status != TERN_OK)
            return status;
        if (!(limit > 0 && limit <= 1e9) || (i > 0 && (float)limit != s->config->expert_limit))
            return tn_values_refuse(v, "a limit in \"swiglu_clamp_exp\" that is not above 0, or "
                                       "not that of the other layers,");
        s->config->expert_limit = (float)limit;
    }
    return TERN_OK;
}

static tern_status read_layers(struct tn_family_spec *s, const struct tn_values *v)
{
    static const struct tn_value window_value = {"sliding_window", "attention.sliding_window", 1,
                                                 TERN_MAX_CONTEXT};
    uint32_t window = 0;
    tern_status status = tn_values_integer(v, &window, &window_value, true);
    for (uint32_t i = 0; i < s->config->n_layer && status == TERN_OK; i++) {
        bool is_sliding = false;
        status = tn_spec_is_sliding(&is_sliding, v, i, 4);
        s->layers[i].window = is_sliding ? window : 0;
        s->layers[i].rope = is_sliding ? TERN_ROPE_HALF : TERN_ROPE_NONE;
    }
    return status;
}

static tern_status maple_spec(struct tn_family_spec *s, const struct tn_values *v)
{
    tern_status status = check_keys(v);
    if (status == TERN_OK)
        status = read_layers(s, v);
    if (status == TERN_OK)
        status = read_limit(s, v);
    return status == TERN_OK ? tn_spec_experts(s, v, true) : status;
}

const struct tn_family tn_family_maple = {
    .name = "maple",
    .model_types = {"maple"},
    .gguf = {{"maple", TERN_ACT_SILU}},
    .names = names,
    .fused = fused,
    .needs = {TERN_ROLE_Q_NORM, TERN_ROLE_K_NORM},
    .inputs = TN_INPUTS_FLOAT,
    .is_ternary = true,
    .has_windows = true,
    .rotates_partly = true,
    .spec = maple_spec,
};
