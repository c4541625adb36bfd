/* SPDX-License-Identifier: MIT
 *
 * A sequence: the ids at its positions, and what the layers keep of them (model/state.h).
 *
 * Blocks that two sequences have in common are in memory once; one that others hold too is copied
 * before a sequence writes into it.  States are copied, checkpoints are shared.
 *
 * While every layer is full attention, truncate and share reach the position asked for.  A layer
 * with a state may reach less: callers go on from the position that is returned, and evaluate the
 * ids between again.  Nothing here allocates: lists are in scratch memory (model/workspace_size.h).
 */
#ifndef TN_SEQUENCE_H
#define TN_SEQUENCE_H

#include "engine/checkpoints.h"

struct tn_sequence {
    struct tn_cache_pool *pool;
    const struct tn_state_plan *states;
    struct tn_checkpoints *checkpoints;
    uint32_t number;        /* among the sequences of the pool */
    uint32_t *ids;          /* [n_past] of those that the cache holds */
    unsigned char **blocks; /* [n_blocks] */
    unsigned char *state;   /* [states->bytes.sequence]; NULL: no layer has one */
    uint32_t n_blocks;
    uint32_t n_past;
};

/* Makes positions [n_past, n) writable. False when memory is short: what is there stays. */
bool tn_sequence_grow(struct tn_sequence *s, uint32_t n);

/* The last position up to n that tn_sequence_truncate and tn_sequence_share reach. */
uint32_t tn_sequence_reach(const struct tn_sequence *s, uint32_t n);
/* Keeps positions below n, or as many of them as can be reached: s->n_past, which is returned.
 * Checkpoints beyond it are dropped.  With n = n_past it takes back what an evaluation wrote that
 * was interrupted, or whose last rows are not wanted. */
uint32_t tn_sequence_truncate(struct tn_sequence *s, uint32_t n);
/* Becomes the first n positions of another sequence, or as many as can be reached, in the same
 * memory but for a block that they fill in part: that is copied.  Where memory for it is short, s
 * has less.  Returns s->n_past. */
uint32_t tn_sequence_share(struct tn_sequence *s, const struct tn_sequence *from, uint32_t n);
/* Positions that hold the beginning of ids [n]. */
uint32_t tn_sequence_common(const struct tn_sequence *s, const uint32_t *ids, size_t n);

/* Keeps a checkpoint of the last position up to n that the state itself reaches, if any.  True:
 * there is one at that position now.  Only for sequences with a state. */
bool tn_sequence_checkpoint(struct tn_sequence *s, uint32_t n, enum tn_mark mark);
/* The same every TN_CHECKPOINT_SPACING positions; called as the sequence grows. */
void tn_sequence_checkpoint_spaced(struct tn_sequence *s);
/* Where its checkpoint of this mark is; UINT32_MAX: it has none. */
uint32_t tn_sequence_marked(const struct tn_sequence *s, enum tn_mark mark);

#endif
