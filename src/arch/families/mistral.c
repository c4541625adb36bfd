/* SPDX-License-Identifier: MIT
 *
 * Mistral: LLaMA with a window in all layers, or null since its version 0.2.  GGUF files use the
 * architecture llama and omit the window.
 */
#include "arch/family.h"

const struct tn_family tn_family_mistral = {
    .name = "mistral",
    .model_types = {"mistral"},
    .defaults = "{\"sliding_window\": 4096}",
    .has_windows = true,
    .spec = tn_spec_windows,
};
