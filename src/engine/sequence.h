/* SPDX-License-Identifier: MIT
 *
 * A sequence: the ids at its positions, and what the layers keep of them (model/state.h).
 *
 * Sequences share the blocks of a common prefix; a shared block is copied before it is written to.
 * States are copied, checkpoints are shared.  If every layer is full attention, truncate and share
 * reach any position.  A layer with a state may reach less: callers continue from the returned
 * position and evaluate the ids in between again.  Nothing here allocates: lists are in scratch
 * memory (model/workspace_size.h).
 */
#ifndef TN_SEQUENCE_H
#define TN_SEQUENCE_H

#include "engine/checkpoints.h"

struct tn_sequence {
    struct tn_cache_pool *pool;
    const struct tn_state_plan *states;
    struct tn_checkpoints *checkpoints;
    uint32_t number;        /* index among the sequences of the pool */
    uint32_t *ids;          /* [n_past] ids of the cached positions */
    unsigned char **blocks; /* [n_blocks] */
    unsigned char *state;   /* [states->bytes.sequence]; NULL: no layer has state */
    uint32_t n_blocks;
    uint32_t n_past;
};

/* Makes positions [n_past, n) writable.  false: out of memory; existing positions stay. */
bool tn_sequence_grow(struct tn_sequence *s, uint32_t n);

/* The last position up to n that tn_sequence_truncate and tn_sequence_share can reach. */
uint32_t tn_sequence_reach(const struct tn_sequence *s, uint32_t n);
/* Keeps positions below n, or as many as can be reached.  Returns s->n_past.  Drops checkpoints
 * beyond it.  With n = n_past, rolls back an evaluation that was interrupted or whose last rows are
 * not needed. */
uint32_t tn_sequence_truncate(struct tn_sequence *s, uint32_t n);
/* Becomes the first n positions of another sequence, or as many as can be reached.  Memory is
 * shared except a partly filled block, which is copied; without memory for it, s gets fewer
 * positions. Returns s->n_past. */
uint32_t tn_sequence_share(struct tn_sequence *s, const struct tn_sequence *from, uint32_t n);
/* Length of the common prefix of the sequence and ids [n]. */
uint32_t tn_sequence_common(const struct tn_sequence *s, const uint32_t *ids, size_t n);

/* Keeps a checkpoint of the last position up to n that the state itself reaches, if any.  true:
 * there is one at that position now.  Only for sequences with a state. */
bool tn_sequence_checkpoint(struct tn_sequence *s, uint32_t n, enum tn_mark mark);
/* The same every TN_CHECKPOINT_SPACING positions; called while the sequence grows. */
void tn_sequence_checkpoint_spaced(struct tn_sequence *s);
/* Position of its checkpoint with this mark; UINT32_MAX: none. */
uint32_t tn_sequence_marked(const struct tn_sequence *s, enum tn_mark mark);

#endif
