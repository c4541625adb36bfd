/* SPDX-License-Identifier: MIT
 *
 * CodeGen: attention and a feed-forward without a gate share one LayerNorm; the first rotary_dim
 * values of a head rotate in interleaved pairs, which the converter reorders to halves.  q, v and k
 * are in four blocks of rows.
 */
#include "arch/families/gpt2.h"

static const struct tn_family_name names[] = {
    {TERN_ROLE_EMBED, "wte", NULL},
    {TERN_ROLE_FINAL_NORM, "ln_f", NULL},
    {TERN_ROLE_FINAL_NORM_BIAS, "ln_f", NULL},
    {TERN_ROLE_ATTN_NORM, "ln_1", NULL},
    {TERN_ROLE_ATTN_NORM_BIAS, "ln_1", NULL},
    {TERN_ROLE_O, "attn.out_proj", NULL},
    {TERN_ROLE_UP, "mlp.fc_in", NULL},
    {TERN_ROLE_UP_BIAS, "mlp.fc_in", NULL},
    {TERN_ROLE_DOWN, "mlp.fc_out", NULL},
    {TERN_ROLE_DOWN_BIAS, "mlp.fc_out", NULL},
    {0, NULL, NULL},
};

static const struct tn_fused fused[] = {
    {"attn.qkv_proj", NULL, {TERN_ROLE_Q, TERN_ROLE_V, TERN_ROLE_K}, TN_FUSED_BY_QUARTER},
    {NULL, NULL, {0}, TN_FUSED_PARTS},
};

static tern_status codegen_spec(struct tn_family_spec *s, const struct tn_values *v)
{
    const struct tn_value dims_value = {"rotary_dim", NULL, 2, s->config->head_dim};
    uint32_t dims = s->config->head_dim;
    tern_status status = tn_values_integer(v, &dims, &dims_value, false);
    if (status == TERN_OK && dims % 2)
        status = tn_values_refuse(v, "an odd \"rotary_dim\"");
    if (status == TERN_OK && s->config->n_head % 4)
        status = tn_values_refuse(v, "\"n_head\" that is not a multiple of 4");
    if (status == TERN_OK && s->config->n_kv_head != s->config->n_head)
        status = tn_values_refuse(v, "a key head for several query heads");
    for (uint32_t i = 0; i < s->config->n_layer && status == TERN_OK; i++)
        s->layers[i].rope_dims = dims;
    return status;
}

const struct tn_family tn_family_codegen = {
    .name = "codegen",
    .model_types = {"codegen"},
    .prefixes = {"transformer."},
    .defaults = "{\"rope_theta\": 10000, \"tie_word_embeddings\": false}",
    .names = names,
    .fused = fused,
    .keys = tn_gpt2_keys,
    .layers = "h",
    .buffers = {".attn.causal_mask", ".attn.bias", ".attn.masked_bias"},
    .needs = {TERN_ROLE_UP_BIAS, TERN_ROLE_DOWN_BIAS, TERN_ROLE_ATTN_NORM_BIAS,
              TERN_ROLE_FINAL_NORM_BIAS, TERN_ROLE_HEAD_BIAS},
    .folder_fixups = TN_FIX_QK_ROWS,
    .norm = TERN_NORM_LAYER,
    .order = TERN_ORDER_SHARED,
    .ffn = TERN_FFN_PLAIN,
    .ffn_factor = 4,
    .rotates_partly = true,
    .has_gpt2_tokenizer = true,
    .spec = codegen_spec,
};
