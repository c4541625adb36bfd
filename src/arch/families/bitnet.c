/* SPDX-License-Identifier: MIT
 *
 * BitNet b1.58: LLaMA with norms of the inputs of o and down.  GGUF files do not state the
 * activation: it is squared ReLU in files of Microsoft's converter, SiLU in llama.cpp's, unless a
 * key says otherwise.
 */
#include "arch/family.h"

const struct tn_family tn_family_bitnet = {
    .name = "bitnet",
    .model_types = {"bitnet"},
    .gguf = {{"bitnet-b1.58", TERN_ACT_RELU2},
             {"bitnet-25", TERN_ACT_RELU2},
             {"bitnet", TERN_ACT_SILU}},
    .needs = {TERN_ROLE_ATTN_SUB_NORM, TERN_ROLE_FFN_SUB_NORM},
    .inputs = TN_INPUTS_INT8,
    .is_ternary = true,
    .rope_theta = 5e5,
};
