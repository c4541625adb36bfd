/* SPDX-License-Identifier: MIT
 *
 * Readers of settings that several families share: windows, experts, soft caps.  The `spec` of a
 * family calls them; family.h has the contracts.
 */
#include <math.h>

#include "arch/family.h"
#include "base/compiler.h"
#include "base/error.h"

tern_status tn_spec_windows(struct tn_family_spec *s, const struct tn_values *v)
{
    static const struct tn_value window_value = {"sliding_window", "attention.sliding_window", 0,
                                                 TERN_MAX_CONTEXT};
    uint32_t window = 0;
    tern_status status = tn_values_integer(v, &window, &window_value, false);
    for (uint32_t i = 0; i < s->config->n_layer; i++)
        s->layers[i].window = window;
    return status;
}

tern_status tn_spec_qwen_windows(struct tn_family_spec *s, const struct tn_values *v)
{
    static const struct tn_value window_value = {"sliding_window", NULL, 1, TERN_MAX_CONTEXT};
    static const struct tn_value first_value = {"max_window_layers", NULL, 0, TERN_MAX_DIM};
    bool is_used = false;
    uint32_t window = tn_values_has_folder_key(v, "sliding_window") ? 0 : 4096, first = 28;
    tern_status status = tn_values_truth(v, &is_used, "use_sliding_window", NULL);
    if (!is_used)
        return status;
    status = tn_values_integer(v, &window, &window_value, false);
    if (status == TERN_OK)
        status = tn_values_integer(v, &first, &first_value, false);
    for (uint32_t i = 0; i < s->config->n_layer && status == TERN_OK; i++) {
        enum tn_layer_kind kind = TN_LAYER_UNSAID;
        status = v->layer_kind(v, &kind, i);
        if (kind == TN_LAYER_UNSAID ? i >= first : kind == TN_LAYER_SLIDING)
            s->layers[i].window = window;
    }
    return status;
}

/* Whether "mlp_only_layers" lists the layer, among its first n numbers. */
static tern_status is_listed_dense(bool *out, const struct tn_values *v, uint32_t layer, uint32_t n)
{
    tern_status status = TERN_OK;
    *out = false;
    for (uint32_t k = 0; k < n && status == TERN_OK && !*out; k++) {
        double listed = -1;
        status = v->element(v, &listed, "mlp_only_layers", k);
        *out = listed == layer;
    }
    return status;
}

tern_status tn_spec_dense_layers(struct tn_family_spec *s, const struct tn_values *v)
{
    static const struct tn_value step_value = {"decoder_sparse_step", NULL, 1, TERN_MAX_LAYERS};
    uint32_t step = 1, n_dense = 0;
    tern_status status = tn_values_integer(v, &step, &step_value, false);
    for (uint32_t i = 0; !v->is_gguf && i < s->config->n_layer && status == TERN_OK; i++) {
        bool is_dense;
        status = is_listed_dense(&is_dense, v, i, s->config->n_layer);
        if (!is_dense && (i + 1) % step == 0)
            continue;
        s->layers[i].ffn = TERN_FFN_GATED;
        n_dense++;
    }
    return status == TERN_OK && n_dense == s->config->n_layer
               ? tn_values_refuse(v, "\"mlp_only_layers\" or \"decoder_sparse_step\" without any "
                                     "layer of experts")
               : status;
}

tern_status tn_spec_shared_expert(struct tn_family_spec *s, const struct tn_values *v)
{
    static const struct tn_value ffn = {"shared_expert_intermediate_size",
                                        "expert_shared_feed_forward_length", 1, TERN_MAX_DIM};
    static const struct tn_value count = {NULL, "expert_shared_count", 0, 1e6};
    uint32_t n_shared = 1;
    tern_status status = tn_values_integer(v, &n_shared, &count, false);
    if (status == TERN_OK && n_shared > 1)
        status = tn_values_refuse(v, "\"expert_shared_count\" above 1");
    return status == TERN_OK ? tn_values_integer(v, &s->config->shared_ffn, &ffn, true) : status;
}

tern_status tn_spec_is_sliding(bool *out, const struct tn_values *v, uint32_t layer,
                               uint32_t pattern)
{
    static const struct tn_value pattern_value = {
        "sliding_window_pattern", "attention.sliding_window_pattern", 1, 1024};
    enum tn_layer_kind kind = TN_LAYER_UNSAID;
    tern_status status = v->layer_kind(v, &kind, layer);
    if (kind == TN_LAYER_UNSAID && status == TERN_OK)
        status = tn_values_integer(v, &pattern, &pattern_value, false);
    *out = kind == TN_LAYER_UNSAID ? (layer + 1) % pattern != 0 : kind == TN_LAYER_SLIDING;
    return status;
}

