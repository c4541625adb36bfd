/* SPDX-License-Identifier: MIT
 *
 * The gated delta rule of Qwen3-Next and Qwen3.5 as their sources describe it: sizes of heads, and
 * the layers that have it.  Called by the `spec` of these families.
 */
#include "arch/family.h"
#include "base/compiler.h"
#include "base/error.h"

struct delta {
    uint32_t n_head, n_kv_head, head_dim, value_dim, conv_taps;
};

static tern_status read_delta(struct delta *d, const struct tn_values *v)
{
    static const struct tn_value values[] = {
        {"linear_num_value_heads", "ssm.time_step_rank", 1, TERN_MAX_DIM},
        {"linear_num_key_heads", "ssm.group_count", 1, TERN_MAX_DIM},
        {"linear_key_head_dim", "ssm.state_size", 2, TERN_MAX_DELTA_DIM},
        {"linear_conv_kernel_dim", "ssm.conv_kernel", 1, TERN_MAX_CONV_TAPS},
    };
    uint32_t *const out[] = {&d->n_head, &d->n_kv_head, &d->head_dim, &d->conv_taps};
    tern_status status = TERN_OK;
    for (uint32_t i = 0; i < TN_COUNT_OF(values) && status == TERN_OK; i++)
        status = tn_values_integer(v, out[i], &values[i], true);
    return status;
}

/* Folders state the number of values per head, GGUF files the total over all heads. */
static tern_status read_value_dim(struct delta *d, const struct tn_values *v)
{
    const uint32_t all = v->is_gguf ? d->n_head : 1;
    const struct tn_value value = {"linear_value_head_dim", "ssm.inner_size", 1,
                                   TERN_MAX_DELTA_DIM * (double)all};
    uint32_t n = 0;
    tern_status status = tn_values_integer(v, &n, &value, true);
    d->value_dim = n / all;
    if (status == TERN_OK && n % all)
        status = tn_fail(v->err, TERN_INPUT, "ssm.inner_size %u is not a multiple of "
                         "ssm.time_step_rank %u", n, all);
    return status;
}

static tern_status check_delta(const struct delta *d, const struct tn_values *v)
{
    if (d->n_head % d->n_kv_head)
        return tn_fail(v->err, TERN_INPUT,
                       "%u key heads of a gated delta rule do not divide its %u value heads",
                       d->n_kv_head, d->n_head);
    if (d->head_dim % 2)
        return tn_fail(v->err, TERN_INPUT,
                       "key heads of a gated delta rule have %u values, but must have an even "
                       "number", d->head_dim);
    if ((uint64_t)d->n_head * d->head_dim > TERN_MAX_DIM ||
        2 * (uint64_t)d->n_kv_head * d->head_dim + (uint64_t)d->n_head * d->value_dim >
            TERN_MAX_DIM)
        return tn_fail(v->err, TERN_INPUT,
                       "a gated delta rule of %u heads with %u and %u values: all together may "
                       "have %u", d->n_head, d->head_dim, d->value_dim, TERN_MAX_DIM);
    return TERN_OK;
}

static void set_delta(struct tern_file_layer *l, const struct delta *d, uint8_t flags)
{
    *l = (struct tern_file_layer){
        .mixer = TERN_MIXER_GATED_DELTA,
        .ffn = l->ffn,
        .activation = l->activation,
        .n_head = d->n_head,
        .n_kv_head = d->n_kv_head,
        .head_dim = d->head_dim,
        .ffn_dim = l->ffn_dim,
        .value_dim = (uint16_t)d->value_dim,
        .conv_taps = (uint8_t)d->conv_taps,
        .delta_flags = flags,
    };
}

/* The source lists its layers, or every interval-th layer is attention. */
static tern_status is_linear(bool *out, const struct tn_values *v, uint32_t layer)
{
    static const struct tn_value interval_value = {"full_attention_interval",
                                                   "full_attention_interval", 1, TERN_MAX_LAYERS};
    enum tn_layer_kind kind = TN_LAYER_UNSAID;
    uint32_t interval = 4;
    tern_status status = v->layer_kind(v, &kind, layer);
    if (kind == TN_LAYER_UNSAID && status == TERN_OK)
        status = tn_values_integer(v, &interval, &interval_value, false);
    if (kind == TN_LAYER_SLIDING)
        status = tn_fail(v->err, TERN_UNSUPPORTED, "layer %u has a window", layer);
    *out = kind == TN_LAYER_UNSAID ? (layer + 1) % interval != 0 : kind == TN_LAYER_LINEAR;
    return status;
}

/* The bias of q would have values for the output gate, too. */
static tern_status refuse_biases(const struct tn_values *v)
{
    bool has_biases = false;
    tern_status status = tn_values_truth(v, &has_biases, "attention_bias", NULL);
    if (status == TERN_OK && has_biases)
        status = tn_values_refuse(v, "\"attention_bias\": true");
    return status;
}

tern_status tn_spec_gated_delta(struct tn_family_spec *s, const struct tn_values *v, uint8_t flags)
{
    struct delta delta;
    tern_status status = refuse_biases(v);
    if (status == TERN_OK)
        status = read_delta(&delta, v);
    if (status == TERN_OK)
        status = read_value_dim(&delta, v);
    if (status == TERN_OK)
        status = check_delta(&delta, v);
    for (uint32_t i = 0; i < s->config->n_layer && status == TERN_OK; i++) {
        bool linear = false;
        status = is_linear(&linear, v, i);
        if (linear)
            set_delta(&s->layers[i], &delta, flags);
    }
    return status;
}
