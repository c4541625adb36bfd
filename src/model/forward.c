/* SPDX-License-Identifier: MIT
 *
 * The forward pass.  Reads like the paper, with what some families add
 * (tern/model_format.h has the order of work of a layer):
 *
 *   h = embed[token]
 *   for each layer:
 *     x = RMSNorm(h);  q, k, v = W x;  att = attention(rope(q), rope(k), v)
 *     h += Wo RMSNorm(att)
 *     x = RMSNorm(h)
 *     h += Wdown RMSNorm(act(Wgate x) * Wup x)
 *   logits = Whead RMSNorm(h)
 *
 * Every W x is a product of a format (format.h), which says in which form it takes
 * x.  Everything else is f32 in one fixed order.
 */
#include "model/forward.h"

#include <assert.h>

#include "kern/trig.h"
#include "model/attn.h"
#include "model/counters.h"
#include "model/embed_head.h"
#include "model/ffn.h"
#include "model/matrix.h"

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
            tn_add_bias(products[i].dst, biases[i], f->n_tokens, products[i].w->t.w.rows);
}

static void self_attention(struct tn_forward *f, uint32_t i_layer)
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

static void count_batch(struct tn_forward *f)
{
    if (f->is_decode)
        f->counters.n_decoded += f->n_tokens;
    else
        f->counters.n_prefilled += f->n_tokens;
}

/* Cosines and sines of a span's positions for one kind of rotation, of so many dimensions. */
static void fill_rope(struct tn_forward *f, uint32_t i_rope, uint32_t n, const struct tn_span *span)
{
    const double *inv_freq = f->s.inv_freq + (size_t)i_rope * (f->weights->config->head_dim / 2);
    for (uint32_t t = 0; t < span->n_rows; t++) {
        const size_t at = tn_rope_at(f, i_rope, span->row + t);
        tn_rope_fill(f->s.cos + at, f->s.sin + at, inv_freq, n, span->position + t);
    }
}

static void begin(struct tn_forward *f, const struct tn_batch *batch)
{
    f->batch = batch;
    f->n_tokens = batch->n_rows;
    f->is_decode = batch->n_spans == batch->n_rows;
    f->is_stopping = false;
    count_batch(f);
    for (uint32_t i = 0; i < f->weights->n_ropes; i++)
        for (uint32_t k = 0; k < batch->n_spans; k++)
            fill_rope(f, i, f->weights->ropes[i]->spec->rope_dims / 2, &batch->spans[k]);
}

bool tn_forward_eval(struct tn_forward *f, const struct tn_batch *batch)
{
    assert(batch->n_rows >= 1 && "callers make no empty batches");
    begin(f, batch);
    tn_embed(f, batch->ids);
    for (uint32_t i = 0; i < f->weights->config->n_layer; i++) {
        const struct tn_layer *layer = &f->weights->layers[i];
        self_attention(f, i);
        tn_ffn(f, layer);
        if (f->is_stopping || (f->after_layer && !f->after_layer(f->after_layer_arg, layer)))
            return false;
    }
    if (batch->n_wanted || batch->states) {
        uint64_t start = f->now_ns();
        tn_output(f);
        tn_region_end(f, TN_REGION_HEAD, &start);
    }
    return !f->is_stopping;
}

void tn_forward_prepare(struct tn_forward *f)
{
    const uint32_t half = f->weights->config->head_dim / 2;
    for (uint32_t i = 0; i < f->weights->n_ropes; i++) {
        const struct tn_layer *layer = f->weights->ropes[i];
        const float *factors = layer->vectors[TERN_ROLE_ROPE_FACTORS];
        double *inv_freq = f->s.inv_freq + (size_t)i * half;
        tn_rope_inv_freq(inv_freq, layer->spec->rope_dims, layer->spec->rope_theta);
        for (uint32_t j = 0; j < layer->spec->rope_dims / 2 && factors; j++)
            inv_freq[j] /= (double)factors[j];
    }
}
