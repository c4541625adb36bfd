/* SPDX-License-Identifier: MIT
 *
 * Tensor names and shapes of the BitNet family.
 */
#include "tensor_plan.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/log.h"
#include "file/mfile.h"

/* One layer, sorted by role number. */
static const struct {
    enum tern_role role;
    const char *name;
} layer_roles[] = {
    {TERN_ROLE_ATTN_NORM, "input_layernorm"},
    {TERN_ROLE_FFN_NORM, "post_attention_layernorm"},
    {TERN_ROLE_ATTN_SUB_NORM, "self_attn.attn_sub_norm"},
    {TERN_ROLE_FFN_SUB_NORM, "mlp.ffn_sub_norm"},
    {TERN_ROLE_Q, "self_attn.q_proj"},
    {TERN_ROLE_K, "self_attn.k_proj"},
    {TERN_ROLE_V, "self_attn.v_proj"},
    {TERN_ROLE_O, "self_attn.o_proj"},
    {TERN_ROLE_GATE, "mlp.gate_proj"},
    {TERN_ROLE_UP, "mlp.up_proj"},
    {TERN_ROLE_DOWN, "mlp.down_proj"},
};

#define EMBED_NAME "model.embed_tokens.weight"
#define HEAD_NAME "lm_head.weight"
#define NORM_NAME "model.norm.weight"

struct planner {
    struct tn_tensor_plan *plan;
    const struct tern_file_config *config;
    struct tn_source *source;
    enum tern_head_type head;
    struct tern_error *err;
};

/* ---- finding and checking one tensor of the source ---- */

static tern_status require(struct planner *p, const char *name, struct tn_source_tensor **out)
{
    *out = tn_source_find(p->source, name);
    if (!*out)
        return tn_fail(p->err, TERN_INPUT, "tensor \"%s\" is missing", name);
    (*out)->used = true;
    return TERN_OK;
}

/* Shape must be [rows, cols], or [cols] when rows is 0. */
static tern_status check_shape(struct planner *p, const struct tn_source_tensor *t, uint32_t rows,
                               uint32_t cols)
{
    const uint32_t rank = rows ? 2 : 1;
    if (t->rank == rank && t->shape[rank - 1] == cols && (!rows || t->shape[0] == rows))
        return TERN_OK;
    char shape[200];
    char expected[32];
    if (rows)
        snprintf(expected, sizeof expected, "[%u, %u]", rows, cols);
    else
        snprintf(expected, sizeof expected, "[%u]", cols);
    return tn_fail(p->err, TERN_INPUT, "tensor \"%s\": shape %s, but config.json makes it %s",
                   t->name, tn_shape_text(shape, sizeof shape, t), expected);
}

static bool is_float(const struct tn_source_tensor *t)
{
    return t->dtype == TN_DTYPE_BF16 || t->dtype == TN_DTYPE_F16 || t->dtype == TN_DTYPE_F32;
}

static tern_status check_float(struct planner *p, const struct tn_source_tensor *t)
{
    if (is_float(t))
        return TERN_OK;
    return tn_fail(p->err, TERN_INPUT, "tensor \"%s\": dtype %s, expected BF16, F16 or F32",
                   t->name, tn_dtype_text(t->dtype));
}

/* ---- planning ---- */

static void append(struct planner *p, enum tn_tensor_kind kind, enum tern_role role, uint32_t layer,
                   uint32_t layout, uint32_t rows, uint32_t cols,
                   struct tn_source_tensor *weight, struct tn_source_tensor *scale)
{
    const bool ternary = kind == TN_TENSOR_LATENT || kind == TN_TENSOR_PACKED;
    struct tn_tensor_plan_row *t = &p->plan->tensors[p->plan->n_tensors++];
    *t = (struct tn_tensor_plan_row){.kind = kind, .weight = weight, .scale = scale};
    t->file.role = role;
    t->file.layer = layer;
    t->file.layout = layout;
    t->file.scale_kind = ternary                    ? TERN_SCALE_TENSOR
                         : tn_layout_scales(layout) ? TERN_SCALE_ROW
                                                    : TERN_SCALE_NONE;
    t->file.rows = rows;
    t->file.cols = cols;
    p->plan->n_params += (uint64_t)rows * cols;
    p->plan->n_ternary += ternary ? (uint64_t)rows * cols : 0;
}

