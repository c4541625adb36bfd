/* SPDX-License-Identifier: MIT
 *
 * Describes a model: its layouts and sizes, what a token reads, and the bytes of its cache and
 * state for a whole context.
 */
#include "engine/session.h"
#include "model/state.h"

/* With the whole context, and a batch as sessions have it. */
static struct tn_state_input state_input(const struct tern_model *m, enum tn_kv_type kv)
{
    const uint32_t n_ctx = m->weights.config->context;
    return (struct tn_state_input){kv, n_ctx, TN_MIN(TN_DEFAULT_BATCH, n_ctx)};
}

bool tern_model_has_state(const struct tern_model *m)
{
    const struct tn_state_input input = state_input(m, TN_KV_Q8);
    struct tn_state_plan plan;
    tn_state_plan_make(&plan, NULL, &m->weights, &input);
    return tn_has_state(&plan);
}

static uint64_t table_bytes(const struct tn_model_file *file, enum tern_role role)
{
    const struct tern_file_tensor *t = tn_model_file_tensor(file, role, TERN_NO_LAYER);
    return t ? t->bytes + t->scale_bytes : 0;
}

static const char *shown_layout(uint32_t layout)
{
    const struct tn_layout_spec *spec = tn_layout_find(layout);
    return spec ? spec->shown : "none";
}

/* The layout of most layer weights. */
static uint32_t main_layout(const struct tn_model_file *file)
{
    uint64_t n_weights[TERN_N_LAYOUTS] = {0};
    uint32_t main = 0;
    for (uint32_t i = 0; i < file->n_tensors; i++) {
        const struct tern_file_tensor *t = &file->tensors[i];
        if (t->layer == TERN_NO_LAYER)
            continue;
        n_weights[t->layout] += tn_tensor_weights(t);
        if (n_weights[t->layout] > n_weights[main])
            main = t->layout;
    }
    return main;
}

/* How much of a tensor's bytes one token reads; for experts the expected share of those chosen. */
static uint64_t share_read(const struct tern_file_config *c, const struct tern_file_tensor *t,
                           uint64_t n_bytes)
{
    return t->n_stacked ? n_bytes / c->n_experts * c->n_experts_used : n_bytes;
}

void tern_model_get_info(const struct tern_model *m, struct tern_model_info *out)
{
    const struct tern_file_config *c = m->file.spec.config;
    const bool tied = c->flags & TERN_MODEL_TIED_HEAD;
    *out = (struct tern_model_info){
        .name = m->name,
        .architecture = m->family,
        .layout = shown_layout(main_layout(&m->file)),
        .head = shown_layout(m->weights.head.layout),
        .template_name = m->chat_template ? tern_chat_template_name(m->chat_template) : NULL,
        .has_template = c->template_source.bytes > 0,
        .file_bytes = m->file.map.n_bytes,
        .head_bytes = table_bytes(&m->file, tied ? TERN_ROLE_EMBED : TERN_ROLE_HEAD),
        .n_experts = c->n_experts,
        .n_experts_used = c->n_experts_used,
        .rotation_block = c->rotation_block,
    };
    for (uint32_t i = 0; i < m->file.n_tensors; i++) {
        const struct tern_file_tensor *t = &m->file.tensors[i];
        out->n_rotated += (t->flags & TERN_TENSOR_ROTATED) != 0;
        const bool is_draft = t->layer == c->n_layer; /* tokens are decoded without it */
        out->draft_bytes += is_draft ? t->bytes + t->scale_bytes : 0;
        if (!is_draft && (t->role != TERN_ROLE_EMBED || tied)) /* of other embeddings one row */
            out->bytes_per_token += share_read(c, t, t->bytes + t->scale_bytes);
        if (t->n_stacked)
            out->expert_bytes += t->bytes + t->scale_bytes;
        if (!tn_layout_is_ternary(t->layout))
            continue;
        out->ternary_bytes += t->bytes;
        out->n_ternary += tn_tensor_weights(t);
        out->n_zero += t->n_zero;
    }
    for (uint32_t kv = TERN_KV_F32; kv <= TERN_KV_Q8; kv++) {
        const struct tn_state_input input = state_input(m, (enum tn_kv_type)kv);
        struct tn_state_plan plan;
        tn_state_plan_make(&plan, NULL, &m->weights, &input);
        out->kv_bytes_per_token[kv] = tn_kv_bytes_per_token(&m->weights, &input);
        out->state_bytes[kv] = plan.bytes.sequence;
    }
}

uint32_t tern_model_n_tensors(const struct tern_model *m)
{
    return m->file.n_tensors;
}

void tern_model_get_tensor(const struct tern_model *m, uint32_t i, struct tern_tensor_info *out)
{
    const struct tern_file_tensor *t = &m->file.tensors[i];
    *out = (struct tern_tensor_info){
        .layout = tn_layout_name(t->layout),
        .rows = t->rows,
        .cols = t->cols,
        .n_bytes = t->bytes + t->scale_bytes,
        .n_zero = t->n_zero,
        .n_stacked = t->n_stacked,
    };
    tn_tensor_name(out->name, sizeof out->name, t);
}
