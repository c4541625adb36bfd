/* SPDX-License-Identifier: MIT
 *
 * Qwen3-30B-A3B: Qwen3 with experts, in every layer of the published models.  Whether their
 * weights are renormalised is a key of config.json; GGUF files imply it.
 */
#include "arch/family.h"

static const struct tn_fused fused[] = {
    {"mlp.experts.gate_up_proj.", "ffn_gate_up_exps", {TERN_ROLE_EXPERT_GATE, TERN_ROLE_EXPERT_UP},
     TN_FUSED_PARTS},
    {NULL, NULL, {0}, TN_FUSED_PARTS},
};

static tern_status qwen3_moe_spec(struct tn_family_spec *s, const struct tn_values *v)
{
    bool renormalises = v->is_gguf; /* the default if the key is absent */
    tern_status status =
        tn_values_truth(v, &renormalises, "norm_topk_prob", "expert_weights_norm");
    if (status == TERN_OK)
        status = tn_spec_experts(s, v, renormalises);
    return status == TERN_OK ? tn_spec_dense_layers(s, v) : status;
}

const struct tn_family tn_family_qwen3_moe = {
    .name = "qwen3-moe",
    .model_types = {"qwen3_moe"},
    .gguf = {{"qwen3moe", TERN_ACT_SILU}},
    .fused = fused,
    .needs = {TERN_ROLE_Q_NORM, TERN_ROLE_K_NORM},
    .inputs = TN_INPUTS_FLOAT,
    .spec = qwen3_moe_spec,
};
