/* SPDX-License-Identifier: MIT
 *
 * Time accounting and interruption of an evaluation: charges elapsed time and read weights to a
 * region, and asks should_stop.
 */
#include "model/counters.h"

/* Charges the weights counted since the last region ended to this region. */
static void attribute_weights(struct tn_counters *c, enum tn_region region)
{
    c->decode_bytes[region] += c->decode_weight_bytes - c->attributed_bytes;
    c->attributed_bytes = c->decode_weight_bytes;
}

void tn_region_end(struct tn_forward *f, enum tn_region region, uint64_t *start)
{
    uint64_t now = f->now_ns();
    uint64_t *ns = f->is_decode ? f->counters.decode_ns : f->counters.prefill_ns;
    ns[region] += now - *start;
    attribute_weights(&f->counters, region);
    *start = now;
}

bool tn_forward_should_stop(struct tn_forward *f, uint32_t i_thread)
{
    if (i_thread == 0 && f->should_stop && !f->is_stopping && f->should_stop(f->after_layer_arg))
        f->is_stopping = true;
    return f->is_stopping;
}
