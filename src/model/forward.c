/* SPDX-License-Identifier: MIT
 *
 * The forward pass (tern/model_format.h specifies the steps of a layer):
 *
 *   h = embed[token]
 *   for each layer:
 *     x = RMSNorm(h);  q, k, v = W x;  att = attention(rope(q), rope(k), v);  h += Wo RMSNorm(att)
 *     x = RMSNorm(h);  h += Wdown RMSNorm(act(Wgate x) * Wup x)
 *   logits = Whead RMSNorm(h)
 *
 * run_layer handles other orders of the norms (enum tern_order) and LayerNorms (norm.h): a mixer
 * and a feed-forward take f->input and add to h.  Every W x is a product of a format (format.h),
 * which decides the precision of x.  Everything else is f32 in one fixed order.
 */
#include "model/forward.h"

#include <assert.h>

#include "kern/trig.h"
#include "model/counters.h"
#include "model/embed_head.h"
#include "model/ffn.h"
#include "model/matrix.h"
#include "model/mixer.h"
#include "model/norm.h"

static void count_batch(struct tn_forward *f)
{
    if (f->is_decode)
        f->counters.n_decoded += f->n_tokens;
    else
        f->counters.n_prefilled += f->n_tokens;
}

/* Cosines and sines of a span's positions for one rotation. */
static void fill_rope(struct tn_forward *f, uint32_t i_rope, const struct tn_span *span)
{
    const struct tern_file_layer *spec = f->weights->ropes[i_rope]->spec;
    const uint32_t n = spec->rope_dims / 2;
    const float scale = spec->rope_scale;
    const double *inv_freq = f->s.inv_freq + (size_t)i_rope * f->weights->rope_half;
    for (uint32_t t = 0; t < span->n_rows; t++) {
        const size_t at = tn_rope_at(f, i_rope, span->row + t);
        tn_rope_fill(f->s.cos + at, f->s.sin + at, inv_freq, n, span->position + t);
        for (uint32_t j = 0; j < n && scale != 0; j++) {
            f->s.cos[at + j] *= scale;
            f->s.sin[at + j] *= scale;
        }
    }
}

static void begin_batch(struct tn_forward *f, const struct tn_batch *batch)
{
    f->batch = batch;
    f->n_tokens = batch->n_rows;
    f->is_stopping = false;
    for (uint32_t i = 0; i < f->weights->n_ropes; i++)
        for (uint32_t k = 0; k < batch->n_spans; k++)
            fill_rope(f, i, &batch->spans[k]);
}

/* Sets the input of the next half of a layer to the norm of h. */
static void take_norm(struct tn_forward *f, const struct tn_norm *norm)
{
    const bool is_fused = !norm->weights || f->weights->config->norm == TERN_NORM_RMS;
    f->input = is_fused ? f->s.h : f->s.x;
    f->input_norm = is_fused ? norm->weights : NULL;
    if (!is_fused)
        tn_norm_states(f, f->s.x, norm);
}

static void take_rows(struct tn_forward *f, float *rows)
{
    f->input = rows;
    f->input_norm = NULL;
}

static void run_mixer(struct tn_forward *f, uint32_t i_layer)
{
    const struct tn_layer *layer = &f->weights->layers[i_layer];
    layer->mixer->run(f, i_layer);
    if (f->after_mixer)
        f->after_mixer(f->after_layer_arg, layer);
}

/* TERN_ORDER_AFTER: h = norm(h + mixer(h));  h = norm(h + ffn(h)) */
static void run_layer_after(struct tn_forward *f, uint32_t i_layer, const struct tn_norm *attn,
                            const struct tn_norm *ffn)
{
    const struct tn_layer *layer = &f->weights->layers[i_layer];
    take_rows(f, f->s.h);
    run_mixer(f, i_layer);
    tn_norm_states(f, f->s.h, attn);
    take_rows(f, f->s.h);
    layer->ffn->run(f, layer);
    tn_norm_states(f, f->s.h, ffn);
}

static void run_layer(struct tn_forward *f, uint32_t i_layer)
{
    const struct tn_layer *layer = &f->weights->layers[i_layer];
    const float *const *v = layer->vectors;
    const struct tn_norm attn = {v[TERN_ROLE_ATTN_NORM], v[TERN_ROLE_ATTN_NORM_BIAS]};
    const struct tn_norm ffn = {v[TERN_ROLE_FFN_NORM], v[TERN_ROLE_FFN_NORM_BIAS]};
    const uint32_t order = f->weights->config->order;
    if (order == TERN_ORDER_AFTER) {
        run_layer_after(f, i_layer, &attn, &ffn);
        return;
    }
    if (f->s.beside) /* the feed-forward takes h from before attention adds to it */
        tn_norm_states(f, f->s.beside, order == TERN_ORDER_SHARED ? &attn : &ffn);
    take_norm(f, &attn);
    run_mixer(f, i_layer);
    if (f->s.beside)
        take_rows(f, f->s.beside);
    else
        take_norm(f, &ffn);
    layer->ffn->run(f, layer);
}

