/* SPDX-License-Identifier: MIT
 *
 * Granite 3: LLaMA with scaled embeddings, branches, attention and logits.  In GGUF files the keys
 * for these apply to any architecture.
 */
#include "arch/families/granite.h"

#include "base/compiler.h"

tern_status tn_granite_spec(struct tn_family_spec *s, const struct tn_values *v)
{
    static const char *const names[] = {"attention_multiplier", "embedding_multiplier",
                                        "residual_multiplier", "logits_scaling"};
    double scales[TN_COUNT_OF(names)] = {1, 1, 1, 1};
    tern_status status = TERN_OK;
    if (v->is_gguf)
        return TERN_OK;
    for (size_t i = 0; i < TN_COUNT_OF(names) && status == TERN_OK; i++)
        status = v->number(v, &scales[i], names[i], 1e-6, 1e6, false);
    for (uint32_t i = 0; i < s->config->n_layer; i++)
        s->layers[i].score_scale = (float)scales[0];
    s->config->embedding_scale = (float)scales[1];
    s->config->residual_scale = (float)scales[2];
    s->config->logit_scale = (float)(1 / scales[3]);
    return status;
}

const struct tn_family tn_family_granite = {
    .name = "granite",
    .model_types = {"granite"},
    .gguf = {{"granite", TERN_ACT_SILU}},
    .gguf_fixups = TN_FIX_QK_ROWS,
    .spec = tn_granite_spec,
};
