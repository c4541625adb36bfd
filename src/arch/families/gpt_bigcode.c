/* SPDX-License-Identifier: MIT
 *
 * GPT-BigCode (StarCoder 1): GPT-2 with projections as [rows, columns], and with one key head
 * ("multi_query") or one per query head.  Folders store, for each key head, its queries, key and
 * value; GGUF files all q, then all k, then all v.
 */
#include "arch/families/gpt2.h"

#define QKV {TERN_ROLE_Q, TERN_ROLE_K, TERN_ROLE_V}
#define QKV_BIAS {TERN_ROLE_Q_BIAS, TERN_ROLE_K_BIAS, TERN_ROLE_V_BIAS}
static const struct tn_fused fused[] = {
    {"attn.c_attn", NULL, QKV, TN_FUSED_BY_KEY_HEAD},
    {"attn.c_attn", NULL, QKV_BIAS, TN_FUSED_BY_KEY_HEAD},
    {NULL, "attn_qkv", QKV, TN_FUSED_PARTS},
    {NULL, "attn_qkv", QKV_BIAS, TN_FUSED_PARTS},
    {NULL, NULL, {0}, TN_FUSED_PARTS},
};

static tern_status gpt_bigcode_spec(struct tn_family_spec *s, const struct tn_values *v)
{
    bool is_multi_query = true;
    tern_status status = tn_values_truth(v, &is_multi_query, "multi_query", NULL);
    if (!v->is_gguf)
        s->config->n_kv_head = is_multi_query ? 1 : s->config->n_head;
    return status == TERN_OK ? tn_gpt2_spec(s, v) : status;
}

const struct tn_family tn_family_gpt_bigcode = {
    .name = "gpt-bigcode",
    .model_types = {"gpt_bigcode"},
    .prefixes = {"transformer."},
    .defaults = "{\"tie_word_embeddings\": true}",
    .gguf = {{"starcoder", TERN_ACT_GELU_TANH}},
    .names = tn_gpt2_names,
    .fused = fused,
    .keys = tn_gpt2_keys,
    .layers = "h",
    .buffers = {".attn.bias", ".attn.masked_bias"},
    .needs = {TN_NEEDS_EVERY_BIAS, TERN_ROLE_POSITIONS},
    .norm = TERN_NORM_LAYER,
    .ffn = TERN_FFN_PLAIN,
    .ffn_factor = 4,
    .has_positions = true,
    .spec = gpt_bigcode_spec,
};