/* After a layer: whether the evaluation continues. */
static bool goes_on(const struct tn_forward *f, const struct tn_layer *layer)
{
    return !f->is_stopping && (!f->after_layer || f->after_layer(f->after_layer_arg, layer));
}

bool tn_forward_eval(struct tn_forward *f, const struct tn_batch *batch)
{
    assert(batch->n_rows >= 1 && "callers make no empty batches");
    begin_batch(f, batch);
    f->is_decode = batch->n_spans == batch->n_rows;
    f->final_norm = &f->weights->final_norm;
    f->n_head_rows = f->weights->head.rows;
    count_batch(f);
    tn_embed(f, batch->ids);
    for (uint32_t i = 0; i < f->weights->config->n_layer; i++) {
        run_layer(f, i);
        if (!goes_on(f, &f->weights->layers[i]))
            return false;
    }
    if (batch->n_wanted || batch->states) {
        uint64_t start = f->now_ns();
        tn_output(f);
        tn_region_end(f, TN_REGION_HEAD, &start);
    }
    return !f->is_stopping;
}

/* ---- draft head ---- */

/* s.draft_input [n][2 hidden] = norm of the embeddings in h | norm of the states. */
static void join_inputs(struct tn_forward *f, const struct tn_layer *layer, const float *states)
{
    const uint32_t hidden = f->weights->config->hidden;
    const struct tn_norm embed = {layer->vectors[TERN_ROLE_DRAFT_EMBED_NORM], NULL};
    const struct tn_norm state = {layer->vectors[TERN_ROLE_DRAFT_STATE_NORM], NULL};
    for (uint32_t t = 0; t < f->n_tokens; t++) {
        float *row = f->s.draft_input + (size_t)t * 2 * hidden;
        tn_norm_state(f, row, f->s.h + (size_t)t * hidden, &embed);
        tn_norm_state(f, row + hidden, states + (size_t)t * hidden, &state);
    }
}

bool tn_forward_draft(struct tn_forward *f, const struct tn_batch *batch, const float *states,
                      float *last)
{
    const struct tern_file_config *c = f->weights->config;
    const struct tn_layer *layer = tn_draft_layer(f->weights);
    const struct tn_product fc = {.w = tn_matrix_of(layer, TERN_ROLE_DRAFT_FC), .dst = f->s.h};
    const struct tn_norm norm = {layer->vectors[TERN_ROLE_DRAFT_NORM], NULL};
    assert(batch->n_rows <= TN_DRAFT_ROWS && batch->n_spans == 1 && f->s.draft_input);
    begin_batch(f, batch);
    f->is_decode = false; /* counters of decoding are per token of the text */
    f->final_norm = &norm;
    f->n_head_rows = f->weights->head.rows;
    if (batch->n_wanted && batch->wanted[0].need.n_allowed)
        f->n_head_rows = batch->wanted[0].need.n_allowed;
    tn_embed(f, batch->ids);
    join_inputs(f, layer, states);
    tn_multiply(f, f->s.draft_input, NULL, 2 * c->hidden, &fc, 1);
    run_layer(f, c->n_layer);
    const bool is_whole = goes_on(f, layer);
    if (is_whole) {
        tn_norm_state(f, last, f->s.h + (size_t)(batch->n_rows - 1) * c->hidden, &norm);
        if (batch->n_wanted)
            tn_output(f);
    }
    f->final_norm = NULL;
    return is_whole && !f->is_stopping;
}

void tn_forward_prepare(struct tn_forward *f)
{
    const uint32_t half = f->weights->rope_half;
    for (uint32_t i = 0; i < f->weights->n_ropes; i++) {
        const struct tn_layer *layer = f->weights->ropes[i];
        const float *factors = layer->vectors[TERN_ROLE_ROPE_FACTORS];
        double *inv_freq = f->s.inv_freq + (size_t)i * half;
        tn_rope_inv_freq(inv_freq, layer->spec->rope_dims, layer->spec->rope_theta);
        for (uint32_t j = 0; j < layer->spec->rope_dims / 2 && factors; j++)
            inv_freq[j] /= (double)factors[j];
    }
}
