/* SPDX-License-Identifier: MIT
 *
 * Qwen3.5, 3.6, 3.8, Ternary-Bonsai-27B: every n-th layer is attention with an output gate, the
 * others mix by a gated delta rule.  GGUF files have the value heads of a key head apart.
 */
#include "arch/family.h"

static const struct tn_family_name names[] = {
    {TERN_ROLE_FFN_NORM, NULL, "post_attention_norm"},
    {TERN_ROLE_ATTN_POST_NORM, NULL, ""}, /* the usual name of which that is */
    {0, NULL, NULL},
};

static const struct tn_fused fused[] = {
    {"self_attn.q_proj", "attn_q", {TERN_ROLE_Q, TERN_ROLE_Q_GATE}, TN_FUSED_BY_HEAD},
    {NULL, NULL, {0}, TN_FUSED_PARTS},
};

/* Value heads of GGUF files take turns with those of other key heads. */
static tern_status qwen35_spec(struct tn_family_spec *s, const struct tn_values *v)
{
    return tn_spec_gated_delta(s, v, v->is_gguf ? TERN_DELTA_TILED : 0);
}

const struct tn_family tn_family_qwen35 = {
    .name = "qwen3.5",
    .model_types = {"qwen3_5_text"},
    .prefixes = {"model.language_model."},
    .skipped = {"model.visual.", "visual."},
    .drafts = {"mtp.", "model.mtp."},
    .gguf = {{"qwen35", TERN_ACT_SILU}},
    .names = names,
    .fused = fused,
    .needs = {TERN_ROLE_Q_NORM, TERN_ROLE_K_NORM, TERN_ROLE_Q_GATE},
    .folder_fixups = TN_FIX_NORMS_PLUS_ONE | TN_FIX_LOG_DECAY,
    .inputs = TN_INPUTS_FLOAT,
    .rotates_partly = true,
    .spec = qwen35_spec,
};
