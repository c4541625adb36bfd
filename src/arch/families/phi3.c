/* SPDX-License-Identifier: MIT
 *
 * Phi-3, Phi-4-mini: LLaMA with q, k, v in one tensor and gate, up in another, and a window in all
 * layers.  GGUF files name the second one ffn_up.
 */
#include "arch/family.h"

static const struct tn_fused fused[] = {
    {"self_attn.qkv_proj", "attn_qkv", {TERN_ROLE_Q, TERN_ROLE_K, TERN_ROLE_V}, TN_FUSED_PARTS},
    {"mlp.gate_up_proj", "ffn_up", {TERN_ROLE_GATE, TERN_ROLE_UP}, TN_FUSED_PARTS},
    {NULL, NULL, {0}, TN_FUSED_PARTS},
};

const struct tn_family tn_family_phi3 = {
    .name = "phi3",
    .model_types = {"phi3"},
    .gguf = {{"phi3", TERN_ACT_SILU}},
    .fused = fused,
    .has_windows = true,
    .rotates_partly = true,
    .spec = tn_spec_windows,
};
