/* SPDX-License-Identifier: MIT
 *
 * Gated DeltaNet: instead of keys and values, a layer keeps a matrix S for each value head, and the
 * last inputs of a short convolution (tern/model_format.h has the formulas).
 *
 * Rows are taken one after the other, each in the same order of operations, so the bits do not
 * depend on how a text is cut into batches, drafts or threads.  Since S forgets, rows that may be
 * dropped must not be in it yet: S is that of `base`, and of the last rows of a span (PENDING, as
 * many as drafts need) the state holds what S becomes of them.  The next span adds those that it
 * follows.
 *
 *   state       header, inputs [conv_taps - 1][channels] before base, S [n_head][head_dim]
 *               [value_dim]; of the pending rows: inputs [channels], keys, deltas, decays
 *   checkpoint  header, inputs and S of its position
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/bits.h"
#include "kern/exp.h"
#include "model/counters.h"
#include "model/matrix.h"
#include "model/mixer.h"

/* A chosen token and its drafts: TN_DRAFT_MAX_ROWS of engine/draft.h. */
#define PENDING 8u
#define L2_EPS 1e-6f

struct header {
    uint32_t position;
    uint32_t n_pending; /* rows before it that S does not have */
    uint32_t unused[14];
};
static_assert(sizeof(struct header) == 64, "floats begin at a multiple of 64 bytes");

/* Places in a state, in bytes, and its sizes. */
struct places {
    size_t inputs, matrices, new_inputs, keys, deltas, decays; /* the last four: [PENDING] */
    size_t checkpoint_bytes, bytes;
};

struct scratch {
    float *u;    /* [n_batch][channels] inputs of the convolution */
    float *c;    /* [n_batch][channels] what it gives */
    float *z;    /* [n_batch][n_head * value_dim] */
    float *b, *a; /* [n_batch][n_head] */
    float *o;    /* [n_batch][n_head * value_dim] */
    struct thread {
        float *query, *key; /* [head_dim] */
        float *matrix;      /* [head_dim][value_dim] S of rows that may be dropped */
        float *delta;       /* [value_dim] */
    } threads[];
};

static size_t add_floats(size_t *used, size_t n)
{
    const size_t at = *used;
    *used += tn_align_up(n * sizeof(float), 64);
    return at;
}

static struct places places_of(const struct tn_layer_dims *d)
{
    struct places p;
    size_t used = sizeof(struct header);
    p.inputs = add_floats(&used, (size_t)(d->conv_taps - 1) * d->channels);
    p.matrices = add_floats(&used, (size_t)d->n_head * d->head_dim * d->value_dim);
    p.checkpoint_bytes = used;
    p.new_inputs = add_floats(&used, (size_t)PENDING * d->channels);
    p.keys = add_floats(&used, (size_t)PENDING * d->n_kv_head * d->head_dim);
    p.deltas = add_floats(&used, (size_t)PENDING * d->n_head * d->value_dim);
    p.decays = add_floats(&used, (size_t)PENDING * d->n_head);
    p.bytes = used;
    return p;
}

static float *floats_at(void *state, size_t place)
{
    return (float *)((unsigned char *)state + place);
}

static uint32_t base_of(const struct header *h)
{
    return h->position - h->n_pending;
}

/* ---- functions of one number, the same bits everywhere ---- */

static float sigmoid(float x)
{
    return 1.0f / (1.0f + tn_exp_f32(-x));
}

/* log(1 + exp(x)) = max(x, 0) + log(1 + y), y = exp(-|x|), and log(1 + y) = 2 artanh(y / (2 + y)):
 * at most 1/3 is put into the series, whose 11 terms leave an error below 1e-11. */
static float softplus(float x)
{
    const double y = (double)tn_exp_f32(-fabsf(x)), z = y / (2 + y), square = z * z;
    double sum = 0;
    for (int i = 21; i > 0; i -= 2)
        sum = sum * square + 1.0 / i;
    return (float)((x > 0 ? (double)x : 0) + 2 * z * sum);
}

/* dst [n] = x * factor / sqrt(x.x + eps) */
static void l2_norm(float *dst, const float *x, uint32_t n, float factor)
{
    float sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    const float scale = 1.0f / sqrtf(sum + L2_EPS);
    for (uint32_t i = 0; i < n; i++)
        dst[i] = x[i] * scale * factor;
}

