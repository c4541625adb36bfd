/* SPDX-License-Identifier: MIT
 *
 * GPT-BigCode (StarCoder 1): GPT-2 with one key head, and projections as [rows, columns].
 */
#include "arch/families/gpt2.h"

static tern_status gpt_bigcode_spec(struct tn_family_spec *s, const struct tn_values *v)
{
    bool is_multi_query = true;
    tern_status status = tn_values_truth(v, &is_multi_query, "multi_query", NULL);
    if (status == TERN_OK && !is_multi_query)
        status = tn_values_refuse(v, "\"multi_query\": false");
    s->config->n_kv_head = v->is_gguf ? s->config->n_kv_head : 1;
    return status == TERN_OK ? tn_gpt2_check_scores(v) : status;
}

const struct tn_family tn_family_gpt_bigcode = {
    .name = "gpt-bigcode",
    .model_types = {"gpt_bigcode"},
    .prefixes = {"transformer."},
    .defaults = "{\"tie_word_embeddings\": true}",
    .gguf = {{"starcoder", TERN_ACT_GELU_TANH}},
    .names = tn_gpt2_names,
    .fused = tn_gpt2_fused,
    .keys = tn_gpt2_keys,
    .layers = "h",
    .buffers = {".attn.bias", ".attn.masked_bias"},
    .needs = {TERN_ROLE_Q_BIAS, TERN_ROLE_K_BIAS, TERN_ROLE_V_BIAS, TERN_ROLE_O_BIAS,
              TERN_ROLE_UP_BIAS, TERN_ROLE_DOWN_BIAS, TERN_ROLE_ATTN_NORM_BIAS,
              TERN_ROLE_FFN_NORM_BIAS, TERN_ROLE_FINAL_NORM_BIAS,
              TERN_ROLE_POSITIONS},
    .norm = TERN_NORM_LAYER,
    .ffn = TERN_FFN_PLAIN,
    .ffn_factor = 4,
    .gelu = TERN_ACT_GELU_ERF,
    .has_positions = true,
    .spec = gpt_bigcode_spec,
};