static tern_status plan_norm(struct planner *p, enum tern_role role, uint32_t layer,
                             const char *name, uint32_t n)
{
    struct tn_source_tensor *t;
    tern_status status = require(p, name, &t);
    if (status == TERN_OK)
        status = check_float(p, t);
    if (status == TERN_OK)
        status = check_shape(p, t, 0, n);
    if (status == TERN_OK)
        append(p, TN_TENSOR_NORM, role, layer, TERN_LAYOUT_F32, 1, n, t, NULL);
    return status;
}

/* For squared ReLU, rows of up and columns of down are skipped: layouts that lie that way. */
static uint32_t ternary_layout(const struct planner *p, enum tern_role role)
{
    if (p->config->activation != TERN_ACT_RELU2)
        return TERN_LAYOUT_T2;
    return role == TERN_ROLE_UP     ? TERN_LAYOUT_R2
           : role == TERN_ROLE_DOWN ? TERN_LAYOUT_C2
                                    : TERN_LAYOUT_T2;
}

static tern_status plan_packed(struct planner *p, struct tn_source_tensor *weight,
                               const char *scale_name, uint32_t rows, uint32_t cols,
                               struct tn_source_tensor **scale)
{
    if (weight->dtype != TN_DTYPE_U8)
        return tn_fail(p->err, TERN_INPUT,
                       "tensor \"%s\": dtype %s, expected U8 as in the other layers", weight->name,
                       tn_dtype_text(weight->dtype));
    if (rows % 4)
        return tn_fail(p->err, TERN_INPUT,
                       "tensor \"%s\": config.json makes it %u rows, but packed weights need a "
                       "multiple of 4",
                       weight->name, rows);
    tern_status status = check_shape(p, weight, rows / 4, cols);
    if (status == TERN_OK)
        status = require(p, scale_name, scale);
    if (status == TERN_OK)
        status = check_float(p, *scale);
    if (status == TERN_OK && (*scale)->rank != 0) /* [] and [1] are both found */
        status = check_shape(p, *scale, 0, 1);
    return status;
}

static tern_status plan_matrix(struct planner *p, enum tern_role role, uint32_t layer,
                               const char *name, uint32_t rows, uint32_t cols)
{
    char scale_name[128];
    snprintf(scale_name, sizeof scale_name, "%s_scale", name);
    struct tn_source_tensor *weight;
    struct tn_source_tensor *scale = NULL;
    tern_status status = require(p, name, &weight);
    if (status != TERN_OK)
        return status;
    if (p->plan->is_packed) {
        status = plan_packed(p, weight, scale_name, rows, cols, &scale);
    } else {
        status = check_float(p, weight);
        if (status == TERN_OK)
            status = check_shape(p, weight, rows, cols);
    }
    if (status == TERN_OK)
        append(p, p->plan->is_packed ? TN_TENSOR_PACKED : TN_TENSOR_LATENT, role, layer,
               ternary_layout(p, role), rows, cols, weight, scale);
    return status;
}

static tern_status plan_layer(struct planner *p, uint32_t layer)
{
    const struct tern_file_config *c = p->config;
    const uint32_t att = c->n_head * c->head_dim;
    const uint32_t kv = c->n_kv_head * c->head_dim;
    tern_status status = TERN_OK;
    for (size_t i = 0; i < TN_COUNT_OF(layer_roles) && status == TERN_OK; i++) {
        const enum tern_role role = layer_roles[i].role;
        char name[112];
        snprintf(name, sizeof name, "model.layers.%u.%s.weight", layer, layer_roles[i].name);
        switch (role) {
        case TERN_ROLE_ATTN_NORM:
        case TERN_ROLE_FFN_NORM:
            status = plan_norm(p, role, layer, name, c->hidden);
            break;
        case TERN_ROLE_ATTN_SUB_NORM:
            status = plan_norm(p, role, layer, name, att);
            break;
        case TERN_ROLE_FFN_SUB_NORM:
            status = plan_norm(p, role, layer, name, c->ffn);
            break;
        case TERN_ROLE_Q:
            status = plan_matrix(p, role, layer, name, att, c->hidden);
            break;
        case TERN_ROLE_K:
        case TERN_ROLE_V:
            status = plan_matrix(p, role, layer, name, kv, c->hidden);
            break;
        case TERN_ROLE_O:
            status = plan_matrix(p, role, layer, name, c->hidden, att);
            break;
        case TERN_ROLE_GATE:
        case TERN_ROLE_UP:
            status = plan_matrix(p, role, layer, name, c->ffn, c->hidden);
            break;
        default:
            status = plan_matrix(p, role, layer, name, c->hidden, c->ffn);
        }
    }
    return status;
}

