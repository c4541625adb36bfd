/* SPDX-License-Identifier: MIT
 *
 * Fuzz target: the small files of a model folder.
 *
 * Input: config.json | NUL | generation_config.json or tokenizer_config.json.
 */
#include "fuzz/fuzz.h"

#include <assert.h>
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "convert/hf/hf_config.h"
#include "convert/hf/template_import.h"

/* Checks the guarantees of tn_config_parse. */
static void check(const struct tn_config_import *import)
{
    const struct tern_file_config *c = &import->config;
    assert(c->n_layer >= 1 && c->n_layer <= TERN_MAX_LAYERS);
    assert(c->hidden >= 1 && c->hidden <= TERN_MAX_DIM);
    assert(c->ffn >= 1 && c->ffn <= TERN_MAX_DIM);
    assert(c->vocab >= 1 && c->vocab <= TERN_MAX_VOCAB);
    assert(c->context >= 1 && c->context <= TERN_MAX_CONTEXT);
    assert(c->n_kv_head >= 1 && c->n_head % c->n_kv_head == 0);
    assert(c->head_dim >= 2 && c->head_dim % 2 == 0);
    assert((uint64_t)c->n_head * c->head_dim <= TERN_MAX_DIM);
    assert(c->rms_eps > 0 && c->rms_eps <= FLT_MAX);
    assert(c->norm < TERN_NORM_END && c->order < TERN_ORDER_END && c->embed_width < c->hidden);
    assert(c->score_cap == 0 || (c->score_cap >= TERN_MIN_CAP && c->score_cap <= TERN_MAX_CAP));
    assert(c->logit_cap == 0 || (c->logit_cap >= TERN_MIN_CAP && c->logit_cap <= TERN_MAX_CAP));
    for (uint32_t i = 0; i < c->n_layer; i++) {
        const struct tern_file_layer *layer = &import->layers[i];
        assert(layer->ffn != TERN_FFN_EXPERTS || c->n_experts_used <= c->n_experts);
        if (layer->mixer == TERN_MIXER_GATED_DELTA) {
            assert(layer->n_head % layer->n_kv_head == 0 && layer->value_dim > 0);
            continue;
        }
        assert(layer->rope_theta >= 1 && layer->rope_theta <= TERN_MAX_ROPE_THETA);
        assert(layer->rope_dims >= 2 && layer->rope_dims % 2 == 0);
        assert(layer->rope_dims <= c->head_dim && layer->score_scale > 0);
        assert(layer->rope_scale == 0 || (layer->rope_scale >= TERN_MIN_ROPE_SCALE &&
                                          layer->rope_scale <= TERN_MAX_ROPE_SCALE));
    }
    for (uint32_t j = 0; import->rope_factors && j < import->rope_dims / 2; j++)
        assert(import->rope_factors[j] >= TERN_MIN_ROPE_FACTOR);
    assert(c->bos_id == TERN_NO_ID || c->bos_id < c->vocab);
    assert(import->stop_ids.n <= TN_MAX_STOP_IDS);
    for (uint32_t i = 0; i < import->stop_ids.n; i++)
        assert(import->stop_ids.ids[i] < c->vocab);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const char *first = (const char *)data;
    const char *end = n ? memchr(data, 0, n) : NULL;
    const size_t n_first = end ? (size_t)(end - first) : n;
    const char *second = end ? end + 1 : NULL;
    const size_t n_second = end ? n - n_first - 1 : 0;
    struct tn_config_import import;
    struct tern_error err;
    if (tn_config_parse(&import, first, n_first, second, n_second, &err) == TERN_OK)
        check(&import);
    else
        assert(err.detail[0] != '\0' && !import.layers);
    tn_config_import_fini(&import);
    char *source;
    size_t n_source;
    if (second &&
        tn_template_parse(&source, &n_source, "config", second, n_second, &err) == TERN_OK) {
        assert(!source || (n_source > 0 && source[n_source] == '\0'));
        tn_free(source);
    }
    return 0;
}

#define SIZES                                                                                      \
    "\"hidden_size\":32,\"intermediate_size\":64,\"num_hidden_layers\":1,"                         \
    "\"num_attention_heads\":2,\"vocab_size\":40,\"max_position_embeddings\":128,"                 \
    "\"hidden_act\":\"relu2\",\"rms_norm_eps\":1e-05,"
#define EXPERTS                                                                                    \
    "\"num_experts\":4,\"num_experts_per_tok\":2,\"moe_intermediate_size\":16,"                    \
    "\"shared_expert_intermediate_size\":16,"
