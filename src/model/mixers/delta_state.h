/* SPDX-License-Identifier: MIT
 *
 * What a layer of a gated delta rule stores: its matrices, and the rows not yet merged into them.
 * Positions are grouped in chunks of TN_DELTA_CHUNK.  A state has the matrix S of each value head
 * at `base`, the start of a chunk.  Each later row is stored as (key, delta, G), where G is the
 * logarithm of the decay since the start of the row's chunk.  S is updated by a whole chunk:
 *
 *   S <- exp(G_last) S + sum over j of (exp(G_last - G_j) key_j) (x) delta_j
 *
 * So S is written once per chunk, rows of a chunk can be dropped, and the bits do not depend on how
 * a text is split.  The last TN_DELTA_OPEN rows of a span are open: they may be wrong drafts.  S is
 * updated by a chunk only when none of its rows is open, so rows of two chunks may be stored.
 */
#ifndef TN_DELTA_STATE_H
#define TN_DELTA_STATE_H

#include "kern/kern.h"
#include "model/state.h"
#include "model/weights.h"

#define TN_DELTA_CHUNK 16u
/* A chosen token and its drafts: TN_DRAFT_MAX_ROWS of engine/draft.h. */
#define TN_DELTA_OPEN 8u
static_assert(TN_DELTA_OPEN < TN_DELTA_CHUNK, "open rows are of at most two chunks");

/* Pointers into a state or, without open_inputs, into a checkpoint. */
struct tn_delta_state {
    struct tn_delta_header {
        uint32_t position;
        uint32_t n_open; /* rows before the position that may be dropped */
        uint32_t unused[14];
    } *header;
    uint32_t n_rows;    /* capacity for rows since base */
    float *inputs;      /* [conv_taps - 1][channels] of the convolution, before the open rows */
    float *matrices;    /* [n_head][head_dim][n_value] S at base */
    float *keys;        /* [n_kv_head][n_rows][n_key] */
    float *deltas;      /* [n_head][n_rows][n_value] */
    float *decays;      /* [n_head][n_rows] G */
    float *open_inputs; /* [TN_DELTA_OPEN][channels] */
};
static_assert(sizeof(struct tn_delta_header) == 64, "floats begin at a multiple of 64 bytes");

/* Values of a key and of a row of S, padded with zeros: kernels take multiples of 16. */
uint32_t tn_delta_n_key(const struct tn_layer_dims *d);
uint32_t tn_delta_n_value(const struct tn_layer_dims *d);

struct tn_delta_state tn_delta_state_of(void *state, const struct tn_layer_dims *d);
struct tn_delta_state tn_delta_kept_of(void *kept, const struct tn_layer_dims *d);

/* The start of the chunk that contains a position. */
static inline uint32_t tn_delta_chunk_of(uint32_t position)
{
    return position - position % TN_DELTA_CHUNK;
}
/* The position of S in a state. */
static inline uint32_t tn_delta_base(const struct tn_delta_header *h)
{
    return tn_delta_chunk_of(h->position - h->n_open);
}

/* The rows of a chunk for one value head. */
struct tn_delta_rows {
    float *keys, *deltas, *decays;
};

/* Rows from index `first` on, relative to base. */
struct tn_delta_rows tn_delta_rows_of(const struct tn_delta_state *s,
                                      const struct tn_layer_dims *d, uint32_t i_key_head,
                                      uint32_t i_head, uint32_t first);

/* dst [head_dim][n_value] = S after the first n rows of a chunk; may be `matrix` itself. */
void tn_delta_take_in(float *dst, const float *matrix, const struct tn_delta_rows *rows, uint32_t n,
                      const struct tn_layer_dims *d, tn_attn_pv_f32_fn *weighted_sum);

/* Number i of the value heads that share a key head. */
uint32_t tn_delta_value_head(const struct tn_layer *layer, uint32_t i_key_head, uint32_t i);

/* Shifts the inputs of the convolution [conv_taps - 1][channels] by n rows: they become the last
 * ones of themselves and these rows. */
void tn_delta_shift_inputs(float *inputs, const float *rows, uint32_t n,
                           const struct tn_layer_dims *d);

extern const struct tn_state_ops tn_delta_state_ops;

#endif
