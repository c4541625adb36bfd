/* SPDX-License-Identifier: MIT
 *
 * Qwen3, Ternary-Bonsai: LLaMA with RMSNorms of each query and key head before the rotation.
 */
#include "arch/family.h"

const struct tn_family tn_family_qwen3 = {
    .name = "qwen3",
    .model_types = {"qwen3"},
    .gguf = {{"qwen3", TERN_ACT_SILU}},
    .needs = {TERN_ROLE_Q_NORM, TERN_ROLE_K_NORM},
    .may_have_windows = true,
    .spec = tn_spec_qwen_windows,
};
