/* SPDX-License-Identifier: MIT
 *
 * Accounts the time of an evaluation to regions (forward.h), and tells long loops when to stop
 * early.
 */
#ifndef TN_COUNTERS_H
#define TN_COUNTERS_H

#include "model/forward.h"

/* Adds the time since *start to a region and sets *start to now. */
void tn_region_end(struct tn_forward *f, enum tn_region region, uint64_t *start);

/* Counts bytes of weights, while decoding. */
static inline void tn_count_bytes(struct tn_forward *f, uint64_t n_bytes)
{
    if (f->is_decode)
        f->counters.decode_weight_bytes += n_bytes;
}

/* True if the rest of a loop may be skipped; only thread 0 calls should_stop. */
bool tn_forward_should_stop(struct tn_forward *f, uint32_t i_thread);

#endif
