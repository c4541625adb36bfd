/* SPDX-License-Identifier: MIT
 *
 * Gated DeltaNet: instead of keys and values, a layer stores a matrix S for each value head, and
 * the last inputs of a short convolution.  Row t of a chunk computes, from S at the start of the
 * chunk and the rows j of the chunk before it (D_tj = exp(G_t - G_j), j ascending):
 *
 *   delta_t = beta_t (v_t - exp(G_t) k_t.S - sum over j < t of D_tj (k_t.k_j) delta_j)
 *   o_t     = exp(G_t) q_t.S + sum over j <= t of D_tj (q_t.k_j) delta_j
 *
 * which is the recurrence of tern/model_format.h without updating S.  Chunks begin at fixed
 * positions (delta_state.h), so each row does the same operations in any batch, draft or thread,
 * and the products with S of a whole chunk are made together.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/bits.h"
#include "kern/exp.h"
#include "model/activation.h"
#include "model/counters.h"
#include "model/matrix.h"
#include "model/mixer.h"
#include "model/mixers/delta_state.h"

#define L2_EPS 1e-6f
#define CHUNK TN_DELTA_CHUNK

struct scratch {
    float *u;    /* [n_batch][channels] inputs of the convolution */
    float *c;    /* [n_batch][channels] its outputs */
    float *z;    /* [n_batch][n_head * value_dim] */
    float *b, *a; /* [n_batch][n_head] */
    float *o;    /* [n_batch][n_head * value_dim] */
    struct thread {
        float *pairs;    /* [CHUNK][2][n_key] key and query of each row of a chunk */
        float *products; /* [CHUNK][2][n_value] their products with S */
        float *dots;     /* [CHUNK][2][CHUNK] their products with the keys of the chunk */
        float *sums;     /* [2][n_value] */
        float *matrix;   /* [head_dim][n_value] S after a chunk with open rows */
    } threads[];
};

/* ---- scalar functions, the same bits everywhere ---- */

static float sigmoid(float x)
{
    return 1.0f / (1.0f + tn_exp_f32(-x));
}

/* log(1 + exp(x)) = max(x, 0) + log(1 + y), y = exp(-|x|), and log(1 + y) = 2 artanh(y / (2 + y)):
 * the argument of the series is at most 1/3, and its 11 terms leave an error below 1e-11. */
static float softplus(float x)
{
    const double y = (double)tn_exp_f32(-fabsf(x)), z = y / (2 + y), square = z * z;
    double sum = 0;
    for (int i = 21; i > 0; i -= 2)
        sum = sum * square + 1.0 / i;
    return (float)((x > 0 ? (double)x : 0) + 2 * z * sum);
}

/* ---- one batch ---- */

struct task {
    struct tn_forward *f;
    const struct tn_layer *layer;
    struct scratch *s;
    uint32_t i_layer;
};

static struct tn_delta_state state_of(const struct task *task, const struct tn_span *span)
{
    return tn_delta_state_of(tn_state_of(task->f, span, task->i_layer), &task->layer->dims);
}

/* The number of rows of a span that may still be dropped. */
static uint32_t n_open(const struct tn_span *span)
{
    return TN_MIN(span->n_rows, TN_DELTA_OPEN);
}

static void project(struct tn_forward *f, const struct tn_layer *layer, const struct scratch *s)
{
    const struct tn_product products[] = {
        {.w = tn_matrix_of(layer, TERN_ROLE_DELTA_QKV), .dst = s->u},
        {.w = tn_matrix_of(layer, TERN_ROLE_DELTA_Z), .dst = s->z},
        {.w = tn_matrix_of(layer, TERN_ROLE_DELTA_B), .dst = s->b},
        {.w = tn_matrix_of(layer, TERN_ROLE_DELTA_A), .dst = s->a},
    };
    tn_multiply(f, f->input, f->input_norm, f->weights->config->hidden, products, 4);
}

