/* SPDX-License-Identifier: MIT
 *
 * Self-attention: the projections around model/attn.c, and its scratch memory.  attention_state.h
 * describes what it stores of each position.
 */
#include "base/bits.h"
#include "kern/exp.h"
#include "model/attn.h"
#include "model/counters.h"
#include "model/matrix.h"
#include "model/mixer.h"
#include "model/mixers/attention_state.h"

static bool has_gate(const struct tn_layer *layer)
{
    return tn_matrix_of(layer, TERN_ROLE_Q_GATE)->format != NULL;
}

struct gate_task {
    const struct tn_attn_scratch *s;
    uint32_t n; /* values per row */
};

/* att *= sigmoid(gate) */
static void gate_item(void *arg, uint32_t t, uint32_t i_thread)
{
    const struct gate_task *task = arg;
    const float *gate = task->s->gate + (size_t)t * task->n;
    float *att = task->s->att + (size_t)t * task->n;
    (void)i_thread;
    for (uint32_t i = 0; i < task->n; i++)
        att[i] = att[i] / (1.0f + tn_exp_f32(-gate[i]));
}

static void norm_all_heads(struct tn_forward *f, float *x, const float *norm, uint32_t n)
{
    if (norm)
        tn_norm_rows(f, x, x, norm, f->weights->config->rms_eps, n);
}

static void project_qkv(struct tn_forward *f, const struct tn_layer *layer)
{
    const struct tn_attn_scratch *s = f->s.mixers[TERN_MIXER_ATTENTION];
    const float *const *v = layer->vectors;
    const struct tn_product products[] = {
        {.w = tn_matrix_of(layer, TERN_ROLE_Q), .in_norm = v[TERN_ROLE_Q_IN_NORM], .dst = s->q},
        {.w = tn_matrix_of(layer, TERN_ROLE_K), .in_norm = v[TERN_ROLE_K_IN_NORM], .dst = s->k},
        {.w = tn_matrix_of(layer, TERN_ROLE_V), .in_norm = v[TERN_ROLE_V_IN_NORM], .dst = s->v},
        {.w = tn_matrix_of(layer, TERN_ROLE_Q_GATE), .dst = s->gate},
    };
    const float *const biases[] = {v[TERN_ROLE_Q_BIAS], v[TERN_ROLE_K_BIAS], v[TERN_ROLE_V_BIAS]};
    tn_multiply(f, f->input, f->input_norm, f->weights->config->hidden, products,
                has_gate(layer) ? 4 : 3);
    for (uint32_t i = 0; i < 3; i++)
        tn_add_bias(products[i].dst, biases[i], f->n_tokens, products[i].w->rows);
    norm_all_heads(f, s->q, v[TERN_ROLE_Q_ALL_NORM], products[0].w->rows);
    norm_all_heads(f, s->k, v[TERN_ROLE_K_ALL_NORM], products[1].w->rows);
}

static void run(struct tn_forward *f, uint32_t i_layer)
{
    const struct tn_attn_scratch *s = f->s.mixers[TERN_MIXER_ATTENTION];
    const struct tn_layer *layer = &f->weights->layers[i_layer];
    uint64_t start = f->now_ns();

    project_qkv(f, layer);
    tn_region_end(f, TN_REGION_QKV, &start);

    tn_attention(f, i_layer);
    struct gate_task gate = {s, layer->dims.n_head * layer->dims.head_dim};
    if (has_gate(layer))
        tn_team_for(f->team, f->n_tokens, gate_item, &gate);
    tn_region_end(f, TN_REGION_ATTENTION, &start);

    const struct tn_branch o = {
        .w = tn_matrix_of(layer, TERN_ROLE_O),
        .norm = layer->vectors[TERN_ROLE_ATTN_SUB_NORM],
        .in_norm = layer->vectors[TERN_ROLE_O_IN_NORM],
        .bias = layer->vectors[TERN_ROLE_O_BIAS],
        .post_norm = layer->vectors[TERN_ROLE_ATTN_POST_NORM],
    };
    tn_add_branch(f, s->att, layer->dims.n_head * layer->dims.head_dim, &o);
    tn_region_end(f, TN_REGION_O, &start);
}

/* ---- memory ---- */

