/* SPDX-License-Identifier: MIT
 *
 * Mixers: the half of a layer that mixes positions.  One constant row each, in a file of mixers/.
 */
#ifndef TN_MIXER_H
#define TN_MIXER_H

#include "model/forward.h"
#include "model/state.h"

struct tn_mixer {
    const char *name;
    /* h += mixer(norm(h)) for the rows of the batch (forward.h): reads and appends the blocks and
     * states of its spans. */
    void (*run)(struct tn_forward *f, uint32_t i_layer);
    const struct tn_state_ops *state;
};

extern const struct tn_mixer tn_mixer_attention;

/* A layer's state in a span, NULL where no layer has one. */
static inline void *tn_state_of(const struct tn_forward *f, const struct tn_span *span,
                                uint32_t i_layer)
{
    return span->state ? span->state + f->states->layers[i_layer].at.sequence : NULL;
}

#endif