#define DELTA                                                                                      \
    "\"num_key_value_heads\":1,\"head_dim\":16,\"linear_num_value_heads\":4,"                      \
    "\"linear_num_key_heads\":2,\"linear_key_head_dim\":8,\"linear_value_head_dim\":8,"            \
    "\"linear_conv_kernel_dim\":4,\"full_attention_interval\":2,"
#define GPT2                                                                                       \
    "\"n_embd\":32,\"n_layer\":1,\"n_head\":4,\"n_positions\":64,\"vocab_size\":40,"                   \
    "\"layer_norm_epsilon\":1e-5,\"activation_function\":\"gelu_new\""
#define QUANT                                                                                      \
    "\"quantization_config\":{\"quant_method\":\"bitnet\",\"linear_class\":\"autobitlinear\","     \
    "\"quantization_mode\":\"online\",\"modules_to_not_convert\":[\"lm_head\"]}"

size_t fuzz_seed(uint32_t i, uint8_t *dst, size_t capacity)
{
    static const struct {
        const char *first;
        const char *second;
    } seeds[] = {
        {"{\"architectures\":[\"BitNetForCausalLM\"]," SIZES "\"rope_theta\":10000.0,"
         "\"tie_word_embeddings\":true,\"bos_token_id\":38,\"eos_token_id\":39," QUANT "}",
         "{\"eos_token_id\":[39,7]}"},
        {"{\"model_type\":\"bitnet\"," SIZES "\"num_key_value_heads\":1,\"head_dim\":16,"
         "\"rope_parameters\":{\"rope_type\":\"default\",\"rope_theta\":5e5},"
         "\"model_max_length\":1000000000000000019884624838656," QUANT "}",
         "{\"chat_template\":[{\"name\":\"default\",\"template\":\"{{ messages }}\"}]}"},
        {"{\"model_type\":\"maple\"," SIZES EXPERTS "\"num_key_value_heads\":1,\"head_dim\":16,"
         "\"sliding_window\":8,\"rope_theta\":10000,\"partial_rotary_factor\":0.5,"
         "\"layer_types\":[\"sliding_attention\"],\"num_shared_experts\":0}",
         "{}"},
        {"{\"model_type\":\"qwen3_next\"," SIZES EXPERTS DELTA "\"decoder_sparse_step\":1,"
         "\"mlp_only_layers\":[],\"norm_topk_prob\":true}",
         "{}"},
        {"{\"model_type\":\"qwen3_5_moe\",\"text_config\":{\"model_type\":"
         "\"qwen3_5_moe_text\"," SIZES EXPERTS DELTA "\"rope_parameters\":{\"rope_theta\":1e4,"
         "\"partial_rotary_factor\":0.25}}}",
         "{}"},
        {"{\"model_type\":\"gpt2\"," GPT2 ",\"n_inner\":null,\"scale_attn_weights\":true}", ""},
        {"{\"model_type\":\"gpt_bigcode\"," GPT2 ",\"multi_query\":true}", ""},
        {"{\"model_type\":\"codegen\"," GPT2 ",\"rotary_dim\":4}", ""},
        {"{\"model_type\":\"opt\",\"ffn_dim\":64,\"activation_function\":\"relu\","
         "\"do_layer_norm_before\":false,\"word_embed_proj_dim\":16," SIZES "\"x\":0}", ""},
        {"{\"model_type\":\"gpt_neox\",\"layer_norm_eps\":1e-5,\"rotary_pct\":0.25,"
         "\"use_parallel_residual\":true,\"rotary_emb_base\":10000," SIZES "\"x\":0}", ""},
        {"{\"model_type\":\"gemma2\",\"rope_theta\":10000,\"attn_logit_softcapping\":50.0,"
         "\"final_logit_softcapping\":30.0,\"query_pre_attn_scalar\":16,\"sliding_window\":8,"
         "\"hidden_activation\":\"gelu_pytorch_tanh\"," SIZES "\"x\":0}", ""},
        {"{\"model_type\":\"smollm3\",\"rope_theta\":5e6,\"no_rope_layers\":[0]," SIZES "\"x\":0}",
         ""},
        {"{\"weight_bits\":1,\"input_bits\":8}", "{\"chat_template\":\"{% for m in messages %}\"}"},
    };
    if (i >= sizeof seeds / sizeof *seeds)
        return 0;
    const size_t n_first = strlen(seeds[i].first) + 1;
    const size_t n_second = strlen(seeds[i].second);
    assert(n_first + n_second <= capacity);
    memcpy(dst, seeds[i].first, n_first);
    memcpy(dst + n_first, seeds[i].second, n_second);
    return n_first + n_second;
}
