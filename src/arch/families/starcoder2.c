/* SPDX-License-Identifier: MIT
 *
 * StarCoder2: LayerNorms, biases everywhere unless "use_bias" is false, a feed-forward without a
 * gate, and a window in all layers.
 */
#include "arch/family.h"

static const struct tn_family_name names[] = {
    {TERN_ROLE_UP, "mlp.c_fc", NULL},
    {TERN_ROLE_UP_BIAS, "mlp.c_fc", NULL},
    {TERN_ROLE_DOWN, "mlp.c_proj", NULL},
    {TERN_ROLE_DOWN_BIAS, "mlp.c_proj", NULL},
    {0, NULL, NULL},
};

static const struct tn_family_key keys[] = {{"rms_norm_eps", "norm_epsilon"},
                                            {"attention_bias", "use_bias"},
                                            {"mlp_bias", "use_bias"},
                                            {NULL, NULL}};

const struct tn_family tn_family_starcoder2 = {
    .name = "starcoder2",
    .model_types = {"starcoder2"},
    .defaults = "{\"tie_word_embeddings\": true}",
    .gguf = {{"starcoder2", TERN_ACT_GELU_TANH}},
    .names = names,
    .keys = keys,
    .needs = {TN_NEEDS_EVERY_BIAS},
    .norm = TERN_NORM_LAYER,
    .ffn = TERN_FFN_PLAIN,
    .has_windows = true,
    .has_gpt2_tokenizer = true,
    .spec = tn_spec_windows,
};
