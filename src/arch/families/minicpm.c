/* SPDX-License-Identifier: MIT
 *
 * MiniCPM: LLaMA with scaled embeddings, branches and logits, whose factors have separate keys in
 * its configuration.
 */
#include <math.h>

#include "arch/family.h"

/* As in modeling_minicpm.py. */
static tern_status folder_scales(struct tern_file_config *c, const struct tn_values *v)
{
    double embedding = 1, depth = 1, base = 1;
    tern_status status = v->number(v, &embedding, "scale_emb", 1e-6, 1e6, true);
    if (status == TERN_OK)
        status = v->number(v, &depth, "scale_depth", 1e-6, 1e6, true);
    if (status == TERN_OK)
        status = v->number(v, &base, "dim_model_base", 1, 1e9, true);
    c->embedding_scale = (float)embedding;
    c->residual_scale = (float)(depth / sqrt((double)c->n_layer));
    c->logit_scale = (float)(base / (double)c->hidden);
    return status;
}

/* Files of the first months have no keys: all models published then share 12, a depth of 1.4 and a
 * base of 256. */
static tern_status gguf_scales(struct tern_file_config *c, const struct tn_values *v)
{
    double embedding = 12, residual = 1.4 / sqrt((double)c->n_layer);
    double logits = (double)c->hidden / 256;
    tern_status status = v->number(v, &embedding, "embedding_scale", 1e-6, 1e6, false);
    if (status == TERN_OK)
        status = v->number(v, &residual, "residual_scale", 1e-6, 1e6, false);
    if (status == TERN_OK)
        status = v->number(v, &logits, "logit_scale", 1e-6, 1e6, false);
    c->embedding_scale = (float)embedding;
    c->residual_scale = (float)residual;
    c->logit_scale = (float)(1 / logits);
    return status;
}

static tern_status minicpm_spec(struct tn_family_spec *s, const struct tn_values *v)
{
    return v->is_gguf ? gguf_scales(s->config, v) : folder_scales(s->config, v);
}

const struct tn_family tn_family_minicpm = {
    .name = "minicpm",
    .model_types = {"minicpm"},
    .gguf = {{"minicpm", TERN_ACT_SILU}},
    .gguf_fixups = TN_FIX_QK_ROWS,
    .spec = minicpm_spec,
};
