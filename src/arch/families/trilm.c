/* SPDX-License-Identifier: MIT
 *
 * TriLM: a scheme of LLaMA with a scale for each shard of its tensor-parallel training, recognised
 * by its vocabulary.
 */
#include "arch/family.h"

static bool is_trilm(const struct tn_values *v)
{
    return tn_values_has_folder_key(v, "pretraining_model_parallel");
}

const struct tn_scheme tn_scheme_trilm = {
    .name = "trilm",
    .is_evident = is_trilm,
    .inputs = TN_INPUTS_FLOAT,
    .vocabulary = {"<|endoftext|>", "<|padding|>"}, /* that of GPT-NeoX */
};
