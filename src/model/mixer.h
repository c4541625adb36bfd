/* SPDX-License-Identifier: MIT
 *
 * Mixers: the half of a layer that mixes positions.  One constant row for each, in a file of
 * mixers/.
 */
#ifndef TN_MIXER_H
#define TN_MIXER_H

#include "model/forward.h"
#include "model/state.h"

struct tn_mixer {
    const char *name;
    /* h += mixer(f->input) for the rows of the batch (forward.h): reads and appends the blocks and
     * states of its spans. */
    void (*run)(struct tn_forward *f, uint32_t i_layer);
    const struct tn_state_ops *state;
    /* Its scratch memory, f->s.mixers[its number]: a struct of scratch_bytes, followed by
     * thread_bytes for each thread, and the memory that layout makes them point to.  All layers
     * share it: its contents are lost after `run`.  Zeros and NULL: it needs none. */
    size_t scratch_bytes, thread_bytes;
    tn_scratch_layout_fn *layout;
};

extern const struct tn_mixer tn_mixer_attention;
extern const struct tn_mixer tn_mixer_gated_delta;

/* By number, enum tern_mixer. */
extern const struct tn_mixer *const tn_mixers[TERN_MIXER_END];

/* A layer's state in a span; NULL if no layer has one. */
static inline void *tn_state_of(const struct tn_forward *f, const struct tn_span *span,
                                uint32_t i_layer)
{
    return span->state ? span->state + f->states->layers[i_layer].at.sequence : NULL;
}

#endif
