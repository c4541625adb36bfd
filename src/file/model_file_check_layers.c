/* SPDX-License-Identifier: MIT
 *
 * Checks of a .tern file: the records of its layers, the sizes of experts, and the draft head.
 * Called by tn_model_file_check.
 */
#include <assert.h>
#include <math.h>

#include "base/bits.h"
#include "base/compiler.h"
#include "base/error.h"
#include "file/model_file_check.h"

/* ---- one layer ---- */

static tern_status check_rotation(struct tn_mcheck *c, const struct tern_file_layer *l,
                                  const struct tn_layer_dims *dims)
{
    if (l->rope != TERN_ROPE_HALF && l->rope != TERN_ROPE_NONE)
        return tn_mcheck_unknown(c, "layers.rope", l->rope);
    tern_status status = tn_mcheck_range(c, "layers.rope_dims", l->rope_dims, 2, dims->head_dim);
    if (!status && l->rope_dims % 2)
        status = tn_fail(c->err, TERN_INPUT, "%s: layers.rope_dims is %u, must be even", c->name,
                         l->rope_dims);
    if (!status && !(l->rope_theta >= 1 && l->rope_theta <= TERN_MAX_ROPE_THETA))
        status = tn_fail(c->err, TERN_INPUT, "%s: layers.rope_theta is %g, allowed are 1 to %g",
                         c->name, l->rope_theta, TERN_MAX_ROPE_THETA);
    if (!status && l->rope_scale != 0 &&
        !(l->rope_scale >= TERN_MIN_ROPE_SCALE && l->rope_scale <= TERN_MAX_ROPE_SCALE)) /* rejects
                                                                                          * NaN */
        status = tn_fail(c->err, TERN_INPUT, "%s: layers.rope_scale is %g, allowed are 0 and %g to "
                         "%g", c->name, (double)l->rope_scale, (double)TERN_MIN_ROPE_SCALE,
                         (double)TERN_MAX_ROPE_SCALE);
    return status;
}

static tern_status check_attention(struct tn_mcheck *c, const struct tern_file_layer *l,
                                   const struct tn_layer_dims *dims)
{
    tern_status status = check_rotation(c, l, dims);
    if (!status)
        status = tn_mcheck_range(c, "layers.window", l->window, 0, TERN_MAX_CONTEXT);
    if (!status)
        status = tn_mcheck_positive(c, "layers.score_scale", l->score_scale);
    if (!status)
        status = tn_mcheck_equal(c, "layers.value_dim", l->value_dim, 0);
    if (!status)
        status = tn_mcheck_equal(c, "layers.conv_taps", l->conv_taps, 0);
    return status ? status : tn_mcheck_equal(c, "layers.delta_flags", l->delta_flags, 0);
}

static tern_status check_delta_flags(struct tn_mcheck *c, uint32_t flags)
{
    if (flags & ~(TERN_DELTA_TILED | TERN_DELTA_OUT_GROUPED) || flags == TERN_DELTA_OUT_GROUPED)
        return tn_mcheck_unknown(c, "layers.delta_flags", flags);
    return TERN_OK;
}

static tern_status check_gated_delta(struct tn_mcheck *c, const struct tern_file_layer *l,
                                     const struct tn_layer_dims *dims)
{
    tern_status status = tn_mcheck_range(c, "layers.value_dim", l->value_dim, 1,
                                         TERN_MAX_DELTA_DIM);
    if (!status)
        status = tn_mcheck_range(c, "layers.conv_taps", l->conv_taps, 1, TERN_MAX_CONV_TAPS);
    if (!status)
        status = tn_mcheck_range(c, "layers.head_dim", dims->head_dim, 2, TERN_MAX_DELTA_DIM);
    if (!status)
        status = tn_mcheck_range(c, "layers.n_head * value_dim",
                                 (uint64_t)dims->n_head * dims->value_dim, 1, TERN_MAX_DIM);
    if (!status) /* no overflow: n_kv_head is at most n_head */
        status = tn_mcheck_range(c, "channels of the convolution", dims->channels, 1,
                                 TERN_MAX_DIM);
    if (!status)
        status = check_delta_flags(c, l->delta_flags);
    if (!status && (l->rope || l->rope_dims || l->window || l->score_scale != 0 ||
                    l->rope_theta != 0 || l->rope_scale != 0))
        status = tn_fail(c->err, TERN_INPUT,
                         "%s: layers.rope, rope_dims, rope_theta, rope_scale, window and "
                         "score_scale of a gated delta rule must be 0",
                         c->name);
    return status;
}

/* Checks the fields of the mixers, each of which also requires 0 in those of the others. */
typedef tern_status check_mixer_fn(struct tn_mcheck *c, const struct tern_file_layer *l,
                                   const struct tn_layer_dims *dims);

static check_mixer_fn *const check_mixer[] = {
    [TERN_MIXER_ATTENTION] = check_attention,
    [TERN_MIXER_GATED_DELTA] = check_gated_delta,
};
static_assert(TN_COUNT_OF(check_mixer) == TERN_MIXER_END, "the fields of every mixer are checked");

