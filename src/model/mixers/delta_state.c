/* SPDX-License-Identifier: MIT
 *
 * Memory layout of a state and of a checkpoint, and copying between them.  The formulas are in
 * delta_state.h; gated_delta.c computes the rows.
 */
#include "model/mixers/delta_state.h"

#include <assert.h>
#include <string.h>

#include "base/bits.h"
#include "kern/exp.h"

uint32_t tn_delta_n_key(const struct tn_layer_dims *d)
{
    return (uint32_t)tn_align_up(d->head_dim, 16);
}

uint32_t tn_delta_n_value(const struct tn_layer_dims *d)
{
    return (uint32_t)tn_align_up(d->value_dim, 16);
}

/* ---- memory layout ---- */

/* Advances *used by n floats; returns their address, NULL when only counting. */
static float *take_floats(void *memory, size_t *used, size_t n)
{
    float *at = memory ? (float *)((unsigned char *)memory + *used) : NULL;
    *used += tn_align_up(n * sizeof(float), 64);
    return at;
}

static struct tn_delta_state arrange(void *memory, size_t *used, const struct tn_layer_dims *d,
                                     uint32_t n_rows, uint32_t n_open)
{
    struct tn_delta_state s = {.header = memory, .n_rows = n_rows};
    *used = sizeof *s.header;
    s.inputs = take_floats(memory, used, (size_t)(d->conv_taps - 1) * d->channels);
    s.matrices = take_floats(memory, used, (size_t)d->n_head * d->head_dim * tn_delta_n_value(d));
    s.keys = take_floats(memory, used, (size_t)d->n_kv_head * n_rows * tn_delta_n_key(d));
    s.deltas = take_floats(memory, used, (size_t)d->n_head * n_rows * tn_delta_n_value(d));
    s.decays = take_floats(memory, used, (size_t)d->n_head * n_rows);
    s.open_inputs = take_floats(memory, used, (size_t)n_open * d->channels);
    return s;
}

struct tn_delta_state tn_delta_state_of(void *state, const struct tn_layer_dims *d)
{
    size_t used;
    return arrange(state, &used, d, TN_DELTA_CHUNK + TN_DELTA_OPEN, TN_DELTA_OPEN);
}

struct tn_delta_state tn_delta_kept_of(void *kept, const struct tn_layer_dims *d)
{
    size_t used;
    return arrange(kept, &used, d, TN_DELTA_CHUNK, 0);
}

static struct tn_state_bytes state_bytes(const struct tn_weights *weights,
                                         const struct tn_layer *layer,
                                         const struct tn_state_input *input)
{
    struct tn_state_bytes bytes = {0};
    (void)weights, (void)input;
    arrange(NULL, &bytes.sequence, &layer->dims, TN_DELTA_CHUNK + TN_DELTA_OPEN, TN_DELTA_OPEN);
    arrange(NULL, &bytes.checkpoint, &layer->dims, TN_DELTA_CHUNK, 0);
    return bytes;
}

struct tn_delta_rows tn_delta_rows_of(const struct tn_delta_state *s,
                                      const struct tn_layer_dims *d, uint32_t i_key_head,
                                      uint32_t i_head, uint32_t first)
{
    const size_t key_row = (size_t)i_key_head * s->n_rows + first;
    const size_t row = (size_t)i_head * s->n_rows + first;
    return (struct tn_delta_rows){
        .keys = s->keys + key_row * tn_delta_n_key(d),
        .deltas = s->deltas + row * tn_delta_n_value(d),
        .decays = s->decays + row,
    };
}

uint32_t tn_delta_value_head(const struct tn_layer *layer, uint32_t i_key_head, uint32_t i)
{
    const struct tn_layer_dims *d = &layer->dims;
    return layer->spec->delta_flags & TERN_DELTA_TILED
               ? i_key_head + i * d->n_kv_head
               : i_key_head * (d->n_head / d->n_kv_head) + i;
}

/* ---- changes by rows ---- */

void tn_delta_take_in(float *dst, const float *matrix, const struct tn_delta_rows *rows, uint32_t n,
                      const struct tn_layer_dims *d, tn_attn_pv_f32_fn *weighted_sum)
{
    enum { TOGETHER = 4 }; /* rows of S */
    float factors[TN_DELTA_CHUNK], weights[TOGETHER * TN_DELTA_CHUNK];
    float sums[TOGETHER * TERN_MAX_DELTA_DIM];
    const uint32_t n_key = tn_delta_n_key(d), n_value = tn_delta_n_value(d);
    const float decay = tn_exp_f32(rows->decays[n - 1]);
    for (uint32_t j = 0; j < n; j++)
        factors[j] = tn_exp_f32(rows->decays[n - 1] - rows->decays[j]);
    for (uint32_t i = 0; i < d->head_dim; i += TOGETHER) {
        const uint32_t n_together = TN_MIN((uint32_t)TOGETHER, d->head_dim - i);
        for (uint32_t k = 0; k < n_together; k++)
            for (uint32_t j = 0; j < n; j++)
                weights[k * TN_DELTA_CHUNK + j] = factors[j] * rows->keys[j * n_key + i + k];
        weighted_sum(sums, weights, TN_DELTA_CHUNK, n_together, rows->deltas, n, n_value);
        for (uint32_t k = 0; k < n_together * n_value; k++)
            dst[i * n_value + k] = decay * matrix[i * n_value + k] + sums[k];
    }
}

