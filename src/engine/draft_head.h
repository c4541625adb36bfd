/* SPDX-License-Identifier: MIT
 *
 * Drafts that the model's own draft head makes (tern/model_format.h describes it).
 *
 * The head reads pairs: the final state of a position and the id after it.  The states are those of
 * the last evaluation, so the head runs between two evaluations: over the pairs of all rows that
 * were kept, then once for each further draft, with its previous state.  Its cache has the last
 * positions only, numbered from the first pair of a request; pairs that were not read are missing
 * there.  Drafts are verified, so none of this changes an answer.
 */
#ifndef TN_DRAFT_HEAD_H
#define TN_DRAFT_HEAD_H

#include "engine/steps.h"

/* Whether the head drafts for the request of a lane. */
bool tn_has_draft_head(const struct tn_lane *lane);

/* Called when a request gets the lane: forgets the pairs of the previous one. */
void tn_draft_head_reset(struct tn_lane *lane);

/* Called after the last n rows of a lane's part of the batch became its text, the last one at
 * n_past - 1: their states may be read until the next evaluation. */
void tn_draft_head_note(struct tn_lane *lane, uint32_t end, uint32_t n);

/* Reads the pairs of prompt rows from position `first` on, of which the last positions count. */
void tn_draft_head_read_prompt(struct tn_steps *s, struct tn_lane *lane, uint32_t first);

/* Writes n ids after next_id.  Returns n, or 0 if there are no states or it was interrupted. */
uint32_t tn_draft_head_make(struct tn_steps *s, struct tn_lane *lane, uint32_t *ids, uint32_t n);

#endif