static tern_status check_layer(struct tn_mcheck *c, const struct tern_file_layer *l)
{
    const struct tn_layer_dims dims = tn_layer_dims(c->file->spec.config, l);
    if (l->mixer == 0 || l->mixer >= TERN_MIXER_END)
        return tn_mcheck_unknown(c, "layers.mixer", l->mixer);
    if (l->ffn == 0 || l->ffn >= TERN_FFN_END)
        return tn_mcheck_unknown(c, "layers.ffn", l->ffn);
    if (!tn_activation_name(l->activation))
        return tn_mcheck_unknown(c, "layers.activation", l->activation);
    tern_status status = tn_mcheck_layer_dims(c, &dims);
    if (!status)
        status = check_mixer[l->mixer](c, l, &dims);
    return status ? status
                  : tn_mcheck_reserved(c, "layers.reserved", l->reserved, sizeof l->reserved);
}

/* ---- draft head ---- */

/* Sizes of a model with a draft head: its input is two states side by side. */
static tern_status check_draft_sizes(struct tn_mcheck *c, const struct tern_file_config *m)
{
    if (m->flags & TERN_MODEL_NO_HEAD)
        return tn_fail(c->err, TERN_INPUT, "%s: a model without a head has a draft head", c->name);
    tern_status status = tn_mcheck_range(c, "2 * hidden", 2 * (uint64_t)m->hidden, 2,
                                         TERN_MAX_DIM);
    return status ? status : tn_mcheck_equal(c, "embed_width", m->embed_width, 0);
}

/* The layer after the others belongs to a draft head, which is limited to what engine/draft_head.h
 * runs. */
static tern_status check_draft(struct tn_mcheck *c, const struct tern_file_layer *l, uint32_t i)
{
    const bool is_draft = i >= c->file->spec.config->n_layer;
    tern_status status = tn_mcheck_equal(c, "layers.is_draft", l->is_draft, is_draft);
    if (!status && is_draft && l->mixer != TERN_MIXER_ATTENTION)
        status = tn_fail(c->err, TERN_UNSUPPORTED, "%s: layers.mixer %u is not supported in a "
                         "draft head", c->name, l->mixer);
    if (!status && is_draft && l->ffn == TERN_FFN_EXPERTS)
        status = tn_fail(c->err, TERN_UNSUPPORTED, "%s: layers.ffn %u is not supported in a draft "
                         "head", c->name, l->ffn);
    return status;
}

/* ---- all layers ---- */

static tern_status check_layers(struct tn_mcheck *c, const struct tern_file_config *m)
{
    const uint32_t n = tn_n_all_layers(m);
    const struct tern_file_layer *layers = NULL;
    tern_status status = tn_mcheck_records(c, "layers", m->layers, 8, sizeof *layers);
    if (!status)
        status = tn_mcheck_equal(c, "layers.bytes", m->layers.bytes,
                                 n * (uint64_t)sizeof *layers);
    if (!status)
        layers = (const void *)((const unsigned char *)m + m->layers.offset);
    for (uint32_t i = 0; i < n && !status; i++) {
        status = check_layer(c, &layers[i]);
        if (!status)
            status = check_draft(c, &layers[i], i);
    }
    c->file->spec.layers = layers;
    return status;
}

static bool has_experts(const struct tn_model_spec *spec)
{
    uint32_t i = 0;
    while (i < spec->config->n_layer && spec->layers[i].ffn != TERN_FFN_EXPERTS)
        i++;
    return i < spec->config->n_layer;
}

/* Checks sizes of experts; all 0 without them. */
static tern_status check_experts(struct tn_mcheck *c, const struct tern_file_config *m)
{
    const uint32_t least = has_experts(&c->file->spec) ? 1 : 0, most = least ? UINT32_MAX : 0;
    tern_status status = tn_mcheck_range(c, "n_experts", m->n_experts, least,
                                         TN_MIN(most, TERN_MAX_EXPERTS));
    if (!status)
        status = tn_mcheck_range(c, "n_experts_used", m->n_experts_used, least,
                                 TN_MIN(m->n_experts, TERN_MAX_EXPERTS_USED));
    if (!status)
        status = tn_mcheck_range(c, "expert_ffn", m->expert_ffn, least, TN_MIN(most, TERN_MAX_DIM));
    if (!status)
        status = tn_mcheck_range(c, "shared_ffn", m->shared_ffn, 0, TN_MIN(most, TERN_MAX_DIM));
    if (!status && m->expert_flags & ~(least ? TERN_EXPERTS_RENORMALISED : 0u))
        status = tn_mcheck_unknown(c, "expert_flags", m->expert_flags);
    if (!status && !(m->expert_limit >= 0 && m->expert_limit < INFINITY)) /* rejects NaN */
        status = tn_fail(c->err, TERN_INPUT,
                         "%s: expert_limit is %g, must be finite and not negative", c->name,
                         (double)m->expert_limit);
    return status;
}

tern_status tn_mcheck_layers(struct tn_mcheck *c)
{
    const struct tern_file_config *m = c->file->spec.config;
    tern_status status = tn_mcheck_range(c, "n_draft_layer", m->n_draft_layer, 0, 1);
    if (!status && m->n_draft_layer)
        status = check_draft_sizes(c, m);
    if (!status)
        status = check_layers(c, m);
    return status ? status : check_experts(c, m);
}
