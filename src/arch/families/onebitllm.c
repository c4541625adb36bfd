/* SPDX-License-Identifier: MIT
 *
 * 1bitLLM: a scheme with BitNet's graph under LLaMA's model_type, with SiLU and latent weights in
 * the folder.
 */
#include "arch/family.h"

static bool is_onebitllm(const struct tn_values *v)
{
    return tn_values_has_folder_key(v, "weight_bits") &&
           tn_values_has_folder_key(v, "input_bits");
}

const struct tn_scheme tn_scheme_onebitllm = {
    .name = "bitnet",
    .is_evident = is_onebitllm,
    .rule = TN_WEIGHTS_MULTIPLIED,
    .inputs = TN_INPUTS_INT8,
    .needs = {TERN_ROLE_ATTN_SUB_NORM, TERN_ROLE_FFN_SUB_NORM},
};
