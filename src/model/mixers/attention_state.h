/* SPDX-License-Identifier: MIT
 *
 * What a layer of attention keeps: keys and values of all positions in blocks of the cache, or,
 * where it sees a window only, of the last ones in a ring.
 *
 *   ring         block b of a sequence is block b % n_blocks of the ring, with the same rows
 *   checkpoint   the window - 1 positions before it, from row 0 on
 *
 * Attention reads a block of a ring as it reads one of the cache, so both give the same bits.  A
 * ring has room for what a batch sees: window - 1 positions and its own rows.  It can go back while
 * the positions that the next row sees have not been overwritten.
 *
 * Rings and the checkpoints that they need take memory whatever the context, and go back less far
 * than blocks: sequences have them only where the context is long enough for them to take less.
 */
#ifndef TN_ATTENTION_STATE_H
#define TN_ATTENTION_STATE_H

#include "model/state.h"
#include "model/weights.h"

/* Checkpoints that count when rings are compared with blocks: the minimum of a plan. */
#define TN_RING_CHECKPOINTS 2u

/* Sequences of more positions than this keep rings, those of fewer blocks; UINT32_MAX: no layer has
 * a window. */
uint32_t tn_rings_above(const struct tn_weights *weights, uint32_t n_batch);

static inline bool tn_has_ring(const struct tn_state_layer *layer)
{
    return layer->bytes.sequence > 0;
}

/* Where the ring of a state stores block i of the sequence. */
unsigned char *tn_ring_block(const struct tn_state_layer *layer, void *state, uint32_t i);
/* Called before rows [position, position + n_rows) are stored; position is the end of the ring. */
void tn_ring_append(const struct tn_state_layer *layer, void *state, uint32_t position,
                    uint32_t n_rows);

extern const struct tn_state_ops tn_attention_state_ops;

#endif
