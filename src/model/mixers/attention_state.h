/* SPDX-License-Identifier: MIT
 *
 * What a layer of attention stores: keys and values of all positions in blocks of the cache, or,
 * with a window, of the last positions in a ring.
 *
 *   ring         block b of a sequence is block b % n_blocks of the ring, with the same rows
 *   checkpoint   the window - 1 positions before it, from row 0 on
 *
 * Attention reads a block of a ring like one of the cache, so both give the same bits.  A ring has
 * room for the positions that a batch sees: window - 1 positions and its own rows.  It can be
 * rolled back while the positions that the next row sees have not been overwritten.  Rings and
 * their checkpoints have a fixed size and roll back less far than blocks: sequences have them only
 * if the context is long enough for them to take less memory.
 */
#ifndef TN_ATTENTION_STATE_H
#define TN_ATTENTION_STATE_H

#include "model/state.h"
#include "model/weights.h"

/* Checkpoints counted when rings are compared with blocks: the minimum of a plan. */
#define TN_RING_CHECKPOINTS 2u

/* Sequences of more positions than this have rings, shorter ones blocks; UINT32_MAX: no layer has a
 * window. */
uint32_t tn_rings_above(const struct tn_weights *weights, uint32_t n_batch);

/* The first position that the row at `position` sees. */
static inline uint32_t tn_first_seen(const struct tn_layer *layer, uint32_t position)
{
    const uint32_t window = layer->spec->window;
    return window && position >= window ? position + 1 - window : 0;
}

static inline bool tn_has_ring(const struct tn_state_layer *layer)
{
    return layer->bytes.sequence > 0;
}

/* The memory of block i of the sequence in the ring of a state. */
unsigned char *tn_ring_block(const struct tn_state_layer *layer, void *state, uint32_t i);
/* Called before rows [position, position + n_rows) are stored; position is the end of the ring. */
void tn_ring_append(const struct tn_state_layer *layer, void *state, uint32_t position,
                    uint32_t n_rows);

extern const struct tn_state_ops tn_attention_state_ops;

#endif