/* The maximum over the layers of each size. */
struct needs {
    size_t q, kv;         /* values per row: query heads, key heads */
    size_t q_padded, dim; /* query heads of dim values each; dim */
    size_t n_head, group;
    size_t gate;
    bool is_padded;
};

static struct needs needs_of(const struct tn_weights *weights)
{
    struct needs most = {0};
    for (uint32_t i = 0; i < tn_n_all_layers(weights->config); i++) {
        const struct tn_layer_dims *d = &weights->layers[i].dims;
        const size_t dim = tn_kv_dim(d->head_dim);
        if (weights->layers[i].spec->mixer != TERN_MIXER_ATTENTION)
            continue;
        most.q = TN_MAX(most.q, (size_t)d->n_head * d->head_dim);
        if (has_gate(&weights->layers[i]))
            most.gate = TN_MAX(most.gate, (size_t)d->n_head * d->head_dim);
        most.kv = TN_MAX(most.kv, (size_t)d->n_kv_head * d->head_dim);
        most.q_padded = TN_MAX(most.q_padded, d->n_head * dim);
        most.dim = TN_MAX(most.dim, dim);
        most.n_head = TN_MAX(most.n_head, (size_t)d->n_head);
        most.group = TN_MAX(most.group, (size_t)tn_attn_group(d));
        most.is_padded = most.is_padded || dim != d->head_dim;
    }
    return most;
}

static uint16_t *take_scales(struct tn_arena *arena, size_t n_rows, size_t dim)
{
    return tn_arena_take(arena, n_rows * tn_kv_q8_scales((uint32_t)dim) * sizeof(uint16_t));
}

static struct tn_attn_state take_state(struct tn_arena *arena, size_t n, size_t dim)
{
    return (struct tn_attn_state){
        .max = tn_take_f32(arena, n),
        .sum = tn_take_f32(arena, n),
        .out = tn_take_f32(arena, n * dim),
    };
}

static void layout_thread(struct tn_attn_thread *out, struct tn_arena *arena,
                          const struct needs *most)
{
    const size_t n = most->group, dim = most->dim;
    const struct tn_attn_thread t = {
        .kv_row = tn_take_f32(arena, 2 * dim),
        .queries = {tn_take_f32(arena, n * dim), take_scales(arena, n, dim)},
        .n_valid = tn_arena_take(arena, n * sizeof(uint32_t)),
        .n_before = tn_arena_take(arena, n * sizeof(uint32_t)),
        .is_first = tn_arena_take(arena, n),
        .score = tn_take_f32(arena, n * TN_KV_BLOCK),
        .part = take_state(arena, n, dim),
        .total = take_state(arena, n, dim),
    };
    if (out)
        *out = t;
}

static void layout(void *out, struct tn_arena *arena, const struct tn_weights *weights,
                   const struct tn_workspace_input *input)
{
    const struct needs most = needs_of(weights);
    const size_t n = input->n_batch, n_blocks = tn_div_ceil_u32(input->n_ctx, TN_KV_BLOCK);
    struct tn_attn_scratch s = {
        .q = tn_take_f32(arena, n * most.q),
        .k = tn_take_f32(arena, n * most.kv),
        .v = tn_take_f32(arena, n * most.kv),
        .att = tn_take_f32(arena, n * most.q),
        .gate = tn_take_f32(arena, n * most.gate),
        .blocks = take_state(arena, n_blocks * most.n_head, most.dim),
    };
    s.q_rot = most.is_padded ? tn_take_f32(arena, n * most.q_padded) : s.q;
    s.queries.rows = s.q_rot;
    if (input->kv == TN_KV_Q8)
        s.queries = (struct tn_queries){tn_arena_take(arena, n * most.q_padded),
                                        take_scales(arena, n * most.n_head, most.dim)};
    struct tn_attn_scratch *scratch = out;
    for (uint32_t i = 0; i < input->n_threads; i++)
        layout_thread(scratch ? &scratch->threads[i] : NULL, arena, &most);
    if (scratch)
        *scratch = s;
}

const struct tn_mixer tn_mixer_attention = {
    .name = "attention",
    .run = run,
    .state = &tn_attention_state_ops,
    .scratch_bytes = sizeof(struct tn_attn_scratch),
    .thread_bytes = sizeof(struct tn_attn_thread),
    .layout = layout,
};
