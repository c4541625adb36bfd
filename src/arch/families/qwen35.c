/* SPDX-License-Identifier: MIT
 *
 * Qwen3.5, 3.6, 3.8, Ternary-Bonsai-27B: every n-th layer is attention with an output gate, the
 * others use a gated delta rule.  In GGUF files the value heads of a key head are not adjacent.
 */
#include "arch/families/qwen35.h"

const struct tn_family_name tn_qwen35_names[] = {
    {TERN_ROLE_FFN_NORM, NULL, "post_attention_norm"},
    {TERN_ROLE_ATTN_POST_NORM, NULL, ""}, /* its usual name belongs to another slot here */
    {0, NULL, NULL},
};

/* Qwen3-Next stores the projections of a gated delta rule in two tensors; newer GGUF files store z
 * separately, and all projections of attention in one by request.  Only models with experts have
 * the slots of experts. */
const struct tn_fused tn_qwen35_fused[] = {
    {"self_attn.q_proj", "attn_q", {TERN_ROLE_Q, TERN_ROLE_Q_GATE}, TN_FUSED_BY_HEAD},
    {NULL, "attn_qkv", {TERN_ROLE_Q, TERN_ROLE_Q_GATE, TERN_ROLE_K, TERN_ROLE_V},
     TN_FUSED_PAIR_FIRST},
    {"linear_attn.in_proj_qkvz", "ssm_in", {TERN_ROLE_DELTA_QKV, TERN_ROLE_DELTA_Z},
     TN_FUSED_BY_KEY_HEAD},
    {"linear_attn.in_proj_ba", "ssm_ba", {TERN_ROLE_DELTA_B, TERN_ROLE_DELTA_A},
     TN_FUSED_BY_KEY_HEAD},
    {"mlp.experts.gate_up_proj.", "ffn_gate_up_exps", {TERN_ROLE_EXPERT_GATE, TERN_ROLE_EXPERT_UP},
     TN_FUSED_PARTS},
    {NULL, NULL, {0}, TN_FUSED_PARTS},
};

/* In GGUF files the value heads of different key heads alternate. */
static tern_status qwen35_spec(struct tn_family_spec *s, const struct tn_values *v)
{
    return tn_spec_gated_delta(s, v, v->is_gguf ? TERN_DELTA_TILED : 0);
}

const struct tn_family tn_family_qwen35 = {
    .name = "qwen3.5",
    .model_types = {"qwen3_5_text"},
    .prefixes = {"model.language_model.", "language_model.model."},
    .skipped = {"model.visual.", "visual.", "vision_tower."},
    .drafts = {"mtp.", "model.mtp.", "model.language_model.mtp."},
    .defaults = "{\"partial_rotary_factor\": 0.25}",
    .gguf = {{"qwen35", TERN_ACT_SILU}},
    .names = tn_qwen35_names,
    .fused = tn_qwen35_fused,
    .needs = {TERN_ROLE_Q_NORM, TERN_ROLE_K_NORM, TERN_ROLE_Q_GATE},
    .folder_fixups = TN_FIX_NORMS_PLUS_ONE | TN_FIX_LOG_DECAY,
    .inputs = TN_INPUTS_FLOAT,
    .rotates_partly = true,
    .spec = qwen35_spec,
};