/* ---- the recurrence; m [head_dim][value_dim] ---- */

/* delta = beta * (v - decay * key.m) */
static void find_delta(float *restrict delta, const float *restrict m, const float *restrict key,
                       const float *restrict v, const struct tn_layer_dims *d, float decay,
                       float beta)
{
    const uint32_t n = d->value_dim;
    memset(delta, 0, n * sizeof *delta);
    for (uint32_t i = 0; i < d->head_dim; i++)
        for (uint32_t j = 0; j < n; j++)
            delta[j] += key[i] * m[(size_t)i * n + j];
    for (uint32_t j = 0; j < n; j++)
        delta[j] = beta * (v[j] - decay * delta[j]);
}

/* m = decay * m + key (x) delta */
static void add_row(float *restrict m, const float *restrict key, const float *restrict delta,
                    const struct tn_layer_dims *d, float decay)
{
    const uint32_t n = d->value_dim;
    for (uint32_t i = 0; i < d->head_dim; i++)
        for (uint32_t j = 0; j < n; j++)
            m[(size_t)i * n + j] = decay * m[(size_t)i * n + j] + key[i] * delta[j];
}

/* o = query.m */
static void read_out(float *restrict o, const float *restrict m, const float *restrict query,
                     const struct tn_layer_dims *d)
{
    const uint32_t n = d->value_dim;
    memset(o, 0, n * sizeof *o);
    for (uint32_t i = 0; i < d->head_dim; i++)
        for (uint32_t j = 0; j < n; j++)
            o[j] += query[i] * m[(size_t)i * n + j];
}

/* ---- states ---- */

static struct tn_state_bytes state_bytes(const struct tn_weights *weights,
                                         const struct tn_layer *layer,
                                         const struct tn_state_input *input)
{
    const struct places p = places_of(&layer->dims);
    (void)weights, (void)input;
    return (struct tn_state_bytes){.sequence = p.bytes, .checkpoint = p.checkpoint_bytes};
}

static uint32_t reach(const struct tn_layer *layer, const void *state, uint32_t position)
{
    const struct header *h = state;
    (void)layer;
    position = TN_MIN(position, h->position);
    return position >= base_of(h) ? position : 0;
}

static void truncate_to(const struct tn_layer *layer, void *state, uint32_t position)
{
    struct header *h = state;
    assert(position == reach(layer, state, position));
    if (position < base_of(h))
        memset(state, 0, places_of(&layer->dims).bytes);
    else
        *h = (struct header){.position = position, .n_pending = position - base_of(h)};
}

/* inputs [conv_taps - 1][channels] become the last ones of inputs and n rows more. */
static void shift_inputs(float *inputs, const float *rows, uint32_t n,
                         const struct tn_layer_dims *d)
{
    const uint32_t n_kept = d->conv_taps - 1u;
    const size_t row = d->channels * sizeof(float);
    const uint32_t n_new = TN_MIN(n, n_kept), n_old = n_kept - n_new;
    memmove(inputs, inputs + (size_t)n_new * d->channels, n_old * row);
    memcpy(inputs + (size_t)n_old * d->channels, rows + (size_t)(n - n_new) * d->channels,
           n_new * row);
}

/* Adds the first n pending rows to one head's matrix. */
static void add_pending(float *matrix, void *state, const struct tn_layer_dims *d,
                        uint32_t i_key_head, uint32_t i_head, uint32_t n)
{
    const struct places p = places_of(d);
    const float *keys = floats_at(state, p.keys) + (size_t)i_key_head * d->head_dim;
    const float *deltas = floats_at(state, p.deltas) + (size_t)i_head * d->value_dim;
    const float *decays = floats_at(state, p.decays) + i_head;
    for (uint32_t i = 0; i < n; i++)
        add_row(matrix, keys + (size_t)i * d->n_kv_head * d->head_dim,
                deltas + (size_t)i * d->n_head * d->value_dim, d, decays[(size_t)i * d->n_head]);
}

static uint32_t key_head_of(const struct tn_layer *layer, uint32_t i_head)
{
    const struct tn_layer_dims *d = &layer->dims;
    return layer->spec->delta_flags & TERN_DELTA_TILED ? i_head % d->n_kv_head
                                                       : i_head / (d->n_head / d->n_kv_head);
}