/* 0 and null mean no cap; without the key *out is unchanged. */
static tern_status read_cap(float *out, const struct tn_values *v, const char *name)
{
    const struct tn_value any = {name, name, 0, (double)TERN_MAX_CAP};
    const struct tn_value cap_value = {name, name, (double)TERN_MIN_CAP, (double)TERN_MAX_CAP};
    double cap = (double)*out;
    tern_status status = tn_values_number(v, &cap, &any, false);
    if (status == TERN_OK && cap != 0)
        status = tn_values_number(v, &cap, &cap_value, false);
    *out = (float)cap;
    return status;
}

tern_status tn_spec_gemma(struct tn_family_spec *s, const struct tn_values *v,
                          uint32_t n_layer_27b)
{
    static const struct tn_value scalar_value = {
        "query_pre_attn_scalar", "attention.query_pre_attn_scalar", 1e-3, 1e9};
    struct tern_file_config *c = s->config;
    double scalar = v->is_gguf && c->n_layer == n_layer_27b ? (double)c->hidden / c->n_head
                                                            : c->head_dim;
    c->embedding_scale = sqrtf((float)c->hidden);
    tern_status status = tn_values_number(v, &scalar, &scalar_value, !v->is_gguf);
    for (uint32_t i = 0; i < c->n_layer; i++)
        s->layers[i].score_scale = (float)(1 / sqrt(scalar));
    if (status == TERN_OK)
        status = read_cap(&c->score_cap, v, "attn_logit_softcapping");
    return status == TERN_OK ? read_cap(&c->logit_cap, v, "final_logit_softcapping") : status;
}

/* Keys of other experts in GGUF files: 0 is equivalent to absent. */
static tern_status check_routing(const struct tn_values *v)
{
    static const struct tn_value scale_value = {NULL, "expert_weights_scale", 0, 1e9};
    static const struct tn_value gate_value = {NULL, "expert_gating_func", 0, 1e6};
    static const struct tn_value group_value = {NULL, "expert_group_count", 0, 1e6};
    double scale = 0;
    uint32_t gate = 0, n_groups = 0;
    tern_status status = tn_values_number(v, &scale, &scale_value, false);
    if (status == TERN_OK && scale != 0 && scale != 1)
        status = tn_values_refuse(v, "\"expert_weights_scale\" other than 1");
    if (status == TERN_OK)
        status = tn_values_integer(v, &gate, &gate_value, false);
    if (status == TERN_OK && gate > 1)
        status = tn_values_refuse(v, "\"expert_gating_func\" other than 1 (softmax)");
    if (status == TERN_OK)
        status = tn_values_integer(v, &n_groups, &group_value, false);
    if (status == TERN_OK && n_groups > 1)
        status = tn_values_refuse(v, "\"expert_group_count\" above 1");
    return status;
}

tern_status tn_spec_experts(struct tn_family_spec *s, const struct tn_values *v, bool renormalises)
{
    static const struct tn_value count = {"num_local_experts|num_experts", "expert_count", 1,
                                          TERN_MAX_EXPERTS};
    static const struct tn_value ffn = {"moe_intermediate_size", "expert_feed_forward_length", 1,
                                        TERN_MAX_DIM};
    struct tn_value used = {"num_experts_per_tok", "expert_used_count", 1, 0};
    struct tern_file_config *c = s->config;
    tern_status status = check_routing(v);
    if (status == TERN_OK)
        status = tn_values_integer(v, &c->n_experts, &count, true);
    used.max = TN_MIN(c->n_experts, TERN_MAX_EXPERTS_USED);
    if (status == TERN_OK)
        status = tn_values_integer(v, &c->n_experts_used, &used, true);
    if (status == TERN_OK)
        status = tn_values_integer(v, &c->expert_ffn, &ffn, !v->is_gguf);
    if (status == TERN_OK && c->expert_ffn == 0) /* as in llama.cpp; tensors are compared with it */
        c->expert_ffn = c->ffn / c->n_experts_used;
    if (status == TERN_OK && c->expert_ffn == 0)
        status = tn_fail(v->err, TERN_INPUT,
                         "expert_feed_forward_length is missing, and feed_forward_length %u is "
                         "less than the %u experts that a token uses", c->ffn, c->n_experts_used);
    c->expert_flags = renormalises ? TERN_EXPERTS_RENORMALISED : 0;
    for (uint32_t i = 0; i < c->n_layer; i++)
        s->layers[i].ffn = TERN_FFN_EXPERTS;
    return status;
}
