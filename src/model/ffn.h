/* SPDX-License-Identifier: MIT
 *
 * Feed-forwards: the half of a layer that processes each position separately.  One constant row for
 * each, in a file of ffns/.
 */
#ifndef TN_FFN_H
#define TN_FFN_H

#include "model/forward.h"

struct tn_ffn {
    const char *name;
    /* h += ffn(f->input) for the rows of the batch (forward.h). */
    void (*run)(struct tn_forward *f, const struct tn_layer *layer);
    /* Its scratch memory, f->s.ffns[its number]; as in struct tn_mixer. */
    size_t scratch_bytes, thread_bytes;
    tn_scratch_layout_fn *layout;
};

extern const struct tn_ffn tn_ffn_gated, tn_ffn_experts, tn_ffn_plain;

/* By number, enum tern_ffn. */
extern const struct tn_ffn *const tn_ffns[TERN_FFN_END];

#endif