/* Where the output of a value head is among the columns of delta_out. */
static uint32_t out_head_of(const struct tn_layer *layer, uint32_t i_head)
{
    const struct tn_layer_dims *d = &layer->dims;
    return layer->spec->delta_flags & TERN_DELTA_OUT_GROUPED
               ? i_head % d->n_kv_head * (d->n_head / d->n_kv_head) + i_head / d->n_kv_head
               : i_head;
}

static void checkpoint(const struct tn_layer *layer, const void *state, uint32_t position,
                       void *kept)
{
    const struct tn_layer_dims *d = &layer->dims;
    const struct places p = places_of(d);
    const uint32_t n = position - base_of(state);
    const size_t n_matrix = (size_t)d->head_dim * d->value_dim;
    void *from = (void *)(uintptr_t)state; /* only read */
    assert(position == reach(layer, state, position));
    memcpy(kept, state, p.checkpoint_bytes);
    *(struct header *)kept = (struct header){.position = position};
    shift_inputs(floats_at(kept, p.inputs), floats_at(from, p.new_inputs), n, d);
    for (uint32_t i = 0; i < d->n_head; i++)
        add_pending(floats_at(kept, p.matrices) + i * n_matrix, from, d, key_head_of(layer, i), i,
                    n);
}

static void restore(const struct tn_layer *layer, void *state, const void *kept)
{
    memcpy(state, kept, places_of(&layer->dims).checkpoint_bytes);
}

static bool is_sound(const struct tn_layer *layer, const void *kept, uint32_t position)
{
    const struct header expected = {.position = position};
    (void)layer;
    return memcmp(kept, &expected, sizeof expected) == 0;
}

/* ---- one batch ---- */

struct task {
    struct tn_forward *f;
    const struct tn_layer *layer;
    struct scratch *s;
    uint32_t i_layer;
};

/* Rows of a span whose S may be that of base: the others may be dropped. */
static uint32_t n_final(const struct tn_span *span)
{
    return span->n_rows - TN_MIN(span->n_rows, PENDING);
}

static void project(struct tn_forward *f, const struct tn_layer *layer, const struct scratch *s)
{
    const struct tn_product products[] = {
        {.w = tn_matrix_of(layer, TERN_ROLE_DELTA_QKV), .dst = s->u},
        {.w = tn_matrix_of(layer, TERN_ROLE_DELTA_Z), .dst = s->z},
        {.w = tn_matrix_of(layer, TERN_ROLE_DELTA_B), .dst = s->b},
        {.w = tn_matrix_of(layer, TERN_ROLE_DELTA_A), .dst = s->a},
    };
    tn_multiply(f, f->s.h, layer->vectors[TERN_ROLE_ATTN_NORM], f->weights->config->hidden,
                products, 4);
}

/* The convolution of the channels of row t; those before the span are in its state. */
static void convolve_item(void *arg, uint32_t t, uint32_t i_thread)
{
    const struct task *task = arg;
    const struct tn_layer_dims *d = &task->layer->dims;
    const struct tn_span *span = task->f->batch->spans;
    while (t - span->row >= span->n_rows)
        span++;
    const float *before = floats_at(tn_state_of(task->f, span, task->i_layer),
                                    places_of(d).inputs);
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
    for (uint32_t i = 0; i < d->channels; i++)
        c[i] = c[i] * sigmoid(c[i]);
}

/* What a row of a span brings to a value head. */
struct row {
    float decay, beta;
    const float *value;
};

static struct row row_of(const struct task *task, size_t t, uint32_t i_head)
{
    const struct tn_layer *layer = task->layer;
    const struct tn_layer_dims *d = &layer->dims;
    const float a = task->s->a[t * d->n_head + i_head] + layer->vectors[TERN_ROLE_DELTA_DT][i_head];
    const size_t keys = (size_t)2 * d->n_kv_head * d->head_dim;
    return (struct row){
        .decay = tn_exp_f32(layer->vectors[TERN_ROLE_DELTA_DECAY][i_head] * softplus(a)),
        .beta = sigmoid(task->s->b[t * d->n_head + i_head]),
        .value = task->s->c + t * d->channels + keys + (size_t)i_head * d->value_dim,
    };
}

