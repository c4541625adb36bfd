/* SPDX-License-Identifier: MIT
 *
 * The forward pass.  Reads like the paper:
 *
 *   h = embed[token]
 *   for each layer:
 *     x = RMSNorm(h);  q, k, v = W x;  att = attention(rope(q), rope(k), v)
 *     h += Wo RMSNorm(att)
 *     x = RMSNorm(h)
 *     h += Wdown RMSNorm(relu(Wgate x)^2 * Wup x)
 *   logits = Whead RMSNorm(h)
 *
 * Every W x is ternary: x is rounded to int8 once per token, the dot product is
 * exact in int32 (linear.c).  Everything else is f32 in one fixed order.
 */
#include "model/forward.h"

#include <assert.h>

#include "kern/trig.h"

void tn_region_end(struct tn_forward *f, enum tn_region region, uint64_t *start)
{
    uint64_t now = f->now_ns();
    uint64_t *ns = f->n_tokens == 1 ? f->counters.decode_ns : f->counters.prefill_ns;
    ns[region] += now - *start;
    *start = now;
}

static void self_attention(struct tn_forward *f, uint32_t i_layer)
{
    const struct tern_file_config *c = f->weights->config;
    const struct tn_layer *layer = &f->weights->layers[i_layer];
    uint64_t start = f->now_ns();

    tn_round_input(f, f->s.h, layer->attn_norm, c->hidden);
    const struct tn_projection qkv[] = {
        {.linear = &layer->q, .dst = f->s.q},
        {.linear = &layer->k, .dst = f->s.k},
        {.linear = &layer->v, .dst = f->s.v},
    };
    tn_project(f, qkv, 3);
    tn_region_end(f, TN_REGION_QKV, &start);

    tn_attention(f, i_layer);
    tn_region_end(f, TN_REGION_ATTENTION, &start);

    tn_round_input(f, f->s.att, layer->attn_sub_norm, c->n_head * c->head_dim);
    tn_project(f, &(struct tn_projection){.linear = &layer->o, .dst = f->s.h, .add = true}, 1);
    tn_region_end(f, TN_REGION_O, &start);
}

static void feed_forward(struct tn_forward *f, const struct tn_layer *layer)
{
    tn_round_input(f, f->s.h, layer->ffn_norm, f->weights->config->hidden);
    tn_ffn(f, layer);
}

static void count_batch(struct tn_forward *f)
{
    if (f->n_tokens == 1)
        f->counters.n_decoded++;
    else
        f->counters.n_prefilled += f->n_tokens;
}

static void fill_rope(struct tn_forward *f)
{
    uint32_t half = f->weights->config->head_dim / 2;
    for (uint32_t t = 0; t < f->n_tokens; t++)
        tn_rope_fill(f->s.cos + (size_t)t * half, f->s.sin + (size_t)t * half, f->s.inv_freq, half,
                     f->position + t);
}

bool tn_forward_eval(struct tn_forward *f, const uint32_t *ids, uint32_t n, uint32_t position,
                     float *logits, bool all_rows)
{
    assert(n >= 1 && "the session splits work into batches that are not empty");
    f->n_tokens = n;
    f->position = position;
    count_batch(f);
    fill_rope(f);
    tn_embed(f, ids);
    for (uint32_t i = 0; i < f->weights->config->n_layer; i++) {
        const struct tn_layer *layer = &f->weights->layers[i];
        self_attention(f, i);
        feed_forward(f, layer);
        if (f->after_layer && !f->after_layer(f->after_layer_arg, layer))
            return false;
    }
    if (logits) {
        uint64_t start = f->now_ns();
        tn_head(f, logits, all_rows);
        tn_region_end(f, TN_REGION_HEAD, &start);
    }
    return true;
}
