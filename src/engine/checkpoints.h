/* SPDX-License-Identifier: MIT
 *
 * Which checkpoints are kept.
 *
 * A fixed number of them is planned for all sequences together (tn_workspace_input).  When all
 * are in use, a new one takes the memory of the least important that is not more important than
 * itself:
 *
 *   1. by mark (enum tn_mark): of a checkpoint that several sequences keep, the highest counts
 *   2. spaced ones: the one whose loss costs the fewest positions to compute again
 *   3. the one used longest ago
 *
 * A sequence has one checkpoint of each mark but TN_MARK_SPACED: the previous one becomes spaced.
 * Models whose layers keep no state have none.
 */
#ifndef TN_CHECKPOINTS_H
#define TN_CHECKPOINTS_H

#include "engine/cache_pool.h"
#include "model/state.h"

#define TN_MAX_CHECKPOINTS 64u
/* Sequences that a bit of struct tn_checkpoint can name. */
#define TN_CHECKPOINT_SEQUENCES 64u

struct tn_checkpoints {
    struct tn_cache_pool pool;
    struct tn_checkpoint *list; /* [pool.n_blocks] */
    uint64_t n_uses;
};

/* The checkpoint of sequence number i at `position`; NULL: none. */
struct tn_checkpoint *tn_checkpoints_find(struct tn_checkpoints *c, uint32_t i, uint32_t position);
/* Memory for a checkpoint of sequence i; the caller fills `kept` and marks it.  NULL: all are more
 * important, or memory is short. */
struct tn_checkpoint *tn_checkpoints_add(struct tn_checkpoints *c, uint32_t i, uint32_t position,
                                         enum tn_mark mark);
/* Says why sequence i keeps it, beside other reasons. */
void tn_checkpoints_mark(struct tn_checkpoints *c, struct tn_checkpoint *one, uint32_t i,
                         enum tn_mark mark);
/* Sequence i keeps none beyond `position`. */
void tn_checkpoints_drop(struct tn_checkpoints *c, uint32_t i, uint32_t position);
/* Sequence `to` keeps those that `from` has up to `position`. */
void tn_checkpoints_share(struct tn_checkpoints *c, uint32_t to, uint32_t from, uint32_t position);
/* Whether sequence i keeps it, and whether for this reason. */
bool tn_checkpoint_is_of(const struct tn_checkpoint *one, uint32_t i);
bool tn_checkpoint_is_marked(const struct tn_checkpoint *one, uint32_t i, enum tn_mark mark);

#endif
