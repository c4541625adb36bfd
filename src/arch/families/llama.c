/* SPDX-License-Identifier: MIT
 *
 * LLaMA, and the models with its graph: Falcon3, Falcon-E, HF1BitLLM, TriLM, ParetoQ.  Gated
 * feed-forward, RMSNorms, rotation of whole heads.
 */
#include "arch/family.h"

const struct tn_family tn_family_llama = {
    .name = "llama",
    .model_types = {"llama"},
    .gguf = {{"llama", TERN_ACT_SILU}},
    .gguf_fixups = TN_FIX_QK_ROWS,
};