/* o of value head i_head in row t, which S then has; its delta goes to `delta`. */
static void step(const struct task *task, size_t t, uint32_t i_head, float *matrix, float *delta,
                 const struct row *row, const struct thread *thread)
{
    const struct tn_layer *layer = task->layer;
    const struct tn_layer_dims *d = &layer->dims;
    const struct tn_kernels *k = task->f->kernels;
    const size_t at = (t * d->n_head + i_head) * d->value_dim;
    float *o = task->s->o + (t * d->n_head + out_head_of(layer, i_head)) * d->value_dim;
    find_delta(delta, matrix, thread->key, row->value, d, row->decay, row->beta);
    add_row(matrix, thread->key, delta, d, row->decay);
    read_out(o, matrix, thread->query, d);
    k->rms_norm_f32(o, o, layer->vectors[TERN_ROLE_DELTA_NORM], d->value_dim,
                    task->f->weights->config->rms_eps);
    k->silu_mul_f32(o, task->s->z + at, o, d->value_dim);
}

/* Query and key of a key head in row t, of length 1 (the query: over the root of its size). */
static void load_key_head(const struct task *task, size_t t, uint32_t i_key_head,
                          const struct thread *thread)
{
    const struct tn_layer_dims *d = &task->layer->dims;
    const float *q = task->s->c + t * d->channels + (size_t)i_key_head * d->head_dim;
    l2_norm(thread->query, q, d->head_dim, 1.0f / sqrtf((float)d->head_dim));
    l2_norm(thread->key, q + (size_t)d->n_kv_head * d->head_dim, d->head_dim, 1.0f);
}

/* One value head over the rows of a span; its key head's pending rows are those of the span before
 * until the last value head has added them. */
static void run_head(const struct task *task, const struct tn_span *span, uint32_t i_head,
                     const struct thread *thread)
{
    const struct tn_layer_dims *d = &task->layer->dims;
    const struct places p = places_of(d);
    void *state = tn_state_of(task->f, span, task->i_layer);
    const size_t n_matrix = (size_t)d->head_dim * d->value_dim;
    const uint32_t i_key_head = key_head_of(task->layer, i_head);
    float *matrix = floats_at(state, p.matrices) + i_head * n_matrix;
    add_pending(matrix, state, d, i_key_head, i_head, ((struct header *)state)->n_pending);
    for (uint32_t i = 0; i < span->n_rows; i++) {
        const size_t t = (size_t)span->row + i;
        const struct row row = row_of(task, t, i_head);
        load_key_head(task, t, i_key_head, thread);
        if (i < n_final(span)) {
            step(task, t, i_head, matrix, thread->delta, &row, thread);
            continue;
        }
        const size_t at = (size_t)(i - n_final(span)) * d->n_head + i_head;
        if (i == n_final(span))
            memcpy(thread->matrix, matrix, n_matrix * sizeof *matrix);
        floats_at(state, p.decays)[at] = row.decay;
        step(task, t, i_head, thread->matrix, floats_at(state, p.deltas) + at * d->value_dim, &row,
             thread);
    }
}

/* The value heads of a key head, in one span, then the keys of its pending rows. */
static void key_head_item(void *arg, uint32_t i_item, uint32_t i_thread)
{
    const struct task *task = arg;
    const struct tn_layer_dims *d = &task->layer->dims;
    const struct tn_span *span = &task->f->batch->spans[i_item / d->n_kv_head];
    const struct thread *thread = &task->s->threads[i_thread];
    const uint32_t i_key_head = i_item % d->n_kv_head;
    float *keys = floats_at(tn_state_of(task->f, span, task->i_layer), places_of(d).keys);
    for (uint32_t i = 0; i < d->n_head; i++)
        if (key_head_of(task->layer, i) == i_key_head)
            run_head(task, span, i, thread);
    for (uint32_t i = n_final(span); i < span->n_rows; i++) {
        load_key_head(task, (size_t)span->row + i, i_key_head, thread);
        memcpy(keys + ((size_t)(i - n_final(span)) * d->n_kv_head + i_key_head) * d->head_dim,
               thread->key, d->head_dim * sizeof *keys);
    }
}

/* The inputs before a span join those of base. */
static void add_pending_inputs(void *state, const struct tn_layer_dims *d)
{
    const struct places p = places_of(d);
    shift_inputs(floats_at(state, p.inputs), floats_at(state, p.new_inputs),
                 ((struct header *)state)->n_pending, d);
}

