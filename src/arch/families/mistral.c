/* SPDX-License-Identifier: MIT
 *
 * Mistral: LLaMA with a window in all layers, or null since its version 0.2.  Mistral Small 3.1
 * also takes images.  GGUF files use the architecture llama and omit the window.
 */
#include "arch/family.h"

const struct tn_family tn_family_mistral = {
    .name = "mistral",
    .model_types = {"mistral"},
    .prefixes = {"language_model.model.", "model.language_model."},
    .skipped = {"vision_tower.", "multi_modal_projector.", "model.vision_tower.",
                "model.multi_modal_projector."},
    .defaults = "{\"sliding_window\": 4096}",
    .has_windows = true,
    .spec = tn_spec_windows,
};
