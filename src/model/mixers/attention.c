/* SPDX-License-Identifier: MIT
 *
 * Self-attention: projections around model/attn.c, and what it keeps of each position: keys and
 * values, in blocks.
 */
#include "model/attn.h"
#include "model/counters.h"
#include "model/matrix.h"
#include "model/mixer.h"

static void project_qkv(struct tn_forward *f, const struct tn_layer *layer)
{
    const struct tern_file_config *c = f->weights->config;
    const float *const *v = layer->vectors;
    const struct tn_product products[] = {
        {.w = tn_matrix_of(layer, TERN_ROLE_Q), .in_norm = v[TERN_ROLE_Q_IN_NORM], .dst = f->s.q},
        {.w = tn_matrix_of(layer, TERN_ROLE_K), .in_norm = v[TERN_ROLE_K_IN_NORM], .dst = f->s.k},
        {.w = tn_matrix_of(layer, TERN_ROLE_V), .in_norm = v[TERN_ROLE_V_IN_NORM], .dst = f->s.v},
    };
    const float *const biases[] = {v[TERN_ROLE_Q_BIAS], v[TERN_ROLE_K_BIAS], v[TERN_ROLE_V_BIAS]};
    tn_multiply(f, f->s.h, v[TERN_ROLE_ATTN_NORM], c->hidden, products, 3);
    for (uint32_t i = 0; i < 3; i++)
        if (biases[i])
            tn_add_bias(products[i].dst, biases[i], f->n_tokens, products[i].w->rows);
}

static void run(struct tn_forward *f, uint32_t i_layer)
{
    const struct tern_file_config *c = f->weights->config;
    const struct tn_layer *layer = &f->weights->layers[i_layer];
    uint64_t start = f->now_ns();

    project_qkv(f, layer);
    tn_region_end(f, TN_REGION_QKV, &start);

    tn_attention(f, i_layer);
    tn_region_end(f, TN_REGION_ATTENTION, &start);

    const struct tn_branch o = {
        .w = tn_matrix_of(layer, TERN_ROLE_O),
        .norm = layer->vectors[TERN_ROLE_ATTN_SUB_NORM],
        .in_norm = layer->vectors[TERN_ROLE_O_IN_NORM],
        .bias = layer->vectors[TERN_ROLE_O_BIAS],
        .post_norm = layer->vectors[TERN_ROLE_ATTN_POST_NORM],
    };
    tn_add_branch(f, f->s.att, c->n_head * c->head_dim, &o);
    tn_region_end(f, TN_REGION_O, &start);
}

static struct tn_state_bytes state_bytes(const struct tn_weights *weights,
                                         const struct tn_layer *layer,
                                         const struct tn_state_input *input)
{
    struct tn_kvcache kv;
    (void)layer;
    tn_kvcache_plan(&kv, weights->config, input->kv, input->n_ctx);
    return (struct tn_state_bytes){.block = kv.head_bytes * kv.n_kv_head};
}

static const struct tn_state_ops state = {.bytes = state_bytes};

const struct tn_mixer tn_mixer_attention = {.name = "attention", .run = run, .state = &state};
