/* SPDX-License-Identifier: MIT
 *
 * Qwen2, Qwen2.5: LLaMA with biases of q, k and v, which no key of the configuration mentions.
 * Windows are possible, but no published model uses them.
 */
#include "arch/family.h"

const struct tn_family tn_family_qwen2 = {
    .name = "qwen2",
    .model_types = {"qwen2"},
    .gguf = {{"qwen2", TERN_ACT_SILU}},
    .needs = {TERN_ROLE_Q_BIAS, TERN_ROLE_K_BIAS, TERN_ROLE_V_BIAS},
    .may_have_windows = true,
    .spec = tn_spec_qwen_windows,
};
