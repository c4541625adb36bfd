/* SPDX-License-Identifier: MIT
 *
 * Qwen3.5-35B-A3B, 3.6-35B-A3B: Qwen3.5 with experts in every layer, and a shared one.  Folders
 * stack the experts like GGUF files.
 */
#include "arch/families/qwen35.h"

/* No key states that the weights of the chosen experts are renormalised. */
static tern_status qwen35_moe_spec(struct tn_family_spec *s, const struct tn_values *v)
{
    tern_status status = tn_spec_gated_delta(s, v, v->is_gguf ? TERN_DELTA_TILED : 0);
    if (status == TERN_OK)
        status = tn_spec_experts(s, v, true);
    return status == TERN_OK ? tn_spec_shared_expert(s, v) : status;
}

const struct tn_family tn_family_qwen35_moe = {
    .name = "qwen3.5-moe",
    .model_types = {"qwen3_5_moe_text"},
    .prefixes = {"model.language_model.", "language_model.model."},
    .skipped = {"model.visual.", "visual.", "vision_tower."},
    .drafts = {"mtp.", "model.mtp.", "model.language_model.mtp."},
    .defaults = "{\"partial_rotary_factor\": 0.25}",
    .gguf = {{"qwen35moe", TERN_ACT_SILU}},
    .names = tn_qwen35_names,
    .fused = tn_qwen35_fused,
    .needs = {TERN_ROLE_Q_NORM, TERN_ROLE_K_NORM, TERN_ROLE_Q_GATE},
    .folder_fixups = TN_FIX_NORMS_PLUS_ONE | TN_FIX_LOG_DECAY,
    .inputs = TN_INPUTS_FLOAT,
    .rotates_partly = true,
    .spec = qwen35_moe_spec,
};