void tn_delta_shift_inputs(float *inputs, const float *rows, uint32_t n,
                           const struct tn_layer_dims *d)
{
    const uint32_t n_kept = d->conv_taps - 1u;
    const size_t row = d->channels * sizeof(float);
    const uint32_t n_new = TN_MIN(n, n_kept), n_old = n_kept - n_new;
    memmove(inputs, inputs + (size_t)n_new * d->channels, n_old * row);
    memcpy(inputs + (size_t)n_old * d->channels, rows + (size_t)(n - n_new) * d->channels,
           n_new * row);
}

/* ---- the contract (model/state.h) ---- */

static uint32_t reach(const struct tn_state_layer *layer, const void *state, uint32_t position)
{
    const struct tn_delta_header *h = state;
    (void)layer;
    position = TN_MIN(position, h->position);
    return position >= h->position - h->n_open ? position : 0;
}

static void truncate_to(const struct tn_state_layer *layer, void *state, uint32_t position)
{
    struct tn_delta_header *h = state;
    assert(position == reach(layer, state, position));
    if (position < h->position - h->n_open)
        memset(state, 0, layer->bytes.sequence);
    else
        *h = (struct tn_delta_header){.position = position,
                                      .n_open = position - (h->position - h->n_open)};
}

static void copy_rows(const struct tn_delta_rows *to, const struct tn_delta_rows *from, uint32_t n,
                      const struct tn_layer_dims *d)
{
    memcpy(to->keys, from->keys, (size_t)n * tn_delta_n_key(d) * sizeof *to->keys);
    memcpy(to->deltas, from->deltas, (size_t)n * tn_delta_n_value(d) * sizeof *to->deltas);
    memcpy(to->decays, from->decays, n * sizeof *to->decays);
}

/* Copies one value head of a checkpoint, whose base may be a chunk after that of the state. */
static void copy_head(const struct tn_delta_state *to, const struct tn_delta_state *from,
                      const struct tn_layer_dims *d, uint32_t i_key_head, uint32_t i_head)
{
    const size_t n_matrix = (size_t)d->head_dim * tn_delta_n_value(d);
    const uint32_t base = tn_delta_base(from->header), to_base = tn_delta_base(to->header);
    const struct tn_delta_rows chunk = tn_delta_rows_of(from, d, i_key_head, i_head, 0);
    const struct tn_delta_rows rest =
        tn_delta_rows_of(from, d, i_key_head, i_head, to_base - base);
    const struct tn_delta_rows to_rows = tn_delta_rows_of(to, d, i_key_head, i_head, 0);
    if (to_base > base)
        tn_delta_take_in(to->matrices + i_head * n_matrix, from->matrices + i_head * n_matrix,
                         &chunk, TN_DELTA_CHUNK, d, tn_attn_pv_f32_ref);
    else
        memcpy(to->matrices + i_head * n_matrix, from->matrices + i_head * n_matrix,
               n_matrix * sizeof *to->matrices);
    copy_rows(&to_rows, &rest, to->header->position - to_base, d);
}

static void copy_heads(const struct tn_delta_state *to, const struct tn_delta_state *from,
                       const struct tn_layer *layer)
{
    const struct tn_layer_dims *d = &layer->dims;
    for (uint32_t k = 0; k < d->n_kv_head; k++)
        for (uint32_t i = 0; i < d->n_head / d->n_kv_head; i++)
            copy_head(to, from, d, k, tn_delta_value_head(layer, k, i));
}

static void checkpoint(const struct tn_state_layer *layer, const void *state, uint32_t position,
                       void *kept)
{
    const struct tn_layer_dims *d = &layer->layer->dims;
    const struct tn_delta_state from = tn_delta_state_of((void *)(uintptr_t)state, d);
    const struct tn_delta_state to = tn_delta_kept_of(kept, d);
    assert(position == reach(layer, state, position));
    memset(kept, 0, layer->bytes.checkpoint);
    to.header->position = position;
    memcpy(to.inputs, from.inputs, (size_t)(d->conv_taps - 1) * d->channels * sizeof *to.inputs);
    tn_delta_shift_inputs(to.inputs, from.open_inputs,
                          position - (from.header->position - from.header->n_open), d);
    copy_heads(&to, &from, layer->layer);
}

static void restore(const struct tn_state_layer *layer, void *state, const void *kept)
{
    const struct tn_layer_dims *d = &layer->layer->dims;
    const struct tn_delta_state from = tn_delta_kept_of((void *)(uintptr_t)kept, d);
    const struct tn_delta_state to = tn_delta_state_of(state, d);
    *to.header = *from.header;
    memcpy(to.inputs, from.inputs, (size_t)(d->conv_taps - 1) * d->channels * sizeof *to.inputs);
    copy_heads(&to, &from, layer->layer);
}

static bool is_sound(const struct tn_state_layer *layer, const void *kept, uint32_t position)
{
    const struct tn_delta_header expected = {.position = position};
    (void)layer;
    return memcmp(kept, &expected, sizeof expected) == 0;
}

static void pretend(const struct tn_state_layer *layer, void *state, uint32_t position)
{
    memset(state, 0, layer->bytes.sequence);
    ((struct tn_delta_header *)state)->position = position;
}

const struct tn_state_ops tn_delta_state_ops = {
    .bytes = state_bytes,
    .reach = reach,
    .truncate = truncate_to,
    .checkpoint = checkpoint,
    .restore = restore,
    .is_sound = is_sound,
    .pretend = pretend,
};
