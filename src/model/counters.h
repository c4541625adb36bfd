/* SPDX-License-Identifier: MIT
 *
 * Where the time of an evaluation goes, and whether it goes on.
 */
#ifndef TN_COUNTERS_H
#define TN_COUNTERS_H

#include "model/forward.h"

/* Adds the time since *start to a region and moves *start on. */
void tn_region_end(struct tn_forward *f, enum tn_region region, uint64_t *start);

/* True when the rest of a loop is not worth computing; thread 0 asks should_stop. */
bool tn_forward_should_stop(struct tn_forward *f, uint32_t i_thread);

#endif
