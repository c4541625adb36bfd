/* SPDX-License-Identifier: MIT
 *
 * BitNet embeddings: Qwen3 or Gemma 3 with a norm before each projection, latent weights and int8
 * inputs.
 */
#include "arch/family.h"

static bool is_bitnet_embedding(const struct tn_values *v)
{
    return tn_values_has_tensor(v, "self_attn.q_proj.norm.weight", "attn_q_norm_in.weight");
}

const struct tn_scheme tn_scheme_bitnet_embedding = {
    .name = "bitnet-embedding",
    .is_evident = is_bitnet_embedding,
    .rule = TN_WEIGHTS_MULTIPLIED,
    .inputs = TN_INPUTS_INT8,
    .needs = {TERN_ROLE_Q_IN_NORM, TERN_ROLE_K_IN_NORM, TERN_ROLE_V_IN_NORM, TERN_ROLE_O_IN_NORM,
              TERN_ROLE_GATE_IN_NORM, TERN_ROLE_UP_IN_NORM, TERN_ROLE_DOWN_IN_NORM},
    .in_norms_share_eps = true,
};
