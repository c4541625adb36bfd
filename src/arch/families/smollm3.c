/* SPDX-License-Identifier: MIT
 *
 * SmolLM3: LLaMA without rotation in every fourth layer.  GGUF files do not state which layers
 * these are.
 */
#include "arch/family.h"

static tern_status smollm3_spec(struct tn_family_spec *s, const struct tn_values *v)
{
    static const struct tn_value interval_value = {"no_rope_layer_interval", NULL, 1,
                                                   TERN_MAX_LAYERS};
    uint32_t interval = 4;
    tern_status status = tn_values_integer(v, &interval, &interval_value, false);
    for (uint32_t i = 0; i < s->config->n_layer && status == TERN_OK; i++) {
        double rotates = (i + 1) % interval != 0;
        if (!v->is_gguf)
            status = v->element(v, &rotates, "no_rope_layers", i);
        if (rotates == 0)
            s->layers[i].rope = TERN_ROPE_NONE;
    }
    return status;
}

const struct tn_family tn_family_smollm3 = {
    .name = "smollm3",
    .model_types = {"smollm3"},
    .defaults = "{\"tie_word_embeddings\": true}",
    .gguf = {{"smollm3", TERN_ACT_SILU}},
    .gguf_fixups = TN_FIX_QK_ROWS,
    .rope_theta = 2e6,
    .spec = smollm3_spec,
};