static void finish_span(const struct task *task, const struct tn_span *span)
{
    const struct tn_layer_dims *d = &task->layer->dims;
    const struct places p = places_of(d);
    void *state = tn_state_of(task->f, span, task->i_layer);
    const float *u = task->s->u + (size_t)span->row * d->channels;
    const uint32_t n = n_final(span), n_pending = span->n_rows - n;
    shift_inputs(floats_at(state, p.inputs), u, n, d);
    memcpy(floats_at(state, p.new_inputs), u + (size_t)n * d->channels,
           (size_t)n_pending * d->channels * sizeof *u);
    *(struct header *)state =
        (struct header){.position = span->position + span->n_rows, .n_pending = n_pending};
}

static void mix(struct task *task)
{
    struct tn_forward *f = task->f;
    const struct tn_batch *batch = f->batch;
    const struct tn_layer_dims *d = &task->layer->dims;
    for (uint32_t i = 0; i < batch->n_spans; i++) {
        void *state = tn_state_of(f, &batch->spans[i], task->i_layer);
        assert(((struct header *)state)->position == batch->spans[i].position);
        add_pending_inputs(state, d);
    }
    tn_team_for(f->team, f->n_tokens, convolve_item, task);
    tn_team_for(f->team, batch->n_spans * d->n_kv_head, key_head_item, task);
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
    if (f->is_stopping) /* products are not complete: the state must not see them */
        return;
    mix(&task);
    tn_region_end(f, TN_REGION_ATTENTION, &start);
    const struct tn_branch out = {.w = tn_matrix_of(task.layer, TERN_ROLE_DELTA_OUT)};
    tn_add_branch(f, task.s->o, task.layer->dims.n_head * task.layer->dims.value_dim, &out);
    tn_region_end(f, TN_REGION_O, &start);
}

/* ---- memory ---- */

/* The most of each that a layer takes. */
static struct tn_layer_dims most_of(const struct tn_weights *weights, size_t *n_values,
                                    size_t *n_matrix)
{
    struct tn_layer_dims most = {0};
    for (uint32_t i = 0; i < weights->config->n_layer; i++) {
        const struct tn_layer_dims *d = &weights->layers[i].dims;
        if (weights->layers[i].spec->mixer != TERN_MIXER_GATED_DELTA)
            continue;
        most.n_head = TN_MAX(most.n_head, d->n_head);
        most.head_dim = TN_MAX(most.head_dim, d->head_dim);
        most.value_dim = TN_MAX(most.value_dim, d->value_dim);
        most.channels = TN_MAX(most.channels, d->channels);
        *n_values = TN_MAX(*n_values, (size_t)d->n_head * d->value_dim);
        *n_matrix = TN_MAX(*n_matrix, (size_t)d->head_dim * d->value_dim);
    }
    return most;
}

static float *take_f32(struct tn_arena *arena, size_t n)
{
    return tn_arena_take(arena, n * sizeof(float));
}

static void layout(void *out, struct tn_arena *arena, const struct tn_weights *weights,
                   const struct tn_workspace_input *input)
{
    size_t n_values = 0, n_matrix = 0;
    const struct tn_layer_dims most = most_of(weights, &n_values, &n_matrix);
    const size_t n = input->n_batch;
    struct scratch *scratch = out;
    const struct scratch s = {
        .u = take_f32(arena, n * most.channels),
        .c = take_f32(arena, n * most.channels),
        .z = take_f32(arena, n * n_values),
        .b = take_f32(arena, n * most.n_head),
        .a = take_f32(arena, n * most.n_head),
        .o = take_f32(arena, n * n_values),
    };
    for (uint32_t i = 0; i < input->n_threads; i++) {
        const struct thread t = {take_f32(arena, most.head_dim), take_f32(arena, most.head_dim),
                                 take_f32(arena, n_matrix), take_f32(arena, most.value_dim)};
        if (scratch)
            scratch->threads[i] = t;
    }
    if (scratch)
        *scratch = s;
}

static const struct tn_state_ops state = {
    .bytes = state_bytes,
    .reach = reach,
    .truncate = truncate_to,
    .checkpoint = checkpoint,
    .kept_reach = reach,
    .restore = restore,
    .is_sound = is_sound,
};

const struct tn_mixer tn_mixer_gated_delta = {
    .name = "gated delta",
    .run = run,
    .state = &state,
    .scratch_bytes = sizeof(struct scratch),
    .thread_bytes = sizeof(struct thread),
    .layout = layout,
};
