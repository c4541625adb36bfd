/* SPDX-License-Identifier: MIT
 *
 * Qwen3-Next-80B-A3B, Qwen3-Coder-Next: gated attention in every n-th layer, a gated delta rule in
 * the others, experts and a shared one in all.  Sources group the projections of a gated delta rule
 * by key head, with value heads in order.
 */
#include "arch/families/qwen35.h"

static tern_status qwen3_next_spec(struct tn_family_spec *s, const struct tn_values *v)
{
    bool renormalises = true;
    tern_status status =
        tn_values_truth(v, &renormalises, "norm_topk_prob", "expert_weights_norm");
    if (status == TERN_OK)
        status = tn_spec_gated_delta(s, v, 0);
    if (status == TERN_OK)
        status = tn_spec_experts(s, v, renormalises);
    if (status == TERN_OK)
        status = tn_spec_dense_layers(s, v);
    return status == TERN_OK ? tn_spec_shared_expert(s, v) : status;
}

const struct tn_family tn_family_qwen3_next = {
    .name = "qwen3-next",
    .model_types = {"qwen3_next"},
    .drafts = {"mtp."},
    .defaults = "{\"partial_rotary_factor\": 0.25}",
    .gguf = {{"qwen3next", TERN_ACT_SILU}},
    .names = tn_qwen35_names,
    .fused = tn_qwen35_fused,
    .needs = {TERN_ROLE_Q_NORM, TERN_ROLE_K_NORM, TERN_ROLE_Q_GATE},
    .folder_fixups = TN_FIX_NORMS_PLUS_ONE | TN_FIX_LOG_DECAY,
    .inputs = TN_INPUTS_FLOAT,
    .rotates_partly = true,
    .spec = qwen3_next_spec,
};