static tern_status plan_table(struct planner *p, enum tern_role role, const char *name)
{
    static const uint32_t layouts[] = {
        [TERN_HEAD_Q8] = TERN_LAYOUT_Q8_PLANES,
        [TERN_HEAD_Q6] = TERN_LAYOUT_Q6,
        [TERN_HEAD_Q4] = TERN_LAYOUT_Q4,
        [TERN_HEAD_F16] = TERN_LAYOUT_F16,
        [TERN_HEAD_BF16] = TERN_LAYOUT_BF16,
    };
    const uint32_t rows = p->config->vocab;
    const uint32_t cols = p->config->hidden;
    struct tn_source_tensor *t;
    tern_status status = require(p, name, &t);
    if (status == TERN_OK)
        status = check_float(p, t);
    if (status == TERN_OK)
        status = check_shape(p, t, rows, cols);
    if (status == TERN_OK)
        append(p, TN_TENSOR_TABLE, role, TERN_NO_LAYER, layouts[p->head], rows, cols, t, NULL);
    return status;
}

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text);
    const size_t n_end = strlen(end);
    return n >= n_end && strcmp(text + n - n_end, end) == 0;
}

/* Nothing may be left over: an unknown tensor is part of a model that tern would get wrong. */
static tern_status check_unused(struct planner *p)
{
    for (uint32_t i = 0; i < p->source->n_tensors; i++) {
        const struct tn_source_tensor *t = &p->source->tensors[i];
        if (t->used)
            continue;
        if (ends_with(t->name, ".rotary_emb.inv_freq"))
            p->plan->n_ignored++;
        else if (strcmp(t->name, HEAD_NAME) == 0)
            return tn_fail(p->err, TERN_INPUT,
                           "tensor \"%s\" contradicts config.json, where \"tie_word_embeddings\" "
                           "is true",
                           t->name);
        else
            return tn_fail(p->err, TERN_INPUT,
                           "tensor \"%s\" is not part of this architecture; tern does not know "
                           "what it is for",
                           t->name);
    }
    return TERN_OK;
}

static tern_status plan_all(struct planner *p)
{
    tern_status status = TERN_OK;
    for (uint32_t layer = 0; layer < p->config->n_layer && status == TERN_OK; layer++)
        status = plan_layer(p, layer);
    if (status == TERN_OK)
        status = plan_table(p, TERN_ROLE_EMBED, EMBED_NAME);
    if (status == TERN_OK && !p->plan->is_tied)
        status = plan_table(p, TERN_ROLE_HEAD, HEAD_NAME);
    if (status == TERN_OK)
        status = plan_norm(p, TERN_ROLE_FINAL_NORM, TERN_NO_LAYER, NORM_NAME, p->config->hidden);
    if (status == TERN_OK)
        status = check_unused(p);
    /* Last: a tensor that is missing from the header leaves a hole, and its name says more. */
    if (status == TERN_OK && p->source->hole.status != TERN_OK) {
        *p->err = p->source->hole;
        status = p->err->status;
    }
    return status;
}

tern_status tn_tensor_plan_make(struct tn_tensor_plan *out, const struct tn_config_import *import,
                                struct tn_source *source, enum tern_head_type head,
                                struct tern_error *err)
{
    memset(out, 0, sizeof *out);
    const size_t n_max = (size_t)import->config.n_layer * TN_COUNT_OF(layer_roles) + 3;
    out->tensors = tn_alloc_zeroed(n_max, sizeof *out->tensors);
    if (!out->tensors)
        return tn_fail(err, TERN_MEMORY, "no memory to plan %zu tensors", n_max);
    const struct tn_source_tensor *q =
        tn_source_find(source, "model.layers.0.self_attn.q_proj.weight");
    out->is_packed = q && q->dtype == TN_DTYPE_U8;
    out->is_tied = import->tie == TN_TIE_YES ||
                   (import->tie == TN_TIE_UNSAID && !tn_source_find(source, HEAD_NAME));
    struct planner planner = {out, &import->config, source, head, err};
    const tern_status status = plan_all(&planner);
    if (status != TERN_OK)
        tn_tensor_plan_fini(out);
    return status;
}

void tn_tensor_plan_fini(struct tn_tensor_plan *plan)
{
    tn_free(plan->tensors);
    memset(plan, 0, sizeof *plan);
}