/* The convolution of row t in all channels; rows before the span come from its state. */
static void convolve_item(void *arg, uint32_t t, uint32_t i_thread)
{
    const struct task *task = arg;
    const struct tn_layer_dims *d = &task->layer->dims;
    const struct tn_span *span = tn_span_of(task->f, t);
    const float *before = state_of(task, span).inputs;
    const float *taps = task->layer->vectors[TERN_ROLE_DELTA_CONV];
    const uint32_t n_before = d->conv_taps - 1u, in_span = t - span->row;
    float *restrict c = task->s->c + (size_t)t * d->channels;
    (void)i_thread;
    memset(c, 0, d->channels * sizeof *c);
    for (uint32_t j = 0; j < d->conv_taps; j++) {
        const uint32_t at = in_span + j; /* n_before: the first row of the span */
        const float *restrict u =
            at < n_before ? before + (size_t)at * d->channels
                          : task->s->u + (size_t)(span->row + at - n_before) * d->channels;
        for (uint32_t i = 0; i < d->channels; i++)
            c[i] += taps[(size_t)i * d->conv_taps + j] * u[i];
    }
    tn_activate_plain(task->f->kernels, TERN_ACT_SILU, c, d->channels);
}

/* ---- one key head and its value heads ---- */

/* Rows of one span in one chunk. */
struct rows {
    uint32_t first;    /* in the batch */
    uint32_t n;
    uint32_t n_before; /* rows of the chunk before them */
};

/* dst [n_key] = x * factor / sqrt(x.x + eps), padded with zeros */
static void load_unit(float *dst, const float *x, const struct tn_layer_dims *d, float factor,
                      const struct tn_kernels *k)
{
    const uint32_t n_key = tn_delta_n_key(d);
    float square;
    memcpy(dst, x, d->head_dim * sizeof *dst);
    memset(dst + d->head_dim, 0, (n_key - d->head_dim) * sizeof *dst);
    k->attn_qk_f32(&square, 1, dst, 1, dst, 1, n_key, 1.0f);
    const float scale = 1.0f / sqrtf(square + L2_EPS);
    for (uint32_t i = 0; i < d->head_dim; i++)
        dst[i] = dst[i] * scale * factor;
}

/* Loads keys and queries of rows, and computes their products with all keys of the chunk; adds the
 * keys to keys [CHUNK][n_key], those of the chunk. */
static void load_rows(const struct task *task, const struct rows *rows, uint32_t i_key_head,
                      float *keys, const struct thread *thread)
{
    const struct tn_layer_dims *d = &task->layer->dims;
    const struct tn_kernels *k = task->f->kernels;
    const uint32_t n_key = tn_delta_n_key(d);
    const float root = 1.0f / sqrtf((float)d->head_dim);
    for (uint32_t i = 0; i < rows->n; i++) {
        const float *q = task->s->c + (size_t)(rows->first + i) * d->channels +
                         (size_t)i_key_head * d->head_dim;
        float *pair = thread->pairs + (size_t)2 * i * n_key;
        load_unit(pair, q + (size_t)d->n_kv_head * d->head_dim, d, 1.0f, k);
        load_unit(pair + n_key, q, d, root, k);
        memcpy(keys + (size_t)(rows->n_before + i) * n_key, pair, n_key * sizeof *keys);
    }
    k->attn_qk_f32(thread->dots, CHUNK, thread->pairs, 2 * rows->n, keys,
                   rows->n_before + rows->n, n_key, 1.0f);
}

/* thread->sums = sums over the rows j < t of the chunk of D_tj (k_t.k_j) delta_j, and the same with
 * q_t. */
static void sum_rows_before(const struct task *task, const struct tn_delta_rows *kept, uint32_t t,
                            const float *dots, const struct thread *thread)
{
    float weights[2 * CHUNK];
    for (uint32_t j = 0; j < t; j++) {
        const float decay = tn_exp_f32(kept->decays[t] - kept->decays[j]);
        weights[j] = decay * dots[j];
        weights[CHUNK + j] = decay * dots[CHUNK + j];
    }
    const uint32_t n_value = tn_delta_n_value(&task->layer->dims);
    task->f->kernels->attn_pv_f32(thread->sums, weights, CHUNK, 2, kept->deltas, t, n_value);
}

