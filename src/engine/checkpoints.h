/* SPDX-License-Identifier: MIT
 *
 * Decides which checkpoints of recurrent state are kept.  All sequences share a fixed number
 * (tn_workspace_input).  When all are in use, a new checkpoint evicts the one of lowest importance,
 * provided that one is not more important than itself:
 *
 *   1. by mark (enum tn_mark): if several sequences keep a checkpoint, the highest mark counts
 *   2. spaced ones: the one whose loss costs the fewest positions to compute again
 *   3. the one unused for longest
 *
 * A sequence has one checkpoint per mark except TN_MARK_SPACED: the previous one becomes spaced.
 * Models without recurrent layers have none.
 */
#ifndef TN_CHECKPOINTS_H
#define TN_CHECKPOINTS_H

#include "engine/cache_pool.h"
#include "model/state.h"

#define TN_MAX_CHECKPOINTS 64u
/* Limit of the bit set of sequences in struct tn_checkpoint. */
#define TN_CHECKPOINT_SEQUENCES 64u

struct tn_checkpoints {
    struct tn_cache_pool pool;
    struct tn_checkpoint *list; /* [pool.n_blocks] */
    uint64_t n_uses;
};

/* The checkpoint of sequence i at `position`; NULL: none. */
struct tn_checkpoint *tn_checkpoints_find(struct tn_checkpoints *c, uint32_t i, uint32_t position);
/* A new checkpoint of sequence i; the caller fills `kept` and marks it.  NULL: all others are more
 * important, or out of memory. */
struct tn_checkpoint *tn_checkpoints_add(struct tn_checkpoints *c, uint32_t i, uint32_t position,
                                         enum tn_mark mark);
/* Adds a reason for sequence i to keep it. */
void tn_checkpoints_mark(struct tn_checkpoints *c, struct tn_checkpoint *one, uint32_t i,
                         enum tn_mark mark);
/* Drops the checkpoints of sequence i beyond `position`. */
void tn_checkpoints_drop(struct tn_checkpoints *c, uint32_t i, uint32_t position);
/* Lets sequence `to` keep those that `from` has up to `position`. */
void tn_checkpoints_share(struct tn_checkpoints *c, uint32_t to, uint32_t from, uint32_t position);
/* Does sequence i keep it?  With this mark? */
bool tn_checkpoint_is_of(const struct tn_checkpoint *one, uint32_t i);
bool tn_checkpoint_is_marked(const struct tn_checkpoint *one, uint32_t i, enum tn_mark mark);

#endif
