/* SPDX-License-Identifier: MIT
 *
 * OLMo 2: LLaMA with norms after the branches instead of before, and norms over all query heads,
 * and over all key heads, together.
 */
#include "arch/family.h"

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
    .model_types = {"olmo2"},
    .gguf = {{"olmo2", TERN_ACT_SILU}},
    .names = names,
    .needs = {TERN_ROLE_ATTN_POST_NORM, TERN_ROLE_FFN_POST_NORM, TERN_ROLE_Q_ALL_NORM,
              TERN_ROLE_K_ALL_NORM},
    .order = TERN_ORDER_BARE,
};