/* The head of the columns of delta_out that takes the output of a value head. */
static uint32_t out_head_of(const struct tn_layer *layer, uint32_t i_head)
{
    const struct tn_layer_dims *d = &layer->dims;
    return layer->spec->delta_flags & TERN_DELTA_OUT_GROUPED
               ? i_head % d->n_kv_head * (d->n_head / d->n_kv_head) + i_head / d->n_kv_head
               : i_head;
}

/* Computes G, delta and o of row i, whose products are ready. */
static void run_row(const struct task *task, const struct rows *rows, uint32_t i, uint32_t i_head,
                    const struct tn_delta_rows *kept, const struct thread *thread)
{
    const struct tn_layer *layer = task->layer;
    const struct tn_layer_dims *d = &layer->dims;
    const struct tn_kernels *k = task->f->kernels;
    const size_t row = rows->first + i, at = row * d->n_head + i_head;
    const uint32_t t = rows->n_before + i, n_value = tn_delta_n_value(d);
    const float *v = task->s->c + row * d->channels + (size_t)2 * d->n_kv_head * d->head_dim +
                     (size_t)i_head * d->value_dim;
    const float *products = thread->products + (size_t)2 * i * n_value, *sums = thread->sums;
    const float *dots = thread->dots + (size_t)2 * i * CHUNK;
    const float beta = sigmoid(task->s->b[at]);
    float *delta = kept->deltas + (size_t)t * n_value;
    float *o = task->s->o + (row * d->n_head + out_head_of(layer, i_head)) * d->value_dim;
    kept->decays[t] = (t > 0 ? kept->decays[t - 1] : 0) +
                      layer->vectors[TERN_ROLE_DELTA_DECAY][i_head] *
                          softplus(task->s->a[at] + layer->vectors[TERN_ROLE_DELTA_DT][i_head]);
    sum_rows_before(task, kept, t, dots, thread);
    const float decay = tn_exp_f32(kept->decays[t]), own = dots[CHUNK + t];
    for (uint32_t j = 0; j < d->value_dim; j++) {
        delta[j] = beta * (v[j] - decay * products[j] - sums[j]);
        o[j] = decay * products[n_value + j] + (sums[n_value + j] + own * delta[j]);
    }
    memset(delta + d->value_dim, 0, (n_value - d->value_dim) * sizeof *delta);
    k->rms_norm_f32(o, o, layer->vectors[TERN_ROLE_DELTA_NORM], d->value_dim,
                    task->f->weights->config->rms_eps);
    k->silu_mul_f32(o, task->s->z + at * d->value_dim, o, d->value_dim);
}

/* Rows of one chunk; `matrix` is S at its start, `kept` its rows. */
static void run_value_head(const struct task *task, const struct rows *rows, uint32_t i_head,
                           const float *matrix, const struct tn_delta_rows *kept,
                           const struct thread *thread)
{
    const struct tn_layer_dims *d = &task->layer->dims;
    task->f->kernels->attn_pv_f32(thread->products, thread->pairs, tn_delta_n_key(d), 2 * rows->n,
                                  matrix, d->head_dim, tn_delta_n_value(d));
    for (uint32_t i = 0; i < rows->n; i++)
        run_row(task, rows, i, i_head, kept, thread);
}

/* A key head in one span. */
struct key_head {
    const struct task *task;
    const struct thread *thread;
    struct tn_delta_state state;
    uint32_t i_key_head;
    uint32_t base; /* position of the matrices */
};

static float *matrix_of(const struct key_head *h, uint32_t i_head)
{
    const struct tn_layer_dims *d = &h->task->layer->dims;
    return h->state.matrices + (size_t)i_head * d->head_dim * tn_delta_n_value(d);
}

static uint32_t n_value_heads(const struct key_head *h)
{
    return h->task->layer->dims.n_head / h->task->layer->dims.n_kv_head;
}

/* Merges the chunk at base into the matrices. */
static void take_in_chunk(struct key_head *h)
{
    const struct tn_layer_dims *d = &h->task->layer->dims;
    for (uint32_t i = 0; i < n_value_heads(h); i++) {
        const uint32_t i_head = tn_delta_value_head(h->task->layer, h->i_key_head, i);
        const struct tn_delta_rows rows =
            tn_delta_rows_of(&h->state, d, h->i_key_head, i_head, 0);
        tn_delta_take_in(matrix_of(h, i_head), matrix_of(h, i_head), &rows, CHUNK, d,
                         h->task->f->kernels->attn_pv_f32);
    }
    h->base += CHUNK;
}

/* Earlier rows of the sequence are final: merges a chunk that they have filled, and moves the rows
 * after it to the front. */
static void settle(struct key_head *h)
{
    const struct tn_layer_dims *d = &h->task->layer->dims;
    const uint32_t position = h->state.header->position;
    if (tn_delta_chunk_of(position) == h->base)
        return;
    take_in_chunk(h);
    const uint32_t n = position - h->base, n_key = tn_delta_n_key(d), n_value = tn_delta_n_value(d);
    for (uint32_t i = 0; i < n_value_heads(h); i++) {
        const uint32_t i_head = tn_delta_value_head(h->task->layer, h->i_key_head, i);
        const struct tn_delta_rows rows =
            tn_delta_rows_of(&h->state, d, h->i_key_head, i_head, 0);
        memcpy(rows.deltas, rows.deltas + CHUNK * n_value, (size_t)n * n_value * sizeof(float));
        memcpy(rows.decays, rows.decays + CHUNK, n * sizeof(float));
        if (i == 0) /* all value heads share the keys */
            memcpy(rows.keys, rows.keys + CHUNK * n_key, (size_t)n * n_key * sizeof(float));
    }
}

/* Rows of the chunk at `start`, which is base or the chunk after it. */
static void run_chunk(const struct key_head *h, const struct rows *rows, uint32_t start)
{
    const struct task *task = h->task;
    const struct tn_layer_dims *d = &task->layer->dims;
    for (uint32_t i = 0; i < n_value_heads(h); i++) {
        const uint32_t i_head = tn_delta_value_head(task->layer, h->i_key_head, i);
        const struct tn_delta_rows at_base =
            tn_delta_rows_of(&h->state, d, h->i_key_head, i_head, 0);
        const struct tn_delta_rows kept =
            tn_delta_rows_of(&h->state, d, h->i_key_head, i_head, start - h->base);
        const float *matrix = matrix_of(h, i_head);
        if (start > h->base) {
            tn_delta_take_in(h->thread->matrix, matrix, &at_base, CHUNK, d,
                             task->f->kernels->attn_pv_f32);
            matrix = h->thread->matrix;
        }
        if (i == 0)
            load_rows(task, rows, h->i_key_head, kept.keys, h->thread);
        run_value_head(task, rows, i_head, matrix, &kept, h->thread);
    }
}

static void key_head_item(void *arg, uint32_t i_item, uint32_t i_thread)
{
    const struct task *task = arg;
    const uint32_t n_key_head = task->layer->dims.n_kv_head;
    const struct tn_span *span = &task->f->batch->spans[i_item / n_key_head];
    const uint32_t end = span->position + span->n_rows;
    struct key_head h = {task, &task->s->threads[i_thread], state_of(task, span),
                         i_item % n_key_head, 0};
    h.base = tn_delta_base(h.state.header);
    settle(&h);
    for (uint32_t position = span->position; position < end;) {
        const uint32_t start = tn_delta_chunk_of(position);
        const struct rows rows = {span->row + position - span->position,
                                  TN_MIN(start + CHUNK, end) - position, position - start};
        run_chunk(&h, &rows, start);
        position += rows.n;
        if (start + CHUNK <= end - n_open(span))
            take_in_chunk(&h);
    }
}

static void begin_span(const struct task *task, const struct tn_span *span)
{
    const struct tn_delta_state s = state_of(task, span);
    assert(s.header->position == span->position);
    tn_delta_shift_inputs(s.inputs, s.open_inputs, s.header->n_open, &task->layer->dims);
}

static void finish_span(const struct task *task, const struct tn_span *span)
{
    const struct tn_layer_dims *d = &task->layer->dims;
    const struct tn_delta_state s = state_of(task, span);
    const float *u = task->s->u + (size_t)span->row * d->channels;
    const uint32_t n_final = span->n_rows - n_open(span);
    tn_delta_shift_inputs(s.inputs, u, n_final, d);
    memcpy(s.open_inputs, u + (size_t)n_final * d->channels,
           (size_t)n_open(span) * d->channels * sizeof *u);
    *s.header = (struct tn_delta_header){.position = span->position + span->n_rows,
                                         .n_open = n_open(span)};
}

static void mix(struct task *task)
{
    struct tn_forward *f = task->f;
    const struct tn_batch *batch = f->batch;
    for (uint32_t i = 0; i < batch->n_spans; i++)
        begin_span(task, &batch->spans[i]);
    tn_team_for(f->team, f->n_tokens, convolve_item, task);
    tn_team_for(f->team, batch->n_spans * task->layer->dims.n_kv_head, key_head_item, task);
    for (uint32_t i = 0; i < batch->n_spans; i++)
        finish_span(task, &batch->spans[i]);
}

static void run(struct tn_forward *f, uint32_t i_layer)
{
    struct task task = {f, &f->weights->layers[i_layer], f->s.mixers[TERN_MIXER_GATED_DELTA],
                        i_layer};
    uint64_t start = f->now_ns();
    project(f, task.layer, task.s);
    tn_region_end(f, TN_REGION_QKV, &start);
    if (f->is_stopping) /* products are incomplete and must not reach the state */
        return;
    mix(&task);
    tn_region_end(f, TN_REGION_ATTENTION, &start);
    const struct tn_branch out = {.w = tn_matrix_of(task.layer, TERN_ROLE_DELTA_OUT)};
    tn_add_branch(f, task.s->o, task.layer->dims.n_head * task.layer->dims.value_dim, &out);
    tn_region_end(f, TN_REGION_O, &start);
}

/* ---- memory ---- */

/* The maximum of each over the layers. */
static struct tn_layer_dims largest_of(const struct tn_weights *weights, size_t *n_values)
{
    struct tn_layer_dims most = {0};
    for (uint32_t i = 0; i < tn_n_all_layers(weights->config); i++) {
        const struct tn_layer_dims *d = &weights->layers[i].dims;
        if (weights->layers[i].spec->mixer != TERN_MIXER_GATED_DELTA)
            continue;
        most.n_head = TN_MAX(most.n_head, d->n_head);
        most.head_dim = TN_MAX(most.head_dim, d->head_dim);
        most.value_dim = TN_MAX(most.value_dim, d->value_dim);
        most.channels = TN_MAX(most.channels, d->channels);
        *n_values = TN_MAX(*n_values, (size_t)d->n_head * d->value_dim);
    }
    return most;
}

static void layout(void *out, struct tn_arena *arena, const struct tn_weights *weights,
                   const struct tn_workspace_input *input)
{
    size_t n_values = 0;
    const struct tn_layer_dims most = largest_of(weights, &n_values);
    const size_t n = input->n_batch, n_key = tn_delta_n_key(&most);
    const size_t n_value = tn_delta_n_value(&most);
    struct scratch *scratch = out;
    const struct scratch s = {
        .u = tn_take_f32(arena, n * most.channels),
        .c = tn_take_f32(arena, n * most.channels),
        .z = tn_take_f32(arena, n * n_values),
        .b = tn_take_f32(arena, n * most.n_head),
        .a = tn_take_f32(arena, n * most.n_head),
        .o = tn_take_f32(arena, n * n_values),
    };
    for (uint32_t i = 0; i < input->n_threads; i++) {
        const struct thread t = {
            .pairs = tn_take_f32(arena, 2 * CHUNK * n_key),
            .products = tn_take_f32(arena, 2 * CHUNK * n_value),
            .dots = tn_take_f32(arena, 2 * CHUNK * CHUNK),
            .sums = tn_take_f32(arena, 2 * n_value),
            .matrix = tn_take_f32(arena, most.head_dim * n_value),
        };
        if (scratch)
            scratch->threads[i] = t;
    }
    if (scratch)
        *scratch = s;
}

const struct tn_mixer tn_mixer_gated_delta = {
    .name = "gated delta",
    .run = run,
    .state = &tn_delta_state_ops,
    .scratch_bytes = sizeof(struct scratch),
    .thread_bytes = sizeof(struct thread),
    .layout = layout,
};
